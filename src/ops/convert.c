/* Dense blocks from one dtype to another: thirty loops from one list. Numbers convert as mr_dtype_store
 * says: float to integer truncates and saturates, NaN gives 0, integers wrap, bool is != 0. */
#include "ops/body.h"

#include <string.h>

/* The bounds are exact in the floating type: the greatest value below 2^31 or 2^63 is not, the power
 * is. What is not inside (NaN too) never reaches the conversion. */
static inline int32_t i32_from_f32(float v) {
    return v >= 0x1p31f ? INT32_MAX : v >= -0x1p31f ? (int32_t)v : v != v ? 0 : INT32_MIN;
}
static inline int32_t i32_from_f64(double v) {
    return v >= 0x1p31 ? INT32_MAX : v >= -0x1p31 ? (int32_t)v : v != v ? 0 : INT32_MIN;
}
static inline int64_t i64_from_f32(float v) {
    return v >= 0x1p63f ? INT64_MAX : v >= -0x1p63f ? (int64_t)v : v != v ? 0 : INT64_MIN;
}
static inline int64_t i64_from_f64(double v) {
    return v >= 0x1p63 ? INT64_MAX : v >= -0x1p63 ? (int64_t)v : v != v ? 0 : INT64_MIN;
}
static inline uint8_t u8_from_f32(float v) {
    return v >= 255.0f ? 255 : v > 0.0f ? (uint8_t)v : 0;
}
static inline uint8_t u8_from_f64(double v) {
    return v >= 255.0 ? 255 : v > 0.0 ? (uint8_t)v : 0;
}

/* from, its C type, to, its C type, expression of v */
#define CONVERSIONS(X)                                                                             \
    X(BOOL, uint8_t, U8, uint8_t, v != 0)                                                          \
    X(BOOL, uint8_t, I32, int32_t, v != 0)                                                         \
    X(BOOL, uint8_t, I64, int64_t, v != 0)                                                         \
    X(BOOL, uint8_t, F32, float, (float)(v != 0))                                                  \
    X(BOOL, uint8_t, F64, double, (double)(v != 0))                                                \
    X(U8, uint8_t, BOOL, uint8_t, v != 0)                                                          \
    X(U8, uint8_t, I32, int32_t, v)                                                                \
    X(U8, uint8_t, I64, int64_t, v)                                                                \
    X(U8, uint8_t, F32, float, (float)v)                                                           \
    X(U8, uint8_t, F64, double, (double)v)                                                         \
    X(I32, int32_t, BOOL, uint8_t, v != 0)                                                         \
    X(I32, int32_t, U8, uint8_t, (uint8_t)v)                                                       \
    X(I32, int32_t, I64, int64_t, v)                                                               \
    X(I32, int32_t, F32, float, (float)v)                                                          \
    X(I32, int32_t, F64, double, (double)v)                                                        \
    X(I64, int64_t, BOOL, uint8_t, v != 0)                                                         \
    X(I64, int64_t, U8, uint8_t, (uint8_t)v)                                                       \
    X(I64, int64_t, I32, int32_t, (int32_t)v)                                                      \
    X(I64, int64_t, F32, float, (float)v)                                                          \
    X(I64, int64_t, F64, double, (double)v)                                                        \
    X(F32, float, BOOL, uint8_t, v != 0)                                                           \
    X(F32, float, U8, uint8_t, u8_from_f32(v))                                                     \
    X(F32, float, I32, int32_t, i32_from_f32(v))                                                   \
    X(F32, float, I64, int64_t, i64_from_f32(v))                                                   \
    X(F32, float, F64, double, (double)v)                                                          \
    X(F64, double, BOOL, uint8_t, v != 0)                                                          \
    X(F64, double, U8, uint8_t, u8_from_f64(v))                                                    \
    X(F64, double, I32, int32_t, i32_from_f64(v))                                                  \
    X(F64, double, I64, int64_t, i64_from_f64(v))                                                  \
    X(F64, double, F32, float, (float)v)

#define X(from, F, to, T, expression)                                                              \
    MR_CLONES static void from##_to_##to(void *to_, const void *from_, int64_t n) {                \
        const F *restrict f = from_;                                                               \
        T *restrict t = to_;                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                          \
            F v = f[i];                                                                            \
            t[i] = (T)(expression);                                                                \
        }                                                                                          \
    }
CONVERSIONS(X)
#undef X

static void (*const conversions[MR_DTYPE_COUNT][MR_DTYPE_COUNT])(void *, const void *, int64_t) = {
#define X(from, F, to, T, expression) [MR_##from][MR_##to] = from##_to_##to,
    CONVERSIONS(X)
#undef X
};

void mr_convert(mr_dtype to_dtype, void *to, mr_dtype from_dtype, const void *from, int64_t n) {
    if (to_dtype != from_dtype) conversions[from_dtype][to_dtype](to, from, n);
    else if (to != from) memcpy(to, from, (size_t)n * mr_dtype_size(to_dtype));
}
