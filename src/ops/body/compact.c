/* The bodies of nonzero and masked_select: the elements of a tensor that a condition selects, in row-major order. The
 * outputs have the number of elements counted before. If the condition has changed since (a race in the script), no
 * more elements are written, and missing ones become 0. One item, as each place depends on all elements before it. */
#include "ops/body.h"

#include <string.h>

int64_t mr_compact_items(const mr_command *command) {
    return command->operands[0].tensor->numel > 0;
}

/* n elements of a tensor that is broadcast to the walk's shape, as another dtype. */
static void load(const mr_walk *walk, int operand, const mr_tensor *t, mr_dtype to, int64_t first,
                 int64_t n, mr_block *block) {
    mr_block raw;
    mr_dtype own = (mr_dtype)t->dtype;
    mr_block *gathered = own == to ? block : &raw;
    mr_gather(mr_tensor_data(t), mr_dtype_size(own), walk->ndim, walk->shape, walk->stride[operand],
              first, n, gathered);
    if (gathered != block) mr_convert(to, block, own, gathered, n);
}

/* ------------------------------------------------------------------------- nonzero */

static void write_coordinates(const mr_tensor *in, int64_t position, int64_t *row) {
    for (int d = in->ndim; d-- > 0;) {
        row[d] = position % in->shape[d] + 1;
        position /= in->shape[d];
    }
}

mr_status mr_nonzero_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    const mr_tensor *out = command->operands[0].tensor, *in = command->operands[1].tensor;
    int64_t *rows = mr_tensor_data(out), found = 0, count = out->shape[0];
    mr_walk walk;
    mr_block block;
    mr_walk_init(&walk, in->ndim, in->shape, 1, &in);
    for (int64_t i = 0; i < in->numel; i += MR_BLOCK) {
        int64_t n = in->numel - i < MR_BLOCK ? in->numel - i : MR_BLOCK;
        load(&walk, 0, in, MR_BOOL, i, n, &block);
        for (int64_t j = 0; j < n; j++)
            if (block.bytes[j] && found < count)
                write_coordinates(in, i + j, rows + found++ * in->ndim);
    }
    memset(rows + found * in->ndim, 0, (size_t)((count - found) * in->ndim) * sizeof *rows);
    return MR_OK;
}

/* ------------------------------------------------------------------------- masked_select */

#define CHOOSE(T)                                                                                  \
    for (int64_t j = 0; j < n; j++)                                                                \
        if (mask.bytes[j] && found < count) ((T *)to)[found++] = ((const T *)&block)[j]

mr_status mr_masked_select_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)state;
    if (first >= end) return MR_OK;
    const mr_tensor *out = command->operands[0].tensor;
    const mr_tensor *const in[] = {command->operands[1].tensor, command->operands[2].tensor};
    size_t size = mr_dtype_size((mr_dtype)out->dtype);
    char *to = mr_tensor_data(out);
    int64_t found = 0, count = out->numel;
    mr_walk walk;
    mr_block block, mask;
    mr_walk_init(&walk, in[0]->ndim, in[0]->shape, 2, in);
    for (int64_t i = 0; i < in[0]->numel; i += MR_BLOCK) {
        int64_t n = in[0]->numel - i < MR_BLOCK ? in[0]->numel - i : MR_BLOCK;
        load(&walk, 0, in[0], (mr_dtype)in[0]->dtype, i, n, &block);
        load(&walk, 1, in[1], MR_BOOL, i, n, &mask);
        switch (size) {
        case 1: CHOOSE(uint8_t); break;
        case 2: CHOOSE(uint16_t); break;
        case 4: CHOOSE(uint32_t); break;
        default: CHOOSE(uint64_t); break;
        }
    }
    memset(to + (size_t)found * size, 0, (size_t)(count - found) * size);
    return MR_OK;
}

/* The condition is read twice: to count, and to choose. */
void mr_compact_cost(const mr_command *command, mr_cost *out_cost) {
    enum { THREADS = 256, PER_THREAD = 16 };
    const mr_tensor *out = command->operands[0].tensor,
                    *condition = command->operands[command->operand_count - 1].tensor;
    bool reads_values = command->operand_count > 2;
    double items = (double)command->operands[1].tensor->numel;
    double results = (double)out->numel * (double)mr_dtype_size((mr_dtype)out->dtype);
    double blocks = items / (THREADS * PER_THREAD) + 1;
    *out_cost = (mr_cost){.flops = items,
                          .bytes = 2 * items * (double)mr_dtype_size((mr_dtype)condition->dtype) +
                                   results * (reads_values ? 2 : 1),
                          .blocks = blocks < UINT32_MAX ? (uint32_t)blocks : UINT32_MAX,
                          .threads = THREADS};
}
