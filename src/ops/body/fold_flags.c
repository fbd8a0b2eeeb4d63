/* Loops over elements: whether any or all are other than 0. An accumulator is as wide as an element, so that vectors of
 * both have as many. */
#include "ops/body/fold_flags.h"
#include "ops/body/fold_body.h"

#define X(name, kind, begin, step, join, final)                                                    \
    JOIN_COLUMNS(name, u8, uint8_t, join)                                                          \
    JOIN_COLUMNS(name, i32, int32_t, join)                                                         \
    JOIN_COLUMNS(name, i64, int64_t, join)                                                         \
    FOLD(name, u8, uint8_t, uint8_t, 1, BEGIN_##begin, step, join, name##_join_u8)                 \
    FOLD(name, i32, int32_t, int32_t, 1, BEGIN_##begin, step, join, name##_join_i32)               \
    FOLD(name, f32, float, int32_t, 1, BEGIN_##begin, step, join, name##_join_i32)                 \
    FOLD(name, i64, int64_t, int64_t, 1, BEGIN_##begin, step, join, name##_join_i64)               \
    FOLD(name, f64, double, int64_t, 1, BEGIN_##begin, step, join, name##_join_i64)
FOLDS_FLAG(X)
