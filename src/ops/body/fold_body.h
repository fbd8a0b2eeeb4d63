/* Makes the loops of fold_loops.h. Only the files that define loops include it. */
#ifndef MR_OPS_BODY_FOLD_BODY_H
#define MR_OPS_BODY_FOLD_BODY_H

#include "ops/body.h"
#include "ops/expr.h"
#include "ops/body/fold_loops.h"
#include "ops/fold_table.h"

#include <string.h>

/* Asks for `bytes` of memory from `ahead` bytes after x on. Processors do so by themselves, but not beyond a page, and
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

#define JOIN_LANES_TO_8(joined)                                                                    \
    JOIN_HALVES(32, joined)                                                                        \
    JOIN_HALVES(16, joined)                                                                        \
    JOIN_HALVES(8, joined)
#define JOIN_LANES_TO_1(joined)                                                                    \
    JOIN_HALVES(4, joined)                                                                         \
    JOIN_HALVES(2, joined)                                                                         \
    JOIN_HALVES(1, joined)

/* The same with lanes that are vectors over rows. */
#define JOIN_ROWS(half, joined)                                                                    \
    for (int l = 0; l < (half); l++)                                                               \
        for (int w = 0; w < MR_SHORT_ROWS; w++) {                                                  \
            A s = few[l][w], o = few[l + (half)][w];                                               \
            few[l][w] = (A)(joined);                                                               \
        }

/* The accumulators of `count` rows, whose lanes `lanes` makes. */
#define EACH_ROW(lanes, joined)                                                                    \
    A few[8][MR_SHORT_ROWS];                                                                       \
    if (count > 1 && count < MR_SHORT_ROWS) memset(few, 0, sizeof few);                            \
    for (int64_t w = 0; w < count; w++) {                                                          \
        A lane[MR_LANES];                                                                          \
        lanes;                                                                                     \
        JOIN_LANES_TO_8(joined)                                                                    \
        for (int l = 0; l < 8; l++) few[l][w] = lane[l];                                           \
    }                                                                                              \
    if (count == 1) { /* a leaf: no vectors over rows */                                           \
        A lane[8];                                                                                 \
        for (int l = 0; l < 8; l++) lane[l] = few[l][0];                                           \
        JOIN_LANES_TO_1(joined)                                                                    \
        out[0] = lane[0];                                                                          \
        return;                                                                                    \
    }                                                                                              \
    JOIN_ROWS(4, joined)                                                                           \
    JOIN_ROWS(2, joined)                                                                           \
    JOIN_ROWS(1, joined)                                                                           \
    memcpy(out, few[0], sizeof few[0]);
_Static_assert(MR_LANES == 64, "the lanes are halved down to one");

