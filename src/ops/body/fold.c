/* The folds of the reductions, made from the loops. */
#include "ops/body/fold.h"
#include "ops/body/fold_extremes.h"
#include "ops/body/fold_flags.h"
#include "ops/body/fold_sums.h"
#include "ops/expr.h"
#include "ops/fold_table.h"

#include "base/bits.h"

#include <math.h>
#include <string.h>

static mr_scalar real_scalar(double v) {
    return (mr_scalar){.f = v};
}

static mr_scalar integer_scalar(int64_t v) {
    return (mr_scalar){.is_integer = true, .i = v, .f = (double)v};
}

#define SCALAR_OF(v)                                                                               \
    _Generic((v), float : real_scalar, double : real_scalar, default : integer_scalar)(v)

static inline void store_real(void *out, int w, double v) {
    ((double *)out)[w] = v;
}

static inline void store_whole(void *out, int w, int64_t v) {
    ((int64_t *)out)[w] = v;
}

#define STORE_ROW(out, w, v)                                                                       \
    _Generic((v), float : store_real, double : store_real, default : store_whole)(out, w, v)

#define IS_WHOLE(A_) _Generic((A_)0, float : false, double : false, default : true)

/* ------------------------------------------------------------------------- plain folds */

/* A cell holds an accumulator in its first eight bytes, as an array of accumulators does. There are always results
 * of MR_SHORT_ROWS rows, and the last ones may mean nothing: loops of a constant length are quick. */
#define FOLD(name, tag, loops_, A_, joined, final_)                                                \
    static void name##_leaf_##tag(const void *x, int64_t n, int64_t first, mr_cell *out) {         \
        A_ all;                                                                                    \
        loops_.each(x, 0, n, 1, &all);                                                             \
        (void)first;                                                                               \
        memset(out, 0, sizeof *out);                                                               \
        memcpy(out, &all, sizeof all);                                                             \
    }                                                                                              \
    static void name##_join_##tag(mr_cell *left, const mr_cell *right) {                           \
        typedef A_ A;                                                                              \
        A s, o;                                                                                    \
        memcpy(&s, left, sizeof s);                                                                \
        memcpy(&o, right, sizeof o);                                                               \
        s = (A)(joined);                                                                           \
        memcpy(left, &s, sizeof s);                                                                \
    }                                                                                              \
    static mr_scalar name##_final_##tag(const mr_cell *cell, int64_t n, double correction) {       \
        A_ s;                                                                                      \
        (void)n, (void)correction;                                                                 \
        memcpy(&s, cell, sizeof s);                                                                \
        return SCALAR_OF(final_);                                                                  \
    }                                                                                              \
    static void name##_cell_##tag(const void *accumulators, int64_t column, mr_cell *out) {        \
        const A_ *acc = accumulators;                                                              \
        memset(out, 0, sizeof *out);                                                               \
        memcpy(out, &acc[column], sizeof *acc);                                                    \
    }                                                                                              \
    MR_CLONES static void name##_rows_##tag(const void *x, int64_t apart, int64_t n_,              \
                                            int64_t count, double correction, void *out) {         \
        A_ narrow[MR_SHORT_ROWS], *all = sizeof(A_) == 8 ? out : narrow;                           \
        int64_t n = n_;                                                                            \
        (void)correction, (void)n, (void)narrow;                                                   \
        (n_ > MR_SHORT ? loops_.each : loops_.each_short)(x, apart, n_, count, all);               \
        for (int w = 0; w < MR_SHORT_ROWS; w++) {                                                  \
            A_ s = all[w];                                                                         \
            STORE_ROW(out, w, final_);                                                             \
        }                                                                                          \
    }                                                                                              \
    static const mr_fold name##_fold_##tag = {.leaf = name##_leaf_##tag,                           \
                                              .join = name##_join_##tag,                           \
                                              .final = name##_final_##tag,                         \
                                              .cell = name##_cell_##tag,                           \
                                              .loops = &loops_,                                    \
                                              .rows = name##_rows_##tag,                           \
                                              .rows_are_whole = IS_WHOLE(A_)};

