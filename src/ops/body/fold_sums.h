/* Inside src/ops only: loops for sums of numbers and of squares, and for products. */
#ifndef MR_OPS_BODY_FOLD_SUMS_H
#define MR_OPS_BODY_FOLD_SUMS_H

#include "ops/body/fold_loops.h"

extern const mr_fold_loops mr_fold_sum_f32, mr_fold_sum_f64, mr_fold_sum_i32, mr_fold_sum_i64;
extern const mr_fold_loops mr_fold_prod_f32, mr_fold_prod_f64, mr_fold_prod_i32, mr_fold_prod_i64;
extern const mr_fold_loops mr_fold_mean_i32;
extern const mr_fold_loops mr_fold_norm_f32, mr_fold_norm_f64, mr_fold_norm_i32;

/* The sums of the squared differences from the rows' means, of rows as `each` takes them; and as `each_short` does. */
typedef struct {
    void (*each)(const void *x, int64_t apart, int64_t n, int64_t count, const double *mean,
                 double *out);
    void (*each_short)(const void *x, int64_t apart, int64_t n, int64_t count, const double *mean,
                       double *out);
} mr_squares_loops;
extern const mr_squares_loops mr_fold_squares_f32, mr_fold_squares_f64, mr_fold_squares_i32;

#endif
