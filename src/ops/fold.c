/* The folds of the reductions: loops over dense elements, made from a list like the operation table. */
#include "ops/fold.h"
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

/* Asks for `bytes` of memory from `ahead` bytes behind x on. Processors do so by themselves, but not beyond a page, and
 * a leaf is two. Nothing is read where there is no memory. */
enum { LINE = 64, AHEAD = 16384 };
static inline void prefetch(const void *x, size_t ahead, size_t bytes) {
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const void *)((uintptr_t)x + ahead + at));
}

/* gcc would unroll such short loops first, and then make no vectors of what is a selection. */
#if defined(__clang__)
#define ROLLED
#else
#define ROLLED _Pragma("GCC unroll 1")
#endif

/* Joins twice as many lanes, in loops of constant length. */
#define JOIN_HALVES(half, joined)                                                                  \
    ROLLED                                                                                         \
    for (int l = 0; l < (half); l++) {                                                             \
        A s = lane[l], o = lane[l + (half)];                                                       \
        lane[l] = (A)(joined);                                                                     \
    }

#define JOIN_LANES(joined)                                                                         \
    JOIN_HALVES(32, joined)                                                                        \
    JOIN_HALVES(16, joined)                                                                        \
    JOIN_HALVES(8, joined)                                                                         \
    JOIN_HALVES(4, joined)                                                                         \
    JOIN_HALVES(2, joined)                                                                         \
    JOIN_HALVES(1, joined)

/* A function of its own: several others call it, and a copy in each costs the compiler seconds and the caller no time.
 * Clang puts no function of several versions into others, and takes no such attribute beside them. */
#ifdef __clang__
#define APART
#else
#define APART __attribute__((noinline))
#endif

/* The same with lanes that are vectors over rows. */
#define JOIN_ROWS(half, joined)                                                                    \
    for (int l = 0; l < (half); l++)                                                               \
        for (int w = 0; w < MR_SHORT_ROWS; w++) {                                                  \
            A s = few[l][w], o = few[l + (half)][w];                                               \
            few[l][w] = (A)(joined);                                                               \
        }
/* The results of `count` rows, whose lanes `lanes` makes. */
#define EACH_ROW(lanes, joined)                                                                    \
    A few[8][MR_SHORT_ROWS];                                                                       \
    if (count > 1 && count < MR_SHORT_ROWS) memset(few, 0, sizeof few);                            \
    for (int64_t w = 0; w < count; w++) {                                                          \
        A lane[MR_LANES];                                                                          \
        lanes;                                                                                     \
        JOIN_HALVES(32, joined)                                                                    \
        JOIN_HALVES(16, joined)                                                                    \
        JOIN_HALVES(8, joined)                                                                     \
        for (int l = 0; l < 8; l++) few[l][w] = lane[l];                                           \
    }                                                                                              \
    if (count == 1) { /* a leaf: no vectors over rows */                                           \
        A lane[8];                                                                                 \
        for (int l = 0; l < 8; l++) lane[l] = few[l][0];                                           \
        JOIN_HALVES(4, joined)                                                                     \
        JOIN_HALVES(2, joined)                                                                     \
        JOIN_HALVES(1, joined)                                                                     \
        out[0] = lane[0];                                                                          \
        return;                                                                                    \
    }                                                                                              \
    JOIN_ROWS(4, joined)                                                                           \
    JOIN_ROWS(2, joined)                                                                           \
    JOIN_ROWS(1, joined)                                                                           \
    memcpy(out, few[0], (size_t)count * sizeof *out);
_Static_assert(MR_LANES == 64, "the lanes are halved down to one");

#define IS_WHOLE(A_) _Generic((A_)0, float : false, double : false, default : true)

