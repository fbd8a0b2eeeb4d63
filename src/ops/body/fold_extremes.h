/* Inside src/ops only: loops for the greatest and the least element, and for where they are. */
#ifndef MR_OPS_BODY_FOLD_EXTREMES_H
#define MR_OPS_BODY_FOLD_EXTREMES_H

#include "ops/body/fold_loops.h"

extern const mr_fold_loops mr_fold_max_f32, mr_fold_max_f64, mr_fold_max_u8, mr_fold_max_i32,
    mr_fold_max_i64;
extern const mr_fold_loops mr_fold_min_f32, mr_fold_min_f64, mr_fold_min_u8, mr_fold_min_i32,
    mr_fold_min_i64;

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
