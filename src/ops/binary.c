/* The loops of the binary and compare families, out of the table. */
#include "ops/loops.h"

/* One loop for each way in which an input can be a single element. */
#define LOOP(name, tag, T_, R, store, expression)                                                  \
    MR_CLONES static void name##_##tag(void *out_, const void *const *in, unsigned fixed,          \
                                       int64_t n) {                                                \
        typedef T_ T;                                                                              \
        R *out = out_;                                                                             \
        const T *x = in[0], *y = in[1];                                                            \
        if (fixed == 0) {                                                                          \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T a = x[i], b = y[i];                                                              \
                out[i] = store(R, expression);                                                     \
            }                                                                                      \
        } else if (fixed == 1) {                                                                   \
            T a = *x;                                                                              \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T b = y[i];                                                                        \
                out[i] = store(R, expression);                                                     \
            }                                                                                      \
        } else if (fixed == 2) {                                                                   \
            T b = *y;                                                                              \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T a = x[i];                                                                        \
                out[i] = store(R, expression);                                                     \
            }                                                                                      \
        } else {                                                                                   \
            T a = *x, b = *y;                                                                      \
            R v = store(R, expression);                                                            \
            for (int64_t i = 0; i < n; i++) out[i] = v;                                            \
        }                                                                                          \
    }

#define X(name, dtypes, result, flops, expression, help)                                           \
    MR_LOOPS_##dtypes(LOOP, name, result, expression) const mr_elementwise mr_loops_##name = {     \
        .kernel = {MR_ENTRIES_##dtypes(name)},                                                     \
        .bool_result = MR_RESULT_##result == MR_RESULT_BOOL};
MR_BINARY_TABLE(X)
MR_COMPARE_TABLE(X)
