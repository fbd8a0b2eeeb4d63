/* Runs conv2d_weight: for each weight, the sum over all positions of the gradient there times what the tap sees there.
 * Both lie along the positions, so the sums are dot products of packed rows. An item is a chunk of positions of a group,
 * whose sums go to a place of their own in operand 0: no item waits for another, and what is added up at the end, and in
 * which order, depends on the shapes alone. */
#include "ops/conv_runs.h"
#include "ops/tile.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPAN =
        1024, /* positions whose products are added before the lanes are: a multiple of MR_DOT_LANES */
    TAPS = 48, /* whose rows are packed together: a multiple of MR_DOT_COLUMNS */
};

typedef struct {
    const mr_command *command;
    mr_conv c;
    mr_dtype dtype;
    mr_dots dots;
    int64_t chunk; /* positions of one, but for the last */
    int64_t depth; /* taps of an output */
    int64_t group;
    void *gradient; /* [output, rounded up to MR_DOT_ROWS][SPAN] */
    void *seen;     /* [TAPS][SPAN] */
    int piece_count;
    mr_conv_piece pieces[SPAN];
} work;

static int64_t positions_of(const mr_conv *c) {
    return c->images * c->grid[0] * c->grid[1];
}

int64_t mr_conv_weight_items(const mr_command *command) {
    return command->operands[0].tensor->shape[0] * command->u.op.params.window.groups;
}

/* ------------------------------------------------------------------------- rows */

static int64_t rounded(int64_t count, int64_t unit) {
    return (count + unit - 1) / unit * unit;
}

#define ROWS(tag, T)                                                                               \
    static void fill_gradient_##tag(work *w, int64_t count) {                                      \
        const mr_conv *c = &w->c;                                                                  \
        const T *all =                                                                             \
            (const T *)mr_tensor_data(w->command->operands[1].tensor) + w->group * c->out_group;   \
        int64_t step = c->out_stride[1], whole = rounded(count, MR_DOT_LANES);                     \
        for (int64_t o = 0; o < c->outputs; o++) {                                                 \
            T *row = (T *)w->gradient + o * SPAN;                                                  \
            for (int i = 0; i < w->piece_count; i++) {                                             \
                const mr_conv_piece *p = &w->pieces[i];                                            \
                const T *from = all + o * c->out_output + p->image * c->out_image +                \
                                p->row * c->out_stride[0] + p->column * step;                      \
                T *to = row + p->at;                                                               \
                if (step == 1)                                                                     \
                    for (int j = 0; j < p->length; j++) to[j] = from[j];                           \
                else                                                                               \
                    for (int j = 0; j < p->length; j++) to[j] = from[j * step];                    \
            }                                                                                      \
            for (int64_t j = count; j < whole; j++) row[j] = 0;                                    \
        }                                                                                          \
    }                                                                                              \
    static void fill_seen_##tag(work *w, int64_t first, int64_t taps, int64_t count) {             \
        const mr_conv *c = &w->c;                                                                  \
        const T *source = (const T *)mr_tensor_data(w->command->operands[2].tensor) +              \
                          w->group * c->source_group;                                              \
        int64_t own = c->taps[0] * c->taps[1], whole = rounded(count, MR_DOT_LANES);               \
        for (int64_t k = 0; k < taps; k++) {                                                       \
            T *row = (T *)w->seen + k * SPAN;                                                      \
            int64_t tap = (first + k) % own, a = tap / c->taps[1], b = tap % c->taps[1];           \
            for (int i = 0; i < w->piece_count; i++)                                               \
                mr_conv_see_##tag(c, source, (first + k) / own, a, b, &w->pieces[i],               \
                                  row + w->pieces[i].at);                                          \
            for (int64_t j = count; j < whole; j++) row[j] = 0;                                    \
        }                                                                                          \
    }                                                                                              \
    /* Adds the products of TAPS rows, or fewer, to the item's sums. */                            \
    static void add_products_##tag(const work *w, T *sums, int64_t first, int64_t taps,            \
                                   int64_t count) {                                                \
        int64_t whole = rounded(count, MR_DOT_LANES);                                              \
        for (int64_t o = 0; o < w->c.outputs; o += MR_DOT_ROWS)                                    \
            for (int64_t k = 0; k < taps; k += MR_DOT_COLUMNS) {                                   \
                T tile[MR_DOT_ROWS][MR_DOT_COLUMNS] = {{0}};                                       \
                w->dots(whole, (const T *)w->gradient + o * SPAN, SPAN,                            \
                        (const T *)w->seen + k * SPAN, SPAN, tile, MR_DOT_COLUMNS);                \
                for (int64_t i = 0; i < MR_DOT_ROWS && o + i < w->c.outputs; i++)                  \
                    for (int64_t j = 0; j < MR_DOT_COLUMNS && k + j < taps; j++)                   \
                        sums[(o + i) * w->depth + first + k + j] += tile[i][j];                    \
            }                                                                                      \
    }                                                                                              \
    static void run_item_##tag(work *w, int64_t item) {                                            \
        int64_t chunk = item / w->c.groups,                                                        \
                end = mr_least((chunk + 1) * w->chunk, positions_of(&w->c));                       \
        w->group = item % w->c.groups;                                                             \
        int64_t results = w->c.outputs * w->depth;                                                 \
        T *sums = (T *)mr_tensor_data(w->command->operands[0].tensor) + item * results;            \
        for (int64_t i = 0; i < results; i++) sums[i] = 0;                                         \
        for (int64_t at = chunk * w->chunk; at < end; at += SPAN) {                                \
            int64_t count = mr_least(SPAN, end - at);                                              \
            w->piece_count = mr_conv_cut(&w->c, at, count, SPAN, w->pieces);                       \
            fill_gradient_##tag(w, count);                                                         \
            for (int64_t first = 0; first < w->depth; first += TAPS) {                             \
                int64_t taps = mr_least(TAPS, w->depth - first);                                   \
                fill_seen_##tag(w, first, taps, count);                                            \
                add_products_##tag(w, sums, first, taps, count);                                   \
            }                                                                                      \
        }                                                                                          \
    }
ROWS(f32, float)
ROWS(f64, double)

/* ------------------------------------------------------------------------- the command */

static void free_work(work *w) {
    free(w->gradient);
    free(w->seen);
    free(w);
}

mr_status mr_conv_weight_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    const mr_tensor *out = command->operands[0].tensor;
    work *w = calloc(1, sizeof *w);
    if (w) {
        w->command = command;
        w->dtype = (mr_dtype)out->dtype;
        w->dots = mr_dots_of(w->dtype);
        mr_conv_weight(command, &w->c);
        w->depth = w->c.channels * w->c.taps[0] * w->c.taps[1];
        w->chunk = (positions_of(&w->c) + out->shape[0] - 1) / out->shape[0];
        size_t size = mr_dtype_size(w->dtype);
        w->gradient = calloc((size_t)rounded(w->c.outputs, MR_DOT_ROWS) * SPAN, size);
        w->seen = calloc((size_t)TAPS * SPAN, size);
    }
    if (!w || !w->gradient || !w->seen) {
        if (w) free_work(w);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory for packed rows",
                       command->name);
    }
    for (int64_t item = first; item < end; item++) {
        if (w->dtype == MR_F32) run_item_f32(w, item);
        else run_item_f64(w, item);
    }
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