/* A cell holds an accumulator in its first eight bytes, as an array of accumulators does. */
#define FOLD(name, tag, T_, load, A_, at_once, begin, step, joined, final_)                        \
    MR_INLINE void name##_lanes_##tag(const T_ *p, int64_t n, A_ *lane) {                          \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        int64_t i = 0;                                                                             \
        if (n < MR_LANES)                                                                          \
            for (int l = 0; l < MR_LANES; l++) lane[l] = (A)begin(tag);                            \
        else                                                                                       \
            for (int l = 0; l < MR_LANES; l++, i++) {                                              \
                T x = load(p[l]);                                                                  \
                A s = (A)begin(tag);                                                               \
                lane[l] = (A)(step);                                                               \
            }                                                                                      \
        for (; i + MR_LANES <= n; i += MR_LANES) {                                                 \
            prefetch(p + i, AHEAD, MR_LANES * sizeof(T));                                          \
            for (int l = 0; l < MR_LANES; l++) {                                                   \
                T x = load(p[i + l]);                                                              \
                A s = lane[l];                                                                     \
                lane[l] = (A)(step);                                                               \
            }                                                                                      \
        }                                                                                          \
        for (int l = 0; i < n; i++, l++) {                                                         \
            T x = load(p[i]);                                                                      \
            A s = lane[l];                                                                         \
            lane[l] = (A)(step);                                                                   \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static APART void name##_each_##tag(const T_ *p, int64_t apart, int64_t n,           \
                                                  int64_t count, A_ *out) {                        \
        typedef A_ A;                                                                              \
        EACH_ROW(name##_lanes_##tag(p + w * apart, n, lane), joined)                               \
    }                                                                                              \
    MR_CLONES static void name##_leaf_##tag(const void *x, int64_t n, int64_t first,               \
                                            mr_cell *out) {                                        \
        typedef A_ A;                                                                              \
        A all, lane[MR_LANES];                                                                     \
        if (sizeof(T_) + sizeof(A) > 2) {                                                          \
            name##_each_##tag(x, 0, n, 1, &all);                                                   \
        } else { /* a leaf of bytes is folded sooner than another function is called */            \
            name##_lanes_##tag(x, n, lane);                                                        \
            JOIN_LANES(joined)                                                                     \
            all = lane[0];                                                                         \
        }                                                                                          \
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
    MR_CLONES static void name##_columns_##tag(const void *x_, const int64_t *row, int64_t rows,   \
                                               int64_t width, void *accumulators) {                \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        const T *p = x_;                                                                           \
        A *acc = accumulators;                                                                     \
        for (int64_t w = 0; w < width; w++) acc[w] = (A)begin(tag);                                \
        int64_t r = 0;                                                                             \
        for (; at_once == 4 && r + 4 <= rows; r += 4) {                                            \
            const T *in[4] = {p + row[r], p + row[r + 1], p + row[r + 2], p + row[r + 3]};         \
            for (int64_t k = r + 4; k < rows && k < r + 8; k++)                                    \
                prefetch(p + row[k], 0, (size_t)width * sizeof(T));                                \
            MR_INDEPENDENT                                                                         \
            for (int64_t w = 0; w < width; w++) {                                                  \
                A s = acc[w];                                                                      \
                T x = load(in[0][w]);                                                              \
                s = (A)(step), x = load(in[1][w]);                                                 \
                s = (A)(step), x = load(in[2][w]);                                                 \
                s = (A)(step), x = load(in[3][w]);                                                 \
                acc[w] = (A)(step);                                                                \
            }                                                                                      \
        }                                                                                          \
        for (; r < rows; r++) {                                                                    \
            const T *in = p + row[r];                                                              \
            MR_INDEPENDENT                                                                         \
            for (int64_t w = 0; w < width; w++) {                                                  \
                T x = load(in[w]);                                                                 \
                A s = acc[w];                                                                      \
                acc[w] = (A)(step);                                                                \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static void name##_join_columns_##tag(void *left, const void *right,                 \
                                                    int64_t width) {                               \
        typedef A_ A;                                                                              \
        A *restrict l = left;                                                                      \
        const A *restrict r = right;                                                               \
        for (int64_t w = 0; w < width; w++) {                                                      \
            A s = l[w], o = r[w];                                                                  \
            l[w] = (A)(joined);                                                                    \
        }                                                                                          \
    }                                                                                              \
    enum { name##_whole_##tag = IS_WHOLE(A_) };                                                    \
    static void name##_cell_##tag(const void *accumulators, int64_t column, mr_cell *out) {        \
        const A_ *acc = accumulators;                                                              \
        memset(out, 0, sizeof *out);                                                               \
        memcpy(out, &acc[column], sizeof *acc);                                                    \
    }

/* The same as `leaf` of each row. Short rows are folded side by side: a lane is a vector over the rows. Lanes that have
 * no element are left out, as joining with what a fold begins with changes nothing. */
#define FOLD_ROWS(name, tag, T_, load, A_, begin, step, joined, final_)                            \
    MR_CLONES static void name##_rows_##tag(const void *x_, int64_t apart, int64_t n_,             \
                                            int64_t count, double correction, void *out_) {        \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        const T *p = x_;                                                                           \
        A lane[MR_SHORT][MR_SHORT_ROWS];                                                           \
        int64_t lanes = n_, n = n_;                                                                \
        (void)correction, (void)n;                                                                 \
        if (n > MR_SHORT) {                                                                        \
            name##_each_##tag(p, apart, n, count, lane[0]);                                        \
            lanes = 0; /* they are joined */                                                       \
        }                                                                                          \
        if (count < MR_SHORT_ROWS) memset(lane, 0, (size_t)lanes * sizeof *lane);                  \
        for (int64_t l = 0; l < lanes; l++)                                                        \
            for (int64_t w = 0; w < count; w++) {                                                  \
                T x = load(p[w * apart + l]);                                                      \
                A s = (A)begin(tag);                                                               \
                lane[l][w] = (A)(step);                                                            \
            }                                                                                      \
        for (int64_t half = MR_LANES / 2; half > 0; half /= 2) {                                   \
            for (int64_t l = 0; l + half < lanes; l++)                                             \
                for (int w = 0; w < MR_SHORT_ROWS; w++) {                                          \
                    A s = lane[l][w], o = lane[l + half][w];                                       \
                    lane[l][w] = (A)(joined);                                                      \
                }                                                                                  \
            if (lanes > half) lanes = half;                                                        \
        }                                                                                          \
        for (int64_t w = 0; w < count; w++) {                                                      \
            A s = lane[0][w];                                                                      \
            STORE_ROW(out_, w, final_);                                                            \
        }                                                                                          \
    }

static inline void store_real(void *out, int64_t w, double v) {
    ((double *)out)[w] = v;
}

static inline void store_whole(void *out, int64_t w, int64_t v) {
    ((int64_t *)out)[w] = v;
}

#define STORE_ROW(out, w, v)                                                                       \
    _Generic((v), float : store_real, double : store_real, default : store_whole)(out, w, v)

#define LOAD(v)      (v)
#define LOAD_BOOL(v) ((v) != 0)
#define FOLD_BOTH(name, tag, T, load, A, at_once, begin, step, join, final)                        \
    FOLD(name, tag, T, load, A, at_once, begin, step, join, final)                                 \
    FOLD_ROWS(name, tag, T, load, A, begin, step, join, final)
#define ALL_FOLDS(name, kind, begin, step, join, final)                                            \
    FOLD_BOTH(name, f32, float, LOAD, A_##kind(float, double), AT_ONCE_##kind, begin, step, join,  \
              final)                                                                               \
    FOLD_BOTH(name, f64, double, LOAD, A_##kind(double, double), AT_ONCE_##kind, begin, step,      \
              join, final)                                                                         \
    FOLD_BOTH(name, u8, uint8_t, LOAD, A_##kind(uint8_t, int64_t), AT_ONCE_##kind, begin, step,    \
              join, final)                                                                         \
    FOLD_BOTH(name, i32, int32_t, LOAD, A_##kind(int32_t, int64_t), AT_ONCE_##kind, begin, step,   \
              join, final)                                                                         \
    FOLD_BOTH(name, i64, int64_t, LOAD, A_##kind(int64_t, int64_t), AT_ONCE_##kind, begin, step,   \
              join, final)                                                                         \
    FOLD_BOTH(name, b8, uint8_t, LOAD_BOOL, A_##kind(uint8_t, int64_t), AT_ONCE_##kind, begin,     \
              step, join, final)

#define ENTRY(name, tag)                                                                           \
    {                                                                                              \
        .leaf = name##_leaf_##tag, .join = name##_join_##tag, .final = name##_final_##tag,         \
        .columns = name##_columns_##tag, .join_columns = name##_join_columns_##tag,                \
        .cell = name##_cell_##tag, .rows = name##_rows_##tag, .rows_are_whole = name##_whole_##tag \
    }

#define X(name, kind, begin, step, join, final)                                                    \
    ALL_FOLDS(name, kind, BEGIN_##begin, step, join, final)                                        \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = ENTRY(name, f32),                \
                                                       [MR_F64] = ENTRY(name, f64),                \
                                                       [MR_U8] = ENTRY(name, u8),                  \
                                                       [MR_I32] = ENTRY(name, i32),                \
                                                       [MR_I64] = ENTRY(name, i64),                \
                                                       [MR_BOOL] = ENTRY(name, b8)}};
