/* Loops over elements: sums of numbers and of squares, and products. */
#include "ops/body/fold_sums.h"
#include "ops/body/fold_body.h"

#define X(name, kind, begin, step, join, final)                                                    \
    JOIN_COLUMNS(name, f64, double, join)                                                          \
    JOIN_COLUMNS(name, i64, int64_t, join)                                                         \
    FOLD(name, f32, float, double, 4, BEGIN_##begin, step, join, name##_join_f64)                  \
    FOLD(name, f64, double, double, 4, BEGIN_##begin, step, join, name##_join_f64)                 \
    FOLD(name, i32, int32_t, int64_t, 4, BEGIN_##begin, step, join, name##_join_i64)               \
    FOLD(name, i64, int64_t, int64_t, 4, BEGIN_##begin, step, join, name##_join_i64)
FOLDS_WIDE(X)
#undef X

#define X(name, kind, begin, step, join, final)                                                    \
    FOLD(name, i32, int32_t, double, 4, BEGIN_##begin, step, join, sum_join_f64)
FOLDS_MEAN(X)
FOLDS_NORM(X)
#undef X

#define X(name, kind, begin, step, join, final)                                                    \
    FOLD(name, f32, float, double, 4, BEGIN_##begin, step, join, sum_join_f64)                     \
    FOLD(name, f64, double, double, 4, BEGIN_##begin, step, join, sum_join_f64)
FOLDS_NORM(X)
#undef X

#define SQUARES(tag, T)                                                                            \
    MR_INLINE void squares_lanes_##tag(const T *p, int64_t n, double mean, double *lane) {         \
        int64_t i = 0;                                                                             \
        for (int l = 0; l < MR_LANES; l++) lane[l] = 0;                                            \
        for (; i + MR_LANES <= n; i += MR_LANES) {                                                 \
            for (int l = 0; l < MR_LANES; l++) {                                                   \
                double d = (double)p[i + l] - mean;                                                \
                lane[l] += d * d;                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            double d = (double)p[i] - mean;                                                        \
            lane[0] += d * d;                                                                      \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static void squares_each_##tag(const void *x, int64_t apart, int64_t n,              \
                                             int64_t count, const double *mean, double *out) {     \
        typedef double A;                                                                          \
        const T *p = x;                                                                            \
        EACH_ROW(squares_lanes_##tag(p + w * apart, n, mean[w], lane), s + o)                      \
    }                                                                                              \
    MR_CLONES static void squares_each_short_##tag(                                                \
        const void *x, int64_t apart, int64_t n, int64_t count, const double *mean, double *out) { \
        const T *p = x;                                                                            \
        for (int w = 0; w < MR_SHORT_ROWS; w++) out[w] = 0;                                        \
        for (int64_t i = 0; i < n; i++)                                                            \
            for (int64_t w = 0; w < count; w++) {                                                  \
                double d = (double)p[w * apart + i] - mean[w];                                     \
                out[w] += d * d;                                                                   \
            }                                                                                      \
    }                                                                                              \
    const mr_squares_loops mr_fold_squares_##tag = {.each = squares_each_##tag,                    \
                                                    .each_short = squares_each_short_##tag};
SQUARES(f32, float)
SQUARES(f64, double)
SQUARES(i32, int32_t)
