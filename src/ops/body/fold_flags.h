/* Inside src/ops only: loops for whether any or all elements are other than 0. */
#ifndef MR_OPS_BODY_FOLD_FLAGS_H
#define MR_OPS_BODY_FOLD_FLAGS_H

#include "ops/body/fold_loops.h"

/* The accumulator is a whole number of the element's size. */
extern const mr_fold_loops mr_fold_any_f32, mr_fold_any_f64, mr_fold_any_u8, mr_fold_any_i32,
    mr_fold_any_i64;
extern const mr_fold_loops mr_fold_all_f32, mr_fold_all_f64, mr_fold_all_u8, mr_fold_all_i32,
    mr_fold_all_i64;

#endif
