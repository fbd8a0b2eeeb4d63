/* The loops of the unary family, made from the table. */
#include "ops/body/loops.h"
#include "ops/table_unary.h"

MR_UNARY_TABLE(MR_DECLARE_LOOPS)
MR_RANGED_TABLE(MR_DECLARE_LOOPS)

#define LOOP(name, tag, T_, R, store, expression)                                                  \
    MR_CLONES static void name##_##tag(void *out_, const void *const *in, unsigned fixed,          \
                                       int64_t n) {                                                \
        (void)fixed;                                                                               \
        typedef T_ T;                                                                              \
        R *out = out_;                                                                             \
        const T *x = in[0];                                                                        \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = x[i];                                                                            \
            out[i] = store(R, expression);                                                         \
        }                                                                                          \
    }

#define X(name, dtypes, result, flops, expression)                                                 \
    MR_LOOPS_##dtypes(LOOP, name, result, expression) const mr_elementwise mr_loops_##name = {     \
        .kernel = {MR_ENTRIES_##dtypes(name)},                                                     \
        .bool_result = MR_RESULT_##result == MR_RESULT_BOOL};
MR_UNARY_TABLE(X)
#undef X

/* A block in which every element is in range goes the quick way; in another each element is asked. The
 * value of an element is the same in both. */
#define RANGED_LOOP(name, tag, T_, R, store, expression, near, condition)                          \
    MR_CLONES static void name##_##tag(void *out_, const void *const *in, unsigned fixed,          \
                                       int64_t n) {                                                \
        (void)fixed;                                                                               \
        typedef T_ T;                                                                              \
        R *out = out_;                                                                             \
        const T *x = in[0];                                                                        \
        for (int64_t from = 0; from < n; from += MR_BLOCK) {                                       \
            int64_t to = n - from < MR_BLOCK ? n : from + MR_BLOCK;                                \
            int outside = 0;                                                                       \
            for (int64_t i = from; i < to; i++) {                                                  \
                T a = x[i];                                                                        \
                outside += !(condition);                                                           \
            }                                                                                      \
            if (outside) {                                                                         \
                for (int64_t i = from; i < to; i++) {                                              \
                    T a = x[i];                                                                    \
                    out[i] = store(R, expression);                                                 \
                }                                                                                  \
                continue;                                                                          \
            }                                                                                      \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = from; i < to; i++) {                                                  \
                T a = x[i];                                                                        \
                out[i] = store(R, near);                                                           \
            }                                                                                      \
        }                                                                                          \
    }

#define X(name, dtypes, result, flops, expression, near, condition)                                \
    MR_LOOPS_##dtypes(RANGED_LOOP, name, result, expression, near, condition)                      \
        const mr_elementwise mr_loops_##name = {.kernel = {MR_ENTRIES_##dtypes(name)}};
MR_RANGED_TABLE(X)