#define EACH(name, tag, T_, A_, begin, step, joined)                                               \
    MR_INLINE void name##_lanes_##tag(const T_ *p, int64_t n, A_ *lane) {                          \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        int64_t i = 0;                                                                             \
        if (n < MR_LANES)                                                                          \
            for (int l = 0; l < MR_LANES; l++) lane[l] = (A)begin(tag);                            \
        else                                                                                       \
            for (int l = 0; l < MR_LANES; l++, i++) {                                              \
                T x = p[l];                                                                        \
                A s = (A)begin(tag);                                                               \
                lane[l] = (A)(step);                                                               \
            }                                                                                      \
        for (; i + MR_LANES <= n; i += MR_LANES) {                                                 \
            prefetch(p + i, AHEAD, MR_LANES * sizeof(T));                                          \
            for (int l = 0; l < MR_LANES; l++) {                                                   \
                T x = p[i + l];                                                                    \
                A s = lane[l];                                                                     \
                lane[l] = (A)(step);                                                               \
            }                                                                                      \
        }                                                                                          \
        for (int l = 0; i < n; i++, l++) {                                                         \
            T x = p[i];                                                                            \
            A s = lane[l];                                                                         \
            lane[l] = (A)(step);                                                                   \
        }                                                                                          \
    }                                                                                              \
    MR_CLONES static void name##_each_##tag(const void *x_, int64_t apart, int64_t n,              \
                                            int64_t count, void *out_) {                           \
        typedef A_ A;                                                                              \
        const T_ *p = x_;                                                                          \
        A *out = out_;                                                                             \
        if (sizeof(T_) == 1 &&                                                                     \
            count == 1) { /* a leaf of bytes is folded before `few` is filled */                   \
            A lane[MR_LANES];                                                                      \
            name##_lanes_##tag(p, n, lane);                                                        \
            JOIN_LANES_TO_8(joined)                                                                \
            JOIN_LANES_TO_1(joined)                                                                \
            out[0] = lane[0];                                                                      \
            return;                                                                                \
        }                                                                                          \
        EACH_ROW(name##_lanes_##tag(p + w * apart, n, lane), joined)                               \
    }

/* Short rows are folded side by side: a lane is a vector over the rows. Lanes that have no element are left out, as
 * joining with what a fold begins with changes nothing. */
#define EACH_SHORT(name, tag, T_, A_, begin, step, joined)                                         \
    MR_CLONES static void name##_each_short_##tag(const void *x_, int64_t apart, int64_t n,        \
                                                  int64_t count, void *out) {                      \
        typedef T_ T;                                                                              \
        typedef A_ A;                                                                              \
        const T *p = x_;                                                                           \
        A lane[MR_SHORT][MR_SHORT_ROWS];                                                           \
        if (count < MR_SHORT_ROWS) memset(lane, 0, (size_t)n * sizeof *lane);                      \
        for (int64_t l = 0; l < n; l++)                                                            \
            for (int64_t w = 0; w < count; w++) {                                                  \
                T x = p[w * apart + l];                                                            \
                A s = (A)begin(tag);                                                               \
                lane[l][w] = (A)(step);                                                            \
            }                                                                                      \
        for (int64_t half = MR_LANES / 2; half > 0; half /= 2) {                                   \
            for (int64_t l = 0; l + half < n; l++)                                                 \
                for (int w = 0; w < MR_SHORT_ROWS; w++) {                                          \
                    A s = lane[l][w], o = lane[l + half][w];                                       \
                    lane[l][w] = (A)(joined);                                                      \
                }                                                                                  \
            if (n > half) n = half;                                                                \
        }                                                                                          \
        memcpy(out, lane[0], sizeof lane[0]);                                                      \
    }

/* `at_once`: how many rows are taken at a time, 1 or 4. With 4, accumulators are loaded and stored less; 1 is for
 * selections, which the compiler would turn into branches. */
#define COLUMNS(name, tag, T_, A_, at_once, begin, step)                                           \
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
                T x = in[0][w];                                                                    \
                s = (A)(step), x = in[1][w];                                                       \
                s = (A)(step), x = in[2][w];                                                       \
                s = (A)(step), x = in[3][w];                                                       \
                acc[w] = (A)(step);                                                                \
            }                                                                                      \
        }                                                                                          \
        for (; r < rows; r++) {                                                                    \
            const T *in = p + row[r];                                                              \
            MR_INDEPENDENT                                                                         \
            for (int64_t w = 0; w < width; w++) {                                                  \
                T x = in[w];                                                                       \
                A s = acc[w];                                                                      \
                acc[w] = (A)(step);                                                                \
            }                                                                                      \
        }                                                                                          \
    }

/* One for all folds that join such accumulators in the same way. */
#define JOIN_COLUMNS(name, tag, A_, joined)                                                        \
    MR_CLONES static void name##_join_##tag(void *left, const void *right, int64_t width) {        \
        typedef A_ A;                                                                              \
        A *restrict l = left;                                                                      \
        const A *restrict r = right;                                                               \
        for (int64_t w = 0; w < width; w++) {                                                      \
            A s = l[w], o = r[w];                                                                  \
            l[w] = (A)(joined);                                                                    \
        }                                                                                          \
    }

#define FOLD(name, tag, T, A, at_once, begin, step, joined, join_columns_)                         \
    EACH(name, tag, T, A, begin, step, joined)                                                     \
    EACH_SHORT(name, tag, T, A, begin, step, joined)                                               \
    COLUMNS(name, tag, T, A, at_once, begin, step)                                                 \
    const mr_fold_loops mr_fold_##name##_##tag = {.each = name##_each_##tag,                       \
                                                  .each_short = name##_each_short_##tag,           \
                                                  .columns = name##_columns_##tag,                 \
                                                  .join_columns = join_columns_};

#endif