FOLDS(X)
#undef X

/* ------------------------------------------------------------------------- argmax, argmin */

/* A cell holds the value (in f; in g's place the integers' own field) and in `i` the position of its leaf, then its
 * own. The value comes from the plain fold; the first element that is equal to it, or NaN with it, is the one. */
#define IS_BETTER_max(a, b) ((a) > (b))
#define IS_BETTER_min(a, b) ((a) < (b))
#define IS_NAN(v)           ((v) != (v))

#define ARG_FOLD(name, base, tag, T, load)                                                         \
    static void name##_leaf_##tag(const void *x, int64_t n, int64_t first, mr_cell *out) {         \
        base##_leaf_##tag(x, n, first, out);                                                       \
        out->i = first;                                                                            \
    }                                                                                              \
    /* A run of elements is asked at once, as vectors can. */                                      \
    MR_INLINE int64_t name##_place_##tag(const T *p, int64_t n, T best) {                          \
        bool nan = IS_NAN(best);                                                                   \
        int64_t i = 0;                                                                             \
        for (; i + MR_LANES <= n; i += MR_LANES) {                                                 \
            int first = MR_LANES;                                                                  \
            for (int l = 0; l < MR_LANES; l++) {                                                   \
                T v = load(p[i + l]);                                                              \
                int at = (v == best) | (nan & IS_NAN(v)) ? l : MR_LANES;                           \
                first = at < first ? at : first;                                                   \
            }                                                                                      \
            if (first < MR_LANES) return i + first;                                                \
        }                                                                                          \
        while (i < n && !(nan ? IS_NAN(load(p[i])) : load(p[i]) == best)) i++;                     \
        return i < n ? i : n - 1; /* it is no more there if somebody writes to the tensor */       \
    }                                                                                              \
    MR_CLONES static void name##_locate_##tag(const void *x, int64_t n, mr_cell *cell) {           \
        T best;                                                                                    \
        memcpy(&best, cell, sizeof best);                                                          \
        cell->i += name##_place_##tag(x, n, best);                                                 \
    }                                                                                              \
    static void name##_join_##tag(mr_cell *left, const mr_cell *right) {                           \
        T a, b;                                                                                    \
        memcpy(&a, left, sizeof a);                                                                \
        memcpy(&b, right, sizeof b);                                                               \
        if (!IS_NAN(a) && (IS_NAN(b) || IS_BETTER_##base(b, a))) *left = *right;                   \
    }                                                                                              \
    MR_CLONES static void name##_rows_##tag(const void *x, int64_t apart, int64_t n,               \
                                            int64_t count, double correction, void *out) {         \
        const T *p = x;                                                                            \
        T best[MR_SHORT_ROWS] = {0};                                                               \
        int64_t *position = out;                                                                   \
        (void)correction;                                                                          \
        if (n > MR_SHORT) {                                                                        \
            base##_each_##tag(p, apart, n, count, best);                                           \
            for (int64_t w = 0; w < count; w++)                                                    \
                position[w] = name##_place_##tag(p + w * apart, n, best[w]) + 1;                   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t w = 0; w < count; w++) best[w] = load(p[w * apart]), position[w] = 1;         \
        for (int64_t i = 1; i < n; i++)                                                            \
            for (int64_t w = 0; w < count; w++) {                                                  \
                T v = load(p[w * apart + i]), b = best[w];                                         \
                bool better = (b == b) & (IS_NAN(v) | IS_BETTER_##base(v, b));                     \
                best[w] = better ? v : b;                                                          \
                position[w] = better ? i + 1 : position[w];                                        \
            }                                                                                      \
    }

static mr_scalar position_final(const mr_cell *cell, int64_t n, double correction) {
    (void)n, (void)correction;
    return integer_scalar(cell->i + 1);
}

#define ARG_ENTRY(name, tag)                                                                       \
    {                                                                                              \
        .leaf = name##_leaf_##tag, .join = name##_join_##tag, .final = position_final,             \
        .locate = name##_locate_##tag, .rows = name##_rows_##tag, .rows_are_whole = true           \
    }
#define ARG_REDUCTION(name, base)                                                                  \
    ARG_FOLD(name, base, f32, float, LOAD)                                                         \
    ARG_FOLD(name, base, f64, double, LOAD)                                                        \
    ARG_FOLD(name, base, u8, uint8_t, LOAD)                                                        \
    ARG_FOLD(name, base, i32, int32_t, LOAD)                                                       \
    ARG_FOLD(name, base, i64, int64_t, LOAD)                                                       \
    ARG_FOLD(name, base, b8, uint8_t, LOAD_BOOL)                                                   \
    const mr_reduction mr_reduction_##name = {.fold = {[MR_F32] = ARG_ENTRY(name, f32),            \
                                                       [MR_F64] = ARG_ENTRY(name, f64),            \
                                                       [MR_U8] = ARG_ENTRY(name, u8),              \
                                                       [MR_I32] = ARG_ENTRY(name, i32),            \
                                                       [MR_I64] = ARG_ENTRY(name, i64),            \
                                                       [MR_BOOL] = ARG_ENTRY(name, b8)}};
