/* Loops over elements: the greatest and the least, and where they are. */
#include "ops/body/fold_extremes.h"
#include "ops/body/fold_body.h"

#define BOTH(name, tag, T, begin, step, join)                                                      \
    JOIN_COLUMNS(name, tag, T, join)                                                               \
    FOLD(name, tag, T, T, 1, begin, step, join, name##_join_##tag)
#define X(name, kind, begin, step, join, final)                                                    \
    BOTH(name, f32, float, BEGIN_##begin, step, join)                                              \
    BOTH(name, f64, double, BEGIN_##begin, step, join)                                             \
    BOTH(name, u8, uint8_t, BEGIN_##begin, step, join)                                             \
    BOTH(name, i32, int32_t, BEGIN_##begin, step, join)                                            \
    BOTH(name, i64, int64_t, BEGIN_##begin, step, join)
FOLDS_SAME(X)
#undef X

#define LOAD(v)             (v)
#define LOAD_BOOL(v)        ((v) != 0)
#define IS_NAN(v)           ((v) != (v))
#define IS_BETTER_max(a, b) ((a) > (b))
#define IS_BETTER_min(a, b) ((a) < (b))

/* A run of elements is asked at once, as vectors can. */
#define PLACE(name, base, tag, T, load)                                                            \
    MR_CLONES static int64_t name##_place_##tag(const void *x, int64_t n, const void *best_) {     \
        const T *p = x;                                                                            \
        T best;                                                                                    \
        memcpy(&best, best_, sizeof best);                                                         \
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
        return i < n ? i : n - 1; /* not found if the tensor is written meanwhile */               \
    }                                                                                              \
    MR_CLONES static void name##_each_short_##tag(const void *x, int64_t apart, int64_t n,         \
                                                  int64_t count, int64_t *position) {              \
        const T *p = x;                                                                            \
        T best[MR_SHORT_ROWS] = {0};                                                               \
        for (int64_t w = 0; w < count; w++) best[w] = load(p[w * apart]), position[w] = 1;         \
        for (int64_t i = 1; i < n; i++)                                                            \
            for (int64_t w = 0; w < count; w++) {                                                  \
                T v = load(p[w * apart + i]), b = best[w];                                         \
                bool better = (b == b) & (IS_NAN(v) | IS_BETTER_##base(v, b));                     \
                best[w] = better ? v : b;                                                          \
                position[w] = better ? i + 1 : position[w];                                        \
            }                                                                                      \
    }                                                                                              \
    const mr_place_loops mr_fold_##name##_##tag = {.place = name##_place_##tag,                    \
                                                   .each_short = name##_each_short_##tag};
#define PLACES(name, base)                                                                         \
    PLACE(name, base, f32, float, LOAD)                                                            \
    PLACE(name, base, f64, double, LOAD)                                                           \
    PLACE(name, base, u8, uint8_t, LOAD)                                                           \
    PLACE(name, base, i32, int32_t, LOAD)                                                          \
    PLACE(name, base, i64, int64_t, LOAD)                                                          \
    PLACE(name, base, b8, uint8_t, LOAD_BOOL)
PLACES(argmax, max)
PLACES(argmin, min)
