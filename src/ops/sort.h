/* Inside src/ops and src/cuda: the parameters of a command of the SORT family. */
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

/* How a GPU sorts a line of `length` elements for the first `taken`. The cost of the row follows from it, too. */
typedef enum {
    MR_SORT_SHORT, /* by one block, in shared memory */
    MR_SORT_TAKEN, /* the taken elements are found by their digits, and then sorted by one block */
    MR_SORT_ALL,   /* in a pass for each digit */
} mr_sort_way;
enum { MR_SORT_LINE = 2048 }; /* elements that a block sorts */
mr_sort_way mr_sort_way_of(int64_t length, int64_t taken);

/* Bits of the keys that elements of this dtype are sorted by. */
int mr_sort_key_bits(mr_dtype dtype);

#endif
