/* Inside src/ops only: the loops of the reductions over dense elements. fold.c makes folds of them.
 *
 * They are apart from fold.c because compiling them is what takes time: each is compiled for several instruction sets
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

extern const mr_fold_loops mr_fold_sum_f32, mr_fold_sum_f64, mr_fold_sum_i32, mr_fold_sum_i64;
extern const mr_fold_loops mr_fold_prod_f32, mr_fold_prod_f64, mr_fold_prod_i32, mr_fold_prod_i64;
extern const mr_fold_loops mr_fold_mean_i32;
extern const mr_fold_loops mr_fold_norm_f32, mr_fold_norm_f64, mr_fold_norm_i32;
extern const mr_fold_loops mr_fold_max_f32, mr_fold_max_f64, mr_fold_max_u8, mr_fold_max_i32,
    mr_fold_max_i64;
extern const mr_fold_loops mr_fold_min_f32, mr_fold_min_f64, mr_fold_min_u8, mr_fold_min_i32,
    mr_fold_min_i64;
/* The accumulator is a whole number of the element's size. */
extern const mr_fold_loops mr_fold_any_f32, mr_fold_any_f64, mr_fold_any_u8, mr_fold_any_i32,
    mr_fold_any_i64;
extern const mr_fold_loops mr_fold_all_f32, mr_fold_all_f64, mr_fold_all_u8, mr_fold_all_i32,
    mr_fold_all_i64;

/* The sums of the squared differences from the rows' means, of rows as `each` takes them; and as `each_short` does. */
typedef struct {
    void (*each)(const void *x, int64_t apart, int64_t n, int64_t count, const double *mean,
                 double *out);
    void (*each_short)(const void *x, int64_t apart, int64_t n, int64_t count, const double *mean,
                       double *out);
} mr_squares_loops;
extern const mr_squares_loops mr_fold_squares_f32, mr_fold_squares_f64, mr_fold_squares_i32;

/* Where the extreme elements are. `place` returns the position of the first of n elements that is *best, or NaN with
 * it. `each_short` has the positions, from 1 on, of the extreme elements of rows of 1 to MR_SHORT elements. */
typedef struct {
    int64_t (*place)(const void *x, int64_t n, const void *best);
    void (*each_short)(const void *x, int64_t apart, int64_t n, int64_t count, int64_t *out);
} mr_place_loops;
extern const mr_place_loops mr_fold_argmax_f32, mr_fold_argmax_f64, mr_fold_argmax_u8,
    mr_fold_argmax_i32, mr_fold_argmax_i64, mr_fold_argmax_b8;
extern const mr_place_loops mr_fold_argmin_f32, mr_fold_argmin_f64, mr_fold_argmin_u8,
    mr_fold_argmin_i32, mr_fold_argmin_i64, mr_fold_argmin_b8;

#endif
