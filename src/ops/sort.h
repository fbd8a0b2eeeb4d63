/* Inside src/ops and src/cuda: what a command of the SORT family does. */
#ifndef MR_OPS_SORT_H
#define MR_OPS_SORT_H

#include "ops/op.h"

typedef struct {
    const mr_tensor *values; /* NULL: not wanted (argsort) */
    const mr_tensor *order;  /* i64: positions from 1 */
    const mr_tensor *in;
    int dim;
    int64_t taken; /* of each line: all, or the first (topk) */
    bool descending;
} mr_sorting;
mr_sorting mr_sorting_of(const mr_command *command);

/* Bits of the keys that elements of this dtype are sorted by. */
int mr_sort_key_bits(mr_dtype dtype);

#endif
