/* Runs conv2d and conv2d_input: a matrix product of the weights (outputs x taps) and the taps' inputs (taps x
 * positions). Only a panel of the latter exists at a time. An item is MR_TILE_COLUMNS positions of all outputs of a
 * group. No value depends on the positions that are computed with it, so neither on how items were sliced. Where groups
 * are small, conv_direct.c does without the product. */
#include "ops/body/conv_runs.h"
#include "ops/body/tile.h"
#include "ops/ids.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------- items */

static int64_t positions_of(const mr_conv *c) {
    return c->images * c->grid[0] * c->grid[1];
}

static int64_t blocks_of(const mr_conv *c) {
    return (positions_of(c) + MR_TILE_COLUMNS - 1) / MR_TILE_COLUMNS;
}

int64_t mr_conv_items(const mr_command *command) {
    int64_t items = 0, parts = mr_conv_parts(command);
    for (int64_t part = 0; part < parts; part++) {
        mr_conv c;
        mr_conv_part(command, part, &c);
        items += c.groups * blocks_of(&c);
    }
    return items;
}

/* ------------------------------------------------------------------------- packing */

typedef struct {
    const mr_command *command;
    mr_conv c;
    mr_dtype dtype; /* computed in */
    mr_tile tile;
    int64_t depth;         /* taps in all */
    int64_t panel_height;  /* outputs, rounded up to whole tiles */
    void *weights;         /* [panel of MR_CONV_DEPTH taps][tile][tap][row of the tile] */
    void *seen;            /* [tile][tap][column of the tile] of one panel */
    void *sums;            /* [output][MR_TILE_COLUMNS] */
    mr_conv_sight *sights; /* [tap of a channel][piece] */
    int64_t group;
    int piece_count;
    mr_conv_piece pieces[MR_TILE_COLUMNS];
} work;

#define PACKING(tag, T)                                                                            \
    MR_CLONES static void see_##tag(work *w, int64_t from, int64_t count) {                        \
        const mr_conv *c = &w->c;                                                                  \
        const mr_tensor *source = w->command->operands[1].tensor;                                  \
        const T *all = mr_tensor_data(source);                                                     \
        int64_t taps = c->taps[0] * c->taps[1], width = w->tile.columns,                           \
                readable = mr_conv_readable(c, source), apart = c->step[1] * c->source_stride[1];  \
        for (int64_t k = 0; k < count; k++) {                                                      \
            int64_t channel = (from + k) / taps;                                                   \
            int64_t at = w->group * c->source_group + channel * c->source_channel;                 \
            const mr_conv_sight *sights = w->sights + (from + k) % taps * MR_TILE_COLUMNS;         \
            for (int i = 0; i < w->piece_count; i++) {                                             \
                const mr_conv_piece *p = &w->pieces[i];                                            \
                T *to = (T *)w->seen + p->tile * count + k * width + p->inside;                    \
                mr_conv_see_##tag(all, at, readable, apart, &sights[i], p->length, to);            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* The weights of a group. Rows after the last output are 0. */                                \
    static void pack_weights_##tag(work *w) {                                                      \
        const mr_conv *c = &w->c;                                                                  \
        const T *all = (const T *)mr_tensor_data(w->command->operands[2].tensor) +                 \
                       c->weight_offset + w->group * c->weight_group;                              \
        int64_t height = w->tile.rows, taps = c->taps[0] * c->taps[1];                             \
        for (int64_t o = 0; o < w->panel_height; o++)                                              \
            for (int64_t k = 0; k < w->depth; k++) {                                               \
                int64_t panel = k - k % MR_CONV_DEPTH,                                             \
                        deep = mr_least(MR_CONV_DEPTH, w->depth - panel), tap = k % taps;          \
                const T *from = all + o * c->weight_output + k / taps * c->weight_channel +        \
                                tap / c->taps[1] * c->weight_tap[0] +                              \
                                tap % c->taps[1] * c->weight_tap[1];                               \
                T *to = (T *)w->weights + panel * w->panel_height + o / height * height * deep +   \
                        (k - panel) * height + o % height;                                         \
                *to = o < c->outputs ? *from : 0;                                                  \
            }                                                                                      \
    }                                                                                              \
    /* The sums of a piece to the result, with the bias. */                                        \
    static void write_piece_##tag(const work *w, const mr_conv_piece *p, int64_t output, T bias) { \
        const mr_conv *c = &w->c;                                                                  \
        const T *from = (const T *)w->sums + output * MR_TILE_COLUMNS + p->at;                     \
        T *to = (T *)mr_tensor_data(w->command->operands[0].tensor) + c->out_offset +              \
                p->image * c->out_image + w->group * c->out_group + output * c->out_output +       \
                p->row * c->out_stride[0] + p->column * c->out_stride[1];                          \
        for (int i = 0; i < p->length; i++)                                                        \
            to[i * c->out_stride[1]] = w->depth ? from[i] + bias : bias;                           \
    }                                                                                              \
    static void write_##tag(const work *w) {                                                       \
        const mr_command *command = w->command;                                                    \
        for (int64_t o = 0; o < w->c.outputs; o++) {                                               \
            T bias = 0;                                                                            \
            if (command->operand_count > 3) {                                                      \
                const mr_tensor *t = command->operands[3].tensor;                                  \
                bias =                                                                             \
                    ((const T *)mr_tensor_data(t))[(w->group * w->c.outputs + o) * t->stride[0]];  \
            }                                                                                      \
            for (int i = 0; i < w->piece_count; i++) write_piece_##tag(w, &w->pieces[i], o, bias); \
        }                                                                                          \
    }
