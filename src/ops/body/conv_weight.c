/* Runs conv2d_weight: each weight is the sum over all positions of the gradient times the tap's input there. This is a
 * matrix product of outputs x positions and positions x taps. An item is a chunk of positions of a group, whose sums go
 * to a place of their own in operand 0. So no item waits for another. Only the shapes decide the order of the
 * additions. */
#include "ops/body/conv_runs.h"
#include "ops/body/tile.h"

#include <stdlib.h>

enum {
    DEPTH = 192, /* positions of a panel: 48 taps of them fit the first-level cache */
    GROUP = 16,  /* taps whose rows are turned together */
};

typedef struct {
    const mr_command *command;
    mr_conv c;
    mr_dtype dtype;
    mr_tile tile;
    int64_t chunk;         /* positions of one, but for the last */
    int64_t depth;         /* taps of an output */
    int64_t height, width; /* outputs and taps, rounded up to whole tiles */
    int64_t group;
    void *gradient; /* [tile][position][row of the tile] */
    void *seen;     /* [position][column of one tile] */
    void *sums;     /* [height][width] */
    int piece_count;
    mr_conv_piece pieces[DEPTH];
} work;

static int64_t positions_of(const mr_conv *c) {
    return c->images * c->grid[0] * c->grid[1];
}

int64_t mr_conv_weight_items(const mr_command *command) {
    return command->operands[0].tensor->shape[0] * mr_params_of(command).conv.window.groups;
}

/* ------------------------------------------------------------------------- panels */

#define PANELS(tag, T)                                                                             \
    static void pack_gradient_##tag(work *w, int64_t count) {                                      \
        const mr_conv *c = &w->c;                                                                  \
        const T *all =                                                                             \
            (const T *)mr_tensor_data(w->command->operands[1].tensor) + w->group * c->out_group;   \
        int64_t height = w->tile.rows, step = c->out_stride[1];                                    \
        for (int64_t o = 0; o < c->outputs; o += height) {                                         \
            T *to = (T *)w->gradient + o * count;                                                  \
            int64_t rows = mr_least(height, c->outputs - o);                                       \
            for (int i = 0; i < w->piece_count; i++) {                                             \
                const mr_conv_piece *p = &w->pieces[i];                                            \
                const T *from = all + o * c->out_output + p->image * c->out_image +                \
                                p->row * c->out_stride[0] + p->column * step;                      \
                if (step == 1) {                                                                   \
                    mr_transpose(to + p->at * height, height, from, c->out_output, sizeof(T),      \
                                 p->length, rows);                                                 \
                    continue;                                                                      \
                }                                                                                  \
                for (int64_t r = 0; r < rows; r++)                                                 \
                    for (int j = 0; j < p->length; j++)                                            \
                        to[(p->at + j) * height + r] = from[r * c->out_output + j * step];         \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* Gathers the elements that the taps of one tile read, from tap `first` on. */                \
    MR_CLONES static void see_tile_##tag(work *w, int64_t first, int64_t count) {                  \
        const mr_conv *c = &w->c;                                                                  \
        const mr_tensor *source = w->command->operands[2].tensor;                                  \
        const T *all = mr_tensor_data(source);                                                     \
        int64_t own = c->taps[0] * c->taps[1], width = w->tile.columns,                            \
                readable = mr_conv_readable(c, source), apart = c->step[1] * c->source_stride[1];  \
        int64_t end = mr_least(first + width, w->depth);                                           \
        T row[GROUP][DEPTH];                                                                       \
        for (int64_t k = first; k < end; k++) {                                                    \
            int64_t at = w->group * c->source_group + k / own * c->source_channel,                 \
                    of_group = (k - first) % GROUP;                                                \
            for (int i = 0; i < w->piece_count; i++) {                                             \
                const mr_conv_piece *p = &w->pieces[i];                                            \
                mr_conv_sight sight =                                                              \
                    mr_conv_look(c, p, k % own / c->taps[1], k % own % c->taps[1]);                \
                mr_conv_see_##tag(all, at, readable, apart, &sight, p->length,                     \
                                  row[of_group] + p->at);                                          \
            }                                                                                      \
            if (of_group == GROUP - 1 || k == end - 1)                                             \
                mr_transpose((T *)w->seen + k - first - of_group, width, row, DEPTH, sizeof(T),    \
                             count, of_group + 1);                                                 \
        }                                                                                          \
    }                                                                                              \
    static void write_sums_##tag(const work *w, int64_t item) {                                    \
        T *to =                                                                                    \
            (T *)mr_tensor_data(w->command->operands[0].tensor) + item * w->c.outputs * w->depth;  \
        bool empty = item / w->c.groups * w->chunk >= positions_of(&w->c);                         \
        for (int64_t o = 0; o < w->c.outputs; o++)                                                 \
            for (int64_t k = 0; k < w->depth; k++)                                                 \
                to[o * w->depth + k] = empty ? 0 : ((const T *)w->sums)[o * w->width + k];         \
    }