/* Halves are folded as f32. Small integers, and i64 for a sum in double, are converted first: that is faster than
 * adding them to wide accumulators, and the sums have the same bits. */
#define FOLDED_SAME                                                                                \
    {                                                                                              \
        [MR_F16] = MR_F32, [MR_BF16] = MR_F32, [MR_F32] = MR_F32, [MR_F64] = MR_F64,               \
        [MR_BOOL] = MR_BOOL, [MR_U8] = MR_U8, [MR_I32] = MR_I32, [MR_I64] = MR_I64                 \
    }
#define FOLDED_WIDE                                                                                \
    {                                                                                              \
        [MR_F16] = MR_F32, [MR_BF16] = MR_F32, [MR_F32] = MR_F32, [MR_F64] = MR_F64,               \
        [MR_BOOL] = MR_I32, [MR_U8] = MR_I32, [MR_I32] = MR_I32, [MR_I64] = MR_I64                 \
    }
#define FOLDED_REAL                                                                                \
    {                                                                                              \
        [MR_F16] = MR_F32, [MR_BF16] = MR_F32, [MR_F32] = MR_F32, [MR_F64] = MR_F64,               \
        [MR_BOOL] = MR_I32, [MR_U8] = MR_I32, [MR_I32] = MR_I32, [MR_I64] = MR_F64                 \
    }

