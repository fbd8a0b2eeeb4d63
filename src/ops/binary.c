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

#define X(name, dtypes, result, flops, expression)                                                 \
    MR_LOOPS_##dtypes(LOOP, name, result, expression) const mr_elementwise mr_loops_##name = {     \
        .kernel = {MR_ENTRIES_##dtypes(name)},                                                     \
        .bool_result = MR_RESULT_##result == MR_RESULT_BOOL};
MR_BINARY_TABLE(X)
MR_COMPARE_TABLE(X)
#undef X

/* ------------------------------------------------------------------------- divisions of floats */

/* Inputs are read once where they are single elements: out may be x or y, for all that the compiler knows. */
#define NEAR_QUOTIENTS(tag, T)                                                                     \
    MR_CLONES static bool quotients_are_near_##tag(const T *x, int x_step, const T *y, int y_step, \
                                                   int64_t n) {                                    \
        int outside = 0;                                                                           \
        T a = *x, b = *y;                                                                          \
        if (x_step && y_step)                                                                      \
            for (int64_t i = 0; i < n; i++) outside += !mr_quotient_is_near(x[i], y[i]);           \
        else if (x_step)                                                                           \
            for (int64_t i = 0; i < n; i++) outside += !mr_quotient_is_near(x[i], b);              \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) outside += !mr_quotient_is_near(a, y[i]);              \
        return outside == 0;                                                                       \
    }
NEAR_QUOTIENTS(f32, float)
NEAR_QUOTIENTS(f64, double)

/* A block whose quotients are all near goes the quick way, another through the loop of the table. The value of an
 * element is the same in both. */
#define NEAR_DIVISION(name, tag, T_, near)                                                         \
    MR_CLONES static void name##_near_##tag(T_ *out, const T_ *x, int x_step, const T_ *y,         \
                                            int y_step, int64_t n) {                               \
        T_ first = *x, second = *y;                                                                \
        if (x_step && y_step) {                                                                    \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T_ a = x[i], b = y[i];                                                             \
                out[i] = near;                                                                     \
            }                                                                                      \
        } else if (x_step) {                                                                       \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T_ a = x[i], b = second;                                                           \
                out[i] = near;                                                                     \
            }                                                                                      \
        } else {                                                                                   \
            MR_INDEPENDENT                                                                         \
            for (int64_t i = 0; i < n; i++) {                                                      \
                T_ a = first, b = y[i];                                                            \
                out[i] = near;                                                                     \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void name##_blocks_##tag(void *out_, const void *const *in, unsigned fixed,             \
                                    int64_t n) {                                                   \
        T_ *out = out_;                                                                            \
        const T_ *x = in[0], *y = in[1];                                                           \
        int x_step = !(fixed & 1), y_step = !(fixed & 2);                                          \
        for (int64_t i = 0; i < n; i += MR_BLOCK) {                                                \
            int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;                                   \
            const T_ *a = x + i * x_step, *b = y + i * y_step;                                     \
            if ((x_step || y_step) && quotients_are_near_##tag(a, x_step, b, y_step, count))       \
                name##_near_##tag(out + i, a, x_step, b, y_step, count);                           \
            else name##_##tag(out + i, (const void *const[]){a, b}, fixed, count);                 \
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

/* Powers without special cases, of `a_` and `b_` for each i. For f32 in two loops: one would need more registers than
 * there are. */
#define NEAR_POWERS_f32(a_, b_)                                                                    \
    do {                                                                                           \
        mr_pow_exponent_f32 exponent[MR_BLOCK];                                                    \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = (a_), b = (b_);                                                              \
            exponent[i] = mr_pow_exponent_of_f32(a, b);                                            \
        }                                                                                          \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = (a_), b = (b_);                                                              \
            out[i] = mr_pow_near_f32(a, b, exponent[i]);                                           \
        }                                                                                          \
    } while (0)
#define NEAR_POWERS_f64(a_, b_)                                                                    \
    do {                                                                                           \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                          \
            double a = (a_), b = (b_);                                                             \
            out[i] = mr_pow_near_f64(a, b, mr_pow_exponent_of_f64(a, b));                          \
        }                                                                                          \
    } while (0)

#define CUBES(tag, T)                                                                              \
    MR_CLONES static void cubes_##tag(T *out, const T *x, int64_t n) {                             \
        MR_INDEPENDENT                                                                             \
        for (int64_t i = 0; i < n; i++) out[i] = mr_cube_##tag(x[i]);                              \
    }
CUBES(f32, float)
CUBES(f64, double)

/* A block without special cases goes the quick way, another through the loop of the table. The value of an element is
 * the same in both. `step` is 0 for a single element, which is read once: out may be x or y, for all that the compiler
 * knows. */
#define POWERS(tag, T)                                                                             \
    MR_CLONES static bool powers_are_near_##tag(const T *x, int x_step, const T *y, int y_step,    \
                                                int64_t n) {                                       \
        int outside = 0;                                                                           \
        if (!x_step) outside = !mr_pow_is_near_##tag(*x, 1);                                       \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) outside += !mr_pow_is_near_##tag(x[i], 1);             \
        if (!y_step) outside += !mr_pow_is_near_##tag(1, *y);                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) outside += !mr_pow_is_near_##tag(1, y[i]);             \
        return outside == 0;                                                                       \
    }                                                                                              \
    MR_CLONES static void near_powers_##tag(T *out, const T *x, int x_step, const T *y,            \
                                            int y_step, int64_t n) {                               \
        T base = *x, power[MR_BLOCK];                                                              \
        if (x_step && y_step) NEAR_POWERS_##tag(x[i], y[i]);                                       \
        else if (x_step) {                                                                         \
            /* With one number gcc would make loops for its special cases, and no vectors. */      \
            for (int64_t i = 0; i < n; i++) power[i] = *y;                                         \
            NEAR_POWERS_##tag(x[i], power[i]);                                                     \
        } else NEAR_POWERS_##tag(base, y[i]);                                                      \
    }                                                                                              \
    static void pow_blocks_##tag(void *out_, const void *const *in, unsigned fixed, int64_t n) {   \
        T *out = out_;                                                                             \
        const T *x = in[0], *y = in[1];                                                            \
        int x_step = !(fixed & 1), y_step = !(fixed & 2);                                          \
        if (!y_step && *y == 2) {                                                                  \
            mul_##tag(out, (const void *const[]){x, x}, x_step ? 0 : 3, n);                        \
            return;                                                                                \
        }                                                                                          \
        if (!y_step && *y == 3 && x_step) {                                                        \
            cubes_##tag(out, x, n);                                                                \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < n; i += MR_BLOCK) {                                                \
            int64_t count = n - i < MR_BLOCK ? n - i : MR_BLOCK;                                   \
            const T *a = x + i * x_step, *b = y + i * y_step;                                      \
            if ((x_step || y_step) && powers_are_near_##tag(a, x_step, b, y_step, count))          \
                near_powers_##tag(out + i, a, x_step, b, y_step, count);                           \
            else pow_##tag(out + i, (const void *const[]){a, b}, fixed, count);                    \
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