PANELS(f32, float)
PANELS(f64, double)

/* ------------------------------------------------------------------------- the product */

/* Adds the products of the positions [at, at + count), the first of the item if `first`. */
static void add_panel(work *w, int64_t at, int64_t count, bool first) {
    size_t size = mr_dtype_size(w->dtype);
    bool single = w->dtype == MR_F32;
    w->piece_count = mr_conv_cut(&w->c, at, count, DEPTH, w->pieces);
    if (single) pack_gradient_f32(w, count);
    else pack_gradient_f64(w, count);
    for (int64_t k = 0; k < w->width; k += w->tile.columns) {
        if (single) see_tile_f32(w, k, count);
        else see_tile_f64(w, k, count);
        for (int64_t o = 0; o < w->height; o += w->tile.rows)
            w->tile.multiply(count, (char *)w->gradient + (size_t)(o * count) * size, w->seen,
                             (char *)w->sums + (size_t)(o * w->width + k) * size, w->width, first);
    }
}

static void run_item(work *w, int64_t item) {
    int64_t begin = item / w->c.groups * w->chunk,
            end = mr_least(begin + w->chunk, positions_of(&w->c));
    w->group = item % w->c.groups;
    for (int64_t at = begin; at < end; at += DEPTH)
        add_panel(w, at, mr_least(DEPTH, end - at), at == begin);
    if (w->dtype == MR_F32) write_sums_f32(w, item);
    else write_sums_f64(w, item);
}

static void free_work(work *w) {
    free(w->gradient);
    free(w->seen);
    free(w->sums);
    free(w);
}

static int64_t rounded(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

/* The rows and columns of tiles after the last are multiplied, too, so they hold something. */
static work *begin_work(const mr_command *command) {
    const mr_tensor *out = command->operands[0].tensor;
    size_t size = mr_dtype_size((mr_dtype)out->dtype);
    work *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->command = command;
    w->dtype = (mr_dtype)out->dtype;
    w->tile = mr_tile_of(w->dtype);
    mr_conv_weight(command, &w->c);
    w->depth = w->c.channels * w->c.taps[0] * w->c.taps[1];
    w->chunk = (positions_of(&w->c) + out->shape[0] - 1) / out->shape[0];
    w->height = rounded(w->c.outputs, w->tile.rows);
    w->width = rounded(w->depth, w->tile.columns);
    w->gradient = calloc((size_t)w->height * DEPTH, size);
    w->seen = calloc((size_t)w->tile.columns * DEPTH, size);
    w->sums = calloc((size_t)(w->height * w->width) + 1, size);
    if (w->gradient && w->seen && w->sums) return w;
    free_work(w);
    return NULL;
}

mr_status mr_conv_weight_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    mr_conv c;
    mr_conv_weight(command, &c);
    if (mr_conv_weight_is_direct(&c)) return mr_conv_weight_run_direct(command, first, end);
    work *w = begin_work(command);
    if (!w)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory for packed panels",
                       command->name);
    for (int64_t item = first; item < end; item++) run_item(w, item);
    free_work(w);
    return MR_OK;
}

void mr_conv_weight_cost(const mr_command *command, mr_cost *out_cost) {
    enum { TILE = 64 * 128, THREADS = 128 };
    const mr_tensor *sums = command->operands[0].tensor, *gradient = command->operands[1].tensor,
                    *x = command->operands[2].tensor;
    double taps = (double)(sums->shape[2] * sums->shape[3] * sums->shape[4]);
    double blocks = (double)sums->numel / TILE + (double)sums->shape[0];
    *out_cost =
        (mr_cost){.flops = 2 * (double)gradient->numel * taps,
                  .bytes = ((double)sums->numel + (double)gradient->numel + (double)x->numel) *
                           (double)mr_dtype_size((mr_dtype)sums->dtype),
                  .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                  .threads = THREADS};
}