ARG_REDUCTION(argmax, max)
ARG_REDUCTION(argmin, min)

/* ------------------------------------------------------------------------- var, std */

/* A cell holds the mean in f, the sum of squared differences from it in g, the count in i. A leaf goes
 * over its elements twice; leaves are joined by Chan's formula, which does not cancel. */
#define VAR_FOLD(tag, T, load)                                                                     \
    MR_INLINE void squares_lanes_##tag(const T *p, int64_t n, double mean, double *lane) {         \
        int64_t i = 0;                                                                             \
        for (int l = 0; l < MR_LANES; l++) lane[l] = 0;                                            \
        for (; i + MR_LANES <= n; i += MR_LANES) {                                                 \
            for (int l = 0; l < MR_LANES; l++) {                                                   \
                double d = (double)load(p[i + l]) - mean;                                          \
                lane[l] += d * d;                                                                  \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            double d = (double)load(p[i]) - mean;                                                  \
            lane[0] += d * d;                                                                      \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static APART void squares_each_##tag(                                                \
        const T *p, int64_t apart, int64_t n, int64_t count, const double *mean, double *out) {    \
        typedef double A;                                                                          \
        EACH_ROW(squares_lanes_##tag(p + w * apart, n, mean[w], lane), s + o)                      \
    }                                                                                              \
    static void var_leaf_##tag(const void *x, int64_t n, int64_t first, mr_cell *out) {            \
        double mean = 0, squares;                                                                  \
        (void)first;                                                                               \
        if (n > 0) {                                                                               \
            mean_each_##tag(x, 0, n, 1, &mean);                                                    \
            mean /= (double)n;                                                                     \
        }                                                                                          \
        squares_each_##tag(x, 0, n, 1, &mean, &squares);                                           \
        *out = (mr_cell){.f = mean, .g = squares, .i = n};                                         \
    }
VAR_FOLD(f32, float, LOAD)
VAR_FOLD(f64, double, LOAD)
VAR_FOLD(u8, uint8_t, LOAD)
VAR_FOLD(i32, int32_t, LOAD)
VAR_FOLD(i64, int64_t, LOAD)
VAR_FOLD(b8, uint8_t, LOAD_BOOL)

static double var_of(double squares, int64_t n, double correction) {
    double freedom = (double)n - correction;
    return squares / (freedom > 0 ? freedom : 0);
}

/* The mean of each row, then the squares around it; a leaf's are those of all its lanes. */
#define VAR_ROWS(tag, T, load)                                                                     \
    MR_CLONES static void var_rows_##tag(const void *x, int64_t apart, int64_t n, int64_t count,   \
                                         double correction, void *out) {                           \
        const T *p = x;                                                                            \
        double mean[MR_SHORT_ROWS] = {0}, squares[MR_SHORT_ROWS] = {0}, *v = out;                  \
        mean_rows_##tag(x, apart, n, count, correction, mean);                                     \
        if (n > MR_SHORT) squares_each_##tag(p, apart, n, count, mean, squares);                   \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                for (int64_t w = 0; w < count; w++) {                                              \
                    double d = (double)load(p[w * apart + i]) - mean[w];                           \
                    squares[w] += d * d;                                                           \
                }                                                                                  \
        for (int64_t w = 0; w < count; w++) v[w] = var_of(squares[w], n, correction);              \
    }                                                                                              \
    static void std_rows_##tag(const void *x, int64_t apart, int64_t n, int64_t count,             \
                               double correction, void *out) {                                     \
        double *v = out;                                                                           \
        var_rows_##tag(x, apart, n, count, correction, out);                                       \
        for (int64_t w = 0; w < count; w++) v[w] = sqrt(v[w]);                                     \
    }
