/* The loops of the ternary family, made from the table. The first input of `where` is a condition, so its
 * type differs from that of the others. */
#if defined(__GNUC__) && !defined(__clang__)
/* gcc would make a tree of cases, with a mask for each, of a selection from the result of another, as in clamp. */
#pragma GCC optimize("no-thread-jumps")
#endif

#include "ops/body/loops.h"
#include "ops/table_ternary.h"

MR_TERNARY_TABLE(MR_DECLARE_LOOPS)
MR_SELECT_TABLE(MR_DECLARE_LOOPS)
MR_MASKED_TABLE(MR_DECLARE_LOOPS)

#define LOOP_OF(name, tag, T_, A, R, store, expression)                                            \
    MR_CLONES static void name##_##tag(void *out_, const void *const *in, unsigned fixed,          \
                                       int64_t n) {                                                \
        (void)fixed;                                                                               \
        typedef T_ T;                                                                              \
        R *out = out_;                                                                             \
        const A *x = in[0];                                                                        \
        const T *y = in[1], *z = in[2];                                                            \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            A a = x[i];                                                                            \
            T b = y[i], c = z[i];                                                                  \
            out[i] = store(R, expression);                                                         \
        }                                                                                          \
    }

#define LOOP(name, tag, T, R, store, expression) LOOP_OF(name, tag, T, T, R, store, expression)
#define SELECT(name, tag, T, R, store, expression)                                                 \
    LOOP_OF(name, tag, T, uint8_t, R, store, expression)

#define X(name, dtypes, result, flops, expression, ...)                                            \
    MR_LOOPS_##dtypes(LOOP, name, result, expression)                                              \
        const mr_elementwise mr_loops_##name = {.kernel = {MR_ENTRIES_##dtypes(name)}};
MR_TERNARY_TABLE(X)
#undef X

#define X(name, dtypes, result, flops, expression, ...)                                            \
    MR_LOOPS_##dtypes(SELECT, name, result, expression) const mr_elementwise mr_loops_##name = {   \
        .kernel = {MR_ENTRIES_##dtypes(name)}, .first_is_bool = true};
MR_SELECT_TABLE(X)
MR_MASKED_TABLE(X)