PACKING(f32, float)
PACKING(f64, double)

/* ------------------------------------------------------------------------- the product */

static void multiply_panel(const work *w, int64_t from, int64_t count, int64_t columns) {
    size_t size = mr_dtype_size(w->dtype);
    for (int64_t j = 0; j < columns; j += w->tile.columns)
        for (int64_t o = 0; o < w->panel_height; o += w->tile.rows)
            w->tile.multiply(
                count, (char *)w->weights + (size_t)(from * w->panel_height + o * count) * size,
                (char *)w->seen + (size_t)(j * count) * size,
                (char *)w->sums + (size_t)(o * MR_TILE_COLUMNS + j) * size, MR_TILE_COLUMNS,
                from == 0);
}

static void run_block(work *w, int64_t block) {
    int64_t first = block * MR_TILE_COLUMNS,
            count = mr_least(MR_TILE_COLUMNS, positions_of(&w->c) - first);
    bool single = w->dtype == MR_F32;
    w->piece_count = mr_conv_cut(&w->c, first, count, w->tile.columns, w->pieces);
    for (int64_t tap = 0; tap < w->c.taps[0] * w->c.taps[1]; tap++)
        for (int p = 0; p < w->piece_count; p++)
            w->sights[tap * MR_TILE_COLUMNS + p] =
                mr_conv_look(&w->c, &w->pieces[p], tap / w->c.taps[1], tap % w->c.taps[1]);
    for (int64_t from = 0; from < w->depth; from += MR_CONV_DEPTH) {
        int64_t deep = mr_least(MR_CONV_DEPTH, w->depth - from);
        if (single) see_f32(w, from, deep);
        else see_f64(w, from, deep);
        multiply_panel(w, from, deep, count);
    }
    if (single) write_f32(w);
    else write_f64(w);
}

static void free_work(work *w) {
    free(w->weights);
    free(w->seen);
    free(w->sums);
    free(w->sights);
    w->weights = w->seen = w->sums = NULL;
    w->sights = NULL;
}

