/* The loops of the binary family, made from the table, but for comparisons: compare.c. */
#include "ops/body/binary_loops.h"
#include "ops/table_binary.h"

MR_BINARY_TABLE(MR_DECLARE_LOOPS)
MR_DIVISION_TABLE(MR_DECLARE_LOOPS)
MR_POWER_TABLE(MR_DECLARE_LOOPS)
MR_ACTIVATION_TABLE(MR_DECLARE_LOOPS)

#define X(name, dtypes, result, flops, expression)                                                 \
    MR_LOOPS_##dtypes(LOOP, name, result, expression)                                              \
        const mr_elementwise mr_loops_##name = {.kernel = {MR_ENTRIES_##dtypes(name)}};
MR_BINARY_TABLE(X)
#undef X

/* ------------------------------------------------------------------------- divisions of floats */

#define NEAR_QUOTIENTS(tag, T)                                                                     \
    MR_CLONES static bool quotients_are_near_##tag(const T *x, const T *y, int64_t n) {            \
        int outside = 0;                                                                           \
        for (int64_t i = 0; i < n; i++) outside += !mr_quotient_is_near(x[i], y[i]);               \
        return outside == 0;                                                                       \
    }
NEAR_QUOTIENTS(f32, float)
NEAR_QUOTIENTS(f64, double)

/* A block whose quotients are all near goes the quick way, another through the loop of the table. The value of an
 * element is the same in both. */
#define NEAR_DIVISION(name, tag, T, near)                                                          \
    MR_CLONES static void name##_near_##tag(T *out, const T *x, const T *y, int64_t n) {           \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            T a = x[i], b = y[i];                                                                  \
            out[i] = near;                                                                         \
        }                                                                                          \
    }                                                                                              \
    static void name##_blocks_##tag(void *out_, const void *const *in, unsigned fixed,             \
                                    int64_t n) {                                                   \
        T *out = out_;                                                                             \
        const T *x = in[0], *y = in[1];                                                            \
        for (int64_t i = 0; i < n; i += MR_BLOCK) {                                                \
            int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;                                   \
            if (quotients_are_near_##tag(x + i, y + i, count))                                     \
                name##_near_##tag(out + i, x + i, y + i, count);                                   \
            else name##_##tag(out + i, (const void *const[]){x + i, y + i}, fixed, count);         \
        }                                                                                          \
    }

#define X(name, dtypes, result, flops, expression, near)                                           \
    MR_LOOPS_##dtypes(LOOP, name, result, expression) NEAR_DIVISION(name, f32, float, near)        \
        NEAR_DIVISION(name, f64, double, near)                                                     \
            const mr_elementwise mr_loops_##name = {.kernel = {[MR_F32] = name##_blocks_f32,       \
                                                               [MR_F64] = name##_blocks_f64,       \
                                                               MR_ENTRIES_INTEGERS(name)}};
MR_DIVISION_TABLE(X)
#undef X

/* ------------------------------------------------------------------------- pow of floats */

#define X(name, dtypes, result, flops, expression) MR_LOOPS_##dtypes(LOOP, name, result, expression)
MR_POWER_TABLE(X)
#undef X

/* Powers without special cases, of `a` and y[i]. For f32 in two loops: one would need more registers than there are. */
#define NEAR_POWERS_f32(a)                                                                         \
    do {                                                                                           \
        mr_pow_exponent_f32 exponent[MR_BLOCK];                                                    \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) exponent[i] = mr_pow_exponent_of_f32(a, y[i]);             \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) out[i] = mr_pow_near_f32(a, y[i], exponent[i]);            \
    } while (0)
#define NEAR_POWERS_f64(a)                                                                         \
    do {                                                                                           \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = mr_pow_near_f64(a, y[i], mr_pow_exponent_of_f64(a, y[i]));                    \
    } while (0)

#define CUBES(tag, T)                                                                              \
    MR_CLONES static void cubes_##tag(T *out, const T *x, int64_t n) {                             \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) out[i] = mr_cube_##tag(x[i]);                              \
    }
CUBES(f32, float)
CUBES(f64, double)

/* A block without special cases goes the quick way, another through the loop of the table. The value of an element is
 * the same in both. */
#define POWERS(tag, T)                                                                             \
    MR_CLONES static bool powers_are_near_##tag(const T *x, const T *y, int64_t n) {               \
        int outside = 0;                                                                           \
        for (int64_t i = 0; i < n; i++)                                                            \
            outside += !mr_pow_is_near_##tag(x[i], 1) + !mr_pow_is_near_##tag(1, y[i]);            \
        return outside == 0;                                                                       \
    }                                                                                              \
    /* The logarithm of one base is computed once. */                                              \
    MR_CLONES static void near_powers_##tag(T *out, const T *x, bool one_base, const T *y,         \
                                            int64_t n) {                                           \
        T base = *x;                                                                               \
        if (one_base) NEAR_POWERS_##tag(base);                                                     \
        else NEAR_POWERS_##tag(x[i]);                                                              \
    }                                                                                              \
    static void pow_blocks_##tag(void *out_, const void *const *in, unsigned fixed, int64_t n) {   \
        T *out = out_;                                                                             \
        const T *x = in[0], *y = in[1];                                                            \
        if (fixed & 2 && *y == 2) {                                                                \
            mul_##tag(out, (const void *const[]){x, x}, fixed, n);                                 \
            return;                                                                                \
        }                                                                                          \
        if (fixed == 2 && *y == 3) {                                                               \
            cubes_##tag(out, x, n);                                                                \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i += MR_BLOCK) {                                                \
            int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;                                   \
            if (powers_are_near_##tag(x + i, y + i, count))                                        \
                near_powers_##tag(out + i, x + i, fixed & 1, y + i, count);                        \
            else pow_##tag(out + i, (const void *const[]){x + i, y + i}, fixed, count);            \
        }                                                                                          \
    }
POWERS(f32, float)
POWERS(f64, double)

#define X(name, dtypes, result, flops, expression)                                                 \
    const mr_elementwise mr_loops_##name = {.kernel = {[MR_F32] = name##_blocks_f32,               \
                                                       [MR_F64] = name##_blocks_f64,               \
                                                       [MR_U8] = name##_u8,                        \
                                                       [MR_I32] = name##_i32,                      \
                                                       [MR_I64] = name##_i64}};
MR_POWER_TABLE(X)
#undef X

#define X(name, dtypes, result, flops, expression, parameter, otherwise)                           \
    MR_LOOPS_##dtypes(LOOP, name, result, expression)                                              \
        const mr_elementwise mr_loops_##name = {.kernel = {MR_ENTRIES_##dtypes(name)}};
MR_ACTIVATION_TABLE(X)