VAR_ROWS(f32, float, LOAD)
VAR_ROWS(f64, double, LOAD)
VAR_ROWS(u8, uint8_t, LOAD)
VAR_ROWS(i32, int32_t, LOAD)
VAR_ROWS(i64, int64_t, LOAD)
VAR_ROWS(b8, uint8_t, LOAD_BOOL)

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
    return real_scalar(sqrt(var_final(cell, n, correction).f));
}

#define VAR_ENTRY(name, tag)                                                                       \
    { .leaf = var_leaf_##tag, .join = var_join, .final = name##_final, .rows = name##_rows_##tag }
#define VAR_REDUCTION(name)                                                                        \
    {                                                                                              \
        .fold = {                                                                                  \
            [MR_F32] = VAR_ENTRY(name, f32),                                                       \
            [MR_F64] = VAR_ENTRY(name, f64),                                                       \
            [MR_U8] = VAR_ENTRY(name, u8),                                                         \
            [MR_I32] = VAR_ENTRY(name, i32),                                                       \
            [MR_I64] = VAR_ENTRY(name, i64),                                                       \
            [MR_BOOL] = VAR_ENTRY(name, b8)                                                        \
        }                                                                                          \
    }
const mr_reduction mr_reduction_var = VAR_REDUCTION(var);
const mr_reduction mr_reduction_std = VAR_REDUCTION(std);
