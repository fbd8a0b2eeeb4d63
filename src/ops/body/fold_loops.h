/* Inside src/ops only: the types of loops of the reductions over dense elements. The loops are in fold_sums.h,
 * fold_extremes.h and fold_flags.h, and fold.c makes folds from them.
 *
 * They are separate from fold.c because compiling them takes long: each is compiled for several instruction sets
 * (body.h). So there are only loops that differ. A mean of floats is folded like their sum, and the maximum of flags
 * like `any`. Elements of other types are converted first where that costs no time (fold.c). */
#ifndef MR_OPS_BODY_FOLD_LOOPS_H
#define MR_OPS_BODY_FOLD_LOOPS_H

#include <stdint.h>

enum { MR_LEAF = 2048, MR_LANES = 64, MR_COLUMNS = 512, MR_LEAF_ROWS = 32 };
/* The most elements of rows that are folded side by side, and how many rows, of any length, are asked for at a time. */
enum { MR_SHORT = MR_LANES - 1, MR_SHORT_ROWS = 16 };

/* The loops of a fold over elements of one type. Accumulators lie densely. */
typedef struct {
    /* The accumulator of each of `count` (<= MR_SHORT_ROWS) rows of n (<= MR_LEAF, maybe 0) elements each, from
     * `apart` to `apart` elements. A leaf is one row. With several, MR_SHORT_ROWS accumulators are written; the last
     * ones may mean nothing. */
    void (*each)(const void *x, int64_t apart, int64_t n, int64_t count, void *out);
    /* The same, with the same bits, for rows of 1 to MR_SHORT elements. MR_SHORT_ROWS accumulators are written. */
    void (*each_short)(const void *x, int64_t apart, int64_t n, int64_t count, void *out);
    /* Folds `rows` (<= MR_LEAF_ROWS) rows of `width` (<= MR_COLUMNS) elements, which are the columns; row r begins at
     * element row[r] of x. Accumulators take 8 bytes each at most. */
    void (*columns)(const void *x, const int64_t *row, int64_t rows, int64_t width,
                    void *accumulators);
    void (*join_columns)(void *left, const void *right, int64_t width);
} mr_fold_loops;

#endif