#define X(name, kind, begin, step, join, final)                                                    \
    FOLD(name, f32, mr_fold_##name##_f32, double, join, final)                                     \
    FOLD(name, f64, mr_fold_##name##_f64, double, join, final)                                     \
    FOLD(name, i32, mr_fold_##name##_i32, int64_t, join, final)                                    \
    FOLD(name, i64, mr_fold_##name##_i64, int64_t, join, final)                                    \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = &name##_fold_f32,                \
                                                       [MR_F64] = &name##_fold_f64,                \
                                                       [MR_I32] = &name##_fold_i32,                \
                                                       [MR_I64] = &name##_fold_i64},               \
                                              .folded = FOLDED_WIDE};
FOLDS_WIDE(X)
#undef X

#define REAL_FOLDS(name, floats, join, final)                                                      \
    FOLD(name, f32, mr_fold_##floats##_f32, double, join, final)                                   \
    FOLD(name, f64, mr_fold_##floats##_f64, double, join, final)                                   \
    FOLD(name, i32, mr_fold_##name##_i32, double, join, final)                                     \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = &name##_fold_f32,                \
                                                       [MR_F64] = &name##_fold_f64,                \
                                                       [MR_I32] = &name##_fold_i32},               \
                                              .folded = FOLDED_REAL};
#define X(name, kind, begin, step, join, final) REAL_FOLDS(name, sum, join, final)
FOLDS_MEAN(X)
#undef X
#define X(name, kind, begin, step, join, final) REAL_FOLDS(name, norm, join, final)
FOLDS_NORM(X)
#undef X

/* The accumulators of f32 and f64 have the types F and D. `flags` are the loops that have the result for bools. */
#define NARROW_FOLDS(name, F, D, flags, join, final)                                               \
    FOLD(name, f32, mr_fold_##name##_f32, F, join, final)                                          \
    FOLD(name, f64, mr_fold_##name##_f64, D, join, final)                                          \
    FOLD(name, u8, mr_fold_##name##_u8, uint8_t, join, final)                                      \
    FOLD(name, i32, mr_fold_##name##_i32, int32_t, join, final)                                    \
    FOLD(name, i64, mr_fold_##name##_i64, int64_t, join, final)                                    \
    FOLD(name, b8, mr_fold_##flags##_u8, uint8_t, join, final)                                     \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = &name##_fold_f32,                \
                                                       [MR_F64] = &name##_fold_f64,                \
                                                       [MR_U8] = &name##_fold_u8,                  \
                                                       [MR_I32] = &name##_fold_i32,                \
                                                       [MR_I64] = &name##_fold_i64,                \
                                                       [MR_BOOL] = &name##_fold_b8},               \
                                              .folded = FOLDED_SAME};
#define FLAGS_max any
#define FLAGS_min all
#define X(name, kind, begin, step, join, final)                                                    \
    NARROW_FOLDS_OF(name, float, double, FLAGS_##name, join, final)
#define NARROW_FOLDS_OF(name, F, D, flags, join, final) NARROW_FOLDS(name, F, D, flags, join, final)
FOLDS_SAME(X)
#undef X
#define X(name, kind, begin, step, join, final)                                                    \
    NARROW_FOLDS(name, int32_t, int64_t, name, join, final)
FOLDS_FLAG(X)
#undef X

/* ------------------------------------------------------------------------- argmax, argmin */

/* A cell holds the value (in f; in g's place the integers' own field) and in `i` the position of its leaf, then its
 * own. The value comes from the plain fold; the first element that is equal to it, or NaN with it, is the one. */
#define IS_BETTER_max(a, b) ((a) > (b))
#define IS_BETTER_min(a, b) ((a) < (b))
#define IS_NAN(v)           ((v) != (v))

static mr_scalar position_final(const mr_cell *cell, int64_t n, double correction) {
    (void)n, (void)correction;
    return integer_scalar(cell->i + 1);
}

#define ARG_FOLD(name, base, tag, T)                                                               \
    static void name##_leaf_##tag(const void *x, int64_t n, int64_t first, mr_cell *out) {         \
        base##_leaf_##tag(x, n, first, out);                                                       \
        out->i = first;                                                                            \
    }                                                                                              \
    static void name##_locate_##tag(const void *x, int64_t n, mr_cell *cell) {                     \
        cell->i += mr_fold_##name##_##tag.place(x, n, cell);                                       \
    }                                                                                              \
    static void name##_join_##tag(mr_cell *left, const mr_cell *right) {                           \
        T a, b;                                                                                    \
        memcpy(&a, left, sizeof a);                                                                \
        memcpy(&b, right, sizeof b);                                                               \
        if (!IS_NAN(a) && (IS_NAN(b) || IS_BETTER_##base(b, a))) *left = *right;                   \
    }                                                                                              \
    static void name##_rows_##tag(const void *x, int64_t apart, int64_t n, int64_t count,          \
                                  double correction, void *out) {                                  \
        T best[MR_SHORT_ROWS];                                                                     \
        int64_t *position = out;                                                                   \
        (void)correction;                                                                          \
        if (n <= MR_SHORT) {                                                                       \
            mr_fold_##name##_##tag.each_short(x, apart, n, count, position);                       \
            return;                                                                                \
        }                                                                                          \
        base##_fold_##tag.loops->each(x, apart, n, count, best);                                   \
        for (int64_t w = 0; w < count; w++)                                                        \
            position[w] = mr_fold_##name##_##tag.place((const T *)x + w * apart, n, &best[w]) + 1; \
    }                                                                                              \
    static const mr_fold name##_fold_##tag = {.leaf = name##_leaf_##tag,                           \
                                              .join = name##_join_##tag,                           \
                                              .final = position_final,                             \
                                              .locate = name##_locate_##tag,                       \
                                              .rows = name##_rows_##tag,                           \
                                              .rows_are_whole = true};
#define ARG_REDUCTION(name, base)                                                                  \
    ARG_FOLD(name, base, f32, float)                                                               \
    ARG_FOLD(name, base, f64, double)                                                              \
    ARG_FOLD(name, base, u8, uint8_t)                                                              \
    ARG_FOLD(name, base, i32, int32_t)                                                             \
    ARG_FOLD(name, base, i64, int64_t)                                                             \
    ARG_FOLD(name, base, b8, uint8_t)                                                              \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = &name##_fold_f32,                \
                                                       [MR_F64] = &name##_fold_f64,                \
                                                       [MR_U8] = &name##_fold_u8,                  \
                                                       [MR_I32] = &name##_fold_i32,                \
                                                       [MR_I64] = &name##_fold_i64,                \
                                                       [MR_BOOL] = &name##_fold_b8},               \
                                              .folded = FOLDED_SAME};
ARG_REDUCTION(argmax, max)
ARG_REDUCTION(argmin, min)

/* ------------------------------------------------------------------------- var, std */

static double var_of(double squares, int64_t n, double correction) {
    double freedom = (double)n - correction;
    return squares / (freedom > 0 ? freedom : 0);
}

/* A cell holds the mean in f, the sum of squared differences from it in g, the count in i. A leaf goes
 * over its elements twice; leaves are joined by Chan's formula, which does not cancel. */
static void var_leaf(const mr_fold_loops *sum, const mr_squares_loops *squares, const void *x,
                     int64_t n, mr_cell *out) {
    *out = (mr_cell){.i = n};
    if (n > 0) {
        sum->each(x, 0, n, 1, &out->f);
        out->f /= (double)n;
    }
    squares->each(x, 0, n, 1, &out->f, &out->g);
}

MR_CLONES static void var_rows(const mr_fold_loops *sum, const mr_squares_loops *squares,
                               const void *x, int64_t apart, int64_t n, int64_t count,
                               double correction, double *out) {
    double mean[MR_SHORT_ROWS];
    (n > MR_SHORT ? sum->each : sum->each_short)(x, apart, n, count, mean);
    for (int w = 0; w < MR_SHORT_ROWS; w++) mean[w] /= (double)n;
    (n > MR_SHORT ? squares->each : squares->each_short)(x, apart, n, count, mean, out);
    for (int w = 0; w < MR_SHORT_ROWS; w++) out[w] = var_of(out[w], n, correction);
}

static void var_join(mr_cell *left, const mr_cell *right) {
    if (right->i == 0) return;
    double n = (double)(left->i + right->i), d = right->f - left->f;
    left->f += d * ((double)right->i / n);
    left->g += right->g + d * d * ((double)left->i * (double)right->i / n);
    left->i += right->i;
}

static mr_scalar var_final(const mr_cell *cell, int64_t n, double correction) {
    return real_scalar(var_of(cell->g, n, correction));
}

static mr_scalar std_final(const mr_cell *cell, int64_t n, double correction) {
    return real_scalar(sqrt(var_of(cell->g, n, correction)));
}

#define VAR_FOLDS(tag, sum)                                                                        \
    static void var_leaf_##tag(const void *x, int64_t n, int64_t first, mr_cell *out) {            \
        (void)first;                                                                               \
        var_leaf(&sum, &mr_fold_squares_##tag, x, n, out);                                         \
    }                                                                                              \
    static void var_rows_##tag(const void *x, int64_t apart, int64_t n, int64_t count,             \
                               double correction, void *out) {                                     \
        var_rows(&sum, &mr_fold_squares_##tag, x, apart, n, count, correction, out);               \
    }                                                                                              \
    MR_CLONES static void std_rows_##tag(const void *x, int64_t apart, int64_t n, int64_t count,   \
                                         double correction, void *out) {                           \
        double *v = out;                                                                           \
        var_rows_##tag(x, apart, n, count, correction, out);                                       \
        for (int w = 0; w < MR_SHORT_ROWS; w++) v[w] = sqrt(v[w]);                                 \
    }                                                                                              \
    static const mr_fold var_fold_##tag = {                                                        \
        .leaf = var_leaf_##tag, .join = var_join, .final = var_final, .rows = var_rows_##tag};     \
    static const mr_fold std_fold_##tag = {                                                        \
        .leaf = var_leaf_##tag, .join = var_join, .final = std_final, .rows = std_rows_##tag};
VAR_FOLDS(f32, mr_fold_sum_f32)
VAR_FOLDS(f64, mr_fold_sum_f64)
VAR_FOLDS(i32, mr_fold_mean_i32)

const mr_reduction mr_reduction_var = {
    .fold = {[MR_F32] = &var_fold_f32, [MR_F64] = &var_fold_f64, [MR_I32] = &var_fold_i32},
    .folded = FOLDED_REAL};
const mr_reduction mr_reduction_std = {
    .fold = {[MR_F32] = &std_fold_f32, [MR_F64] = &std_fold_f64, [MR_I32] = &std_fold_i32},
    .folded = FOLDED_REAL};
