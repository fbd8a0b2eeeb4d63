/* Inside src/ops only: how a reduction folds many elements into one.
 *
 * Elements are folded in leaves of MR_LEAF, in 64 lanes each; leaves are joined in a binary tree over
 * their numbers. The leaf and the lane of an element, and the tree, depend on positions alone, so
 * the result has the same bits for every slicing. The depth of the tree is logarithmic, and with it
 * the rounding error. */
#ifndef MR_OPS_BODY_FOLD_H
#define MR_OPS_BODY_FOLD_H

#include "ops/body.h"
#include "ops/body/fold_loops.h"
#include "ops/table_reduce.h"

/* The most elements of a row that softmax weighs together with others: so many rows of them are a leaf. */
enum { MR_SHORT_ROW = MR_LEAF / MR_SHORT_ROWS };

/* The value of a leaf or of several joined. The fold decides what the fields hold. */
typedef struct {
    double f, g;
    int64_t i;
} mr_cell;

typedef struct {
    /* `n` (<= MR_LEAF, maybe 0) dense elements, the first at position `first` of all that are reduced. */
    void (*leaf)(const void *x, int64_t n, int64_t first, mr_cell *out);
    void (*join)(mr_cell *left, const mr_cell *right);
    mr_scalar (*final)(const mr_cell *cell, int64_t n, double correction);
    /* Optional, for elements that are reduced while their neighbours in memory belong to other outputs. */
    const mr_fold_loops *loops;
    void (*cell)(const void *accumulators, int64_t column, mr_cell *out);
    /* Optional, for outputs of one leaf each: `count` (<= MR_SHORT_ROWS) outputs of `n` (1 to MR_LEAF) dense elements
     * each, from `apart` to `apart` elements. `out` has room for MR_SHORT_ROWS. It gets for each what `leaf`
     * and `final` would give, with the same bits, as double or, with `rows_are_whole`, as i64. */
    void (*rows)(const void *x, int64_t apart, int64_t n, int64_t count, double correction,
                 void *out);
    bool rows_are_whole;
    /* Optional: replaces the cell's `i`, the position of a leaf of the elements x, by the position of the element.
     * Called for the one leaf whose value is left, or for each leaf. */
    void (*locate)(const void *x, int64_t n, mr_cell *cell);
} mr_fold;

typedef struct {
    const mr_fold *fold[MR_DTYPE_COUNT]; /* by the dtype that is folded; NULL: none is */
    mr_dtype folded[MR_DTYPE_COUNT];     /* by the input's: what it is converted to, leaf by leaf */
} mr_reduction;

#define X(name, ...) extern const mr_reduction mr_reduction_##name;
MR_REDUCE_TABLE(X)
#undef X

/* The steps of softmax and log_softmax for `count` dense elements; the letters are those of the table. */
typedef struct {
    /* Makes k, which may be x, and returns the sum of e. */
    double (*weigh)(const void *x, int64_t count, double max, void *k);
    double (*norm)(double sum);
    void (*result)(void *k, int64_t count, double norm); /* in place */
    /* The same, with the same bits, for `count` (<= MR_SHORT_ROWS) rows of n (<= MR_SHORT_ROW) elements each, from
     * `apart` to `apart` elements. weigh_rows writes e instead of its sums, densely, and may have x as k where both are
     * as far apart. */
    void (*weigh_rows)(const void *x, int64_t apart, int64_t n, int64_t count, const double *max,
                       void *k, int64_t k_apart, void *e);
    void (*result_rows)(void *k, int64_t apart, int64_t n, int64_t count, const double *norm);
} mr_softmax_loops;

typedef struct {
    mr_softmax_loops loops[MR_DTYPE_COUNT]; /* by the dtype computed in: MR_F32, MR_F64 */
} mr_softmax;

#define X(name, ...) extern const mr_softmax mr_softmax_##name;
MR_SOFTMAX_TABLE(X)
#undef X

#endif