/* The columns after the last position are multiplied, too, so they hold something. */
static mr_status begin_part(work *w, const mr_command *command, int64_t part) {
    size_t size = mr_dtype_size((mr_dtype)command->operands[0].tensor->dtype);
    w->command = command;
    w->dtype = (mr_dtype)command->operands[0].tensor->dtype;
    w->tile = mr_tile_of(w->dtype);
    mr_conv_part(command, part, &w->c);
    w->depth = w->c.channels * w->c.taps[0] * w->c.taps[1];
    w->panel_height = (w->c.outputs + w->tile.rows - 1) / w->tile.rows * w->tile.rows;
    w->group = -1;
    w->weights = mr_op_state_alloc((w->depth * w->panel_height + 1) * (int64_t)size);
    w->seen = calloc((size_t)MR_CONV_DEPTH * MR_TILE_COLUMNS, size);
    w->sums = mr_op_state_alloc(w->panel_height * MR_TILE_COLUMNS * (int64_t)size);
    w->sights =
        calloc((size_t)(w->c.taps[0] * w->c.taps[1] * MR_TILE_COLUMNS) + 1, sizeof *w->sights);
    if (w->weights && w->seen && w->sums && w->sights) return MR_OK;
    free_work(w);
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: the host has no memory for the packed weights",
                   command->name);
}

static mr_status run_part_directly(const mr_command *command, const mr_conv *c, int64_t first,
                                   int64_t end) {
    int64_t blocks = blocks_of(c);
    for (int64_t item = first; item < end;) {
        int64_t group = item / blocks, count = mr_least(blocks - item % blocks, end - item),
                at = item % blocks * MR_TILE_COLUMNS,
                stop = mr_least(at + count * MR_TILE_COLUMNS, positions_of(c));
        MR_TRY(mr_conv_run_direct(command, c, group, at, stop));
        item += count;
    }
    return MR_OK;
}

/* Items [first, end) of a part, the part's own counted from 0. */
static mr_status run_part(const mr_command *command, int64_t part, int64_t first, int64_t end) {
    mr_conv c;
    mr_conv_part(command, part, &c);
    if (mr_conv_is_direct(&c)) return run_part_directly(command, &c, first, end);
    work w;
    MR_TRY(begin_part(&w, command, part));
    int64_t blocks = blocks_of(&w.c);
    for (int64_t item = first; item < end; item++) {
        if (w.group != item / blocks) {
            w.group = item / blocks;
            if (w.dtype == MR_F32) pack_weights_f32(&w);
            else pack_weights_f64(&w);
        }
        run_block(&w, item % blocks);
    }
    free_work(&w);
    return MR_OK;
}

mr_status mr_conv_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    int64_t begin = 0;
    for (int64_t part = 0; begin < end; part++) {
        mr_conv c;
        mr_conv_part(command, part, &c);
        int64_t items = c.groups * blocks_of(&c), from = first > begin ? first - begin : 0;
        int64_t stop = mr_least(items, end - begin);
        if (from < stop) MR_TRY(run_part(command, part, from, stop));
        begin += items;
    }
    return MR_OK;
}

/* As cuda/family/conv.c cuts the work; see conv.cu. */
void mr_conv_cost(const mr_command *command, mr_cost *out_cost) {
    enum { TILE = 64 * 128, THREADS = 128 };
    const mr_tensor *w = command->operands[2].tensor;
    mr_window window = mr_params_of(command).conv.window;
    bool forward = command->u.op.row->id == MR_OP_conv2d;
    const mr_tensor *result = command->operands[forward ? 0 : 1].tensor;
    double taps = (double)window.size[0] * window.size[1] * (double)w->shape[1];
    double bytes = 0;
    for (uint32_t k = 0; k < command->operand_count; k++)
        bytes += (double)command->operands[k].tensor->numel;
    double blocks = (double)command->operands[0].tensor->numel / TILE + 1;
    *out_cost = (mr_cost){.flops = 2 * (double)result->numel * taps,
                          .bytes = bytes * (double)mr_dtype_size((mr_dtype)w->dtype),
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}
