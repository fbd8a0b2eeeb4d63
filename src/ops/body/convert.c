/* Dense blocks from one dtype to another: a loop for each pair, most of them from one list. Numbers convert as
 * mr_dtype_store says: float to i32 and i64 truncates and saturates, to u8 it truncates and wraps; NaN gives 0,
 * integers wrap, bool is != 0. */
#include "ops/body.h"

#include "base/half.h"

#include <string.h>

/* The bounds are exact in the floating type: the greatest value below 2^31 or 2^63 is not, the power is. A value
 * outside of them (NaN too) never reaches the conversion. */
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
/* The integer modulo 256. From 2^31 on all integers that are f32 are multiples of 256, from 2^63 on all that are
 * f64. */
static inline uint8_t u8_from_f32(float v) {
    return v >= -2147483648.0f && v < 2147483648.0f ? (uint8_t)(int32_t)v : 0;
}
static inline uint8_t u8_from_f64(double v) {
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (uint8_t)(int64_t)v : 0;
}

/* Processors have no vectors of this conversion before AVX-512DQ. It is made of what they have: each half of the
 * integer becomes the fraction of a double, and their sum is rounded once. */
static inline double f64_from_i64(int64_t v) {
    uint64_t high = ((uint64_t)v >> 32) ^ 0x4530000080000000,
             low = ((uint64_t)v & 0xffffffff) | 0x4330000000000000;
    double h, l;
    memcpy(&h, &high, sizeof h);
    memcpy(&l, &low, sizeof l);
    return h - (0x1p84 + 0x1p63 + 0x1p52) + l;
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
    X(I64, int64_t, F64, double, f64_from_i64(v))                                                  \
    X(F32, float, BOOL, uint8_t, v != 0)                                                           \
    X(F32, float, U8, uint8_t, u8_from_f32(v))                                                     \
    X(F32, float, I32, int32_t, i32_from_f32(v))                                                   \
    X(F32, float, I64, int64_t, i64_from_f32(v))                                                   \
    X(F32, float, F64, double, (double)v)                                                          \
    X(F64, double, BOOL, uint8_t, v != 0)                                                          \
    X(F64, double, U8, uint8_t, u8_from_f64(v))                                                    \
    X(F64, double, I32, int32_t, i32_from_f64(v))                                                  \
    X(F64, double, I64, int64_t, i64_from_f64(v))                                                  \
    X(F64, double, F32, float, (float)v)                                                           \
    X(BOOL, uint8_t, F16, uint16_t, mr_f16_from_f32((float)(v != 0)))                              \
    X(U8, uint8_t, F16, uint16_t, mr_f16_from_f32((float)v))                                       \
    X(I32, int32_t, F16, uint16_t, mr_f16_from_f64((double)v))                                     \
    X(I64, int64_t, F16, uint16_t, mr_f16_from_i64(v))                                             \
    X(F64, double, F16, uint16_t, mr_f16_from_f64(v))                                              \
    X(F16, uint16_t, BOOL, uint8_t, (v & 0x7fff) != 0)                                             \
    X(F16, uint16_t, U8, uint8_t, u8_from_f32(mr_f32_from_f16(v)))                                 \
    X(F16, uint16_t, I32, int32_t, i32_from_f32(mr_f32_from_f16(v)))                               \
    X(F16, uint16_t, I64, int64_t, i64_from_f32(mr_f32_from_f16(v)))                               \
    X(F16, uint16_t, F64, double, (double)mr_f32_from_f16(v))                                      \
    X(BOOL, uint8_t, BF16, uint16_t, mr_bf16_from_f32((float)(v != 0)))                            \
    X(U8, uint8_t, BF16, uint16_t, mr_bf16_from_f32((float)v))                                     \
    X(I32, int32_t, BF16, uint16_t, mr_bf16_from_f64((double)v))                                   \
    X(I64, int64_t, BF16, uint16_t, mr_bf16_from_i64(v))                                           \
    X(F32, float, BF16, uint16_t, mr_bf16_from_f32(v))                                             \
    X(F64, double, BF16, uint16_t, mr_bf16_from_f64(v))                                            \
    X(BF16, uint16_t, BOOL, uint8_t, (v & 0x7fff) != 0)                                            \
    X(BF16, uint16_t, U8, uint8_t, u8_from_f32(mr_f32_from_bf16(v)))                               \
    X(BF16, uint16_t, I32, int32_t, i32_from_f32(mr_f32_from_bf16(v)))                             \
    X(BF16, uint16_t, I64, int64_t, i64_from_f32(mr_f32_from_bf16(v)))                             \
    X(BF16, uint16_t, F32, float, mr_f32_from_bf16(v))                                             \
    X(BF16, uint16_t, F64, double, (double)mr_f32_from_bf16(v))                                    \
    X(F16, uint16_t, BF16, uint16_t, mr_bf16_from_f32(mr_f32_from_f16(v)))                         \
    X(BF16, uint16_t, F16, uint16_t, mr_f16_from_f32(mr_f32_from_bf16(v)))

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

/* ------------------------------------------------------------------------- f16 and f32 */

/* Processors have instructions for this pair. Those with AVX2 have F16C, too (both are of x86-64-v3). The functions
 * return how many elements they have converted: whole vectors. The rest, and all where there are no such instructions,
 * is converted by functions that give the same bits. */
#if defined(__x86_64__)
#include <immintrin.h>

enum { LANES = 8 };

__attribute__((target("avx2,f16c"))) static int64_t widen_vectors(float *to, const uint16_t *from,
                                                                  int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}

__attribute__((target("avx2,f16c"))) static int64_t narrow_vectors(uint16_t *to, const float *from,
                                                                   int64_t n) {
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

static bool has_f16c(void) {
    return __builtin_cpu_supports("avx2");
}
#else
static int64_t widen_vectors(float *to, const uint16_t *from, int64_t n) {
    return (void)to, (void)from, (void)n, 0;
}
static int64_t narrow_vectors(uint16_t *to, const float *from, int64_t n) {
    return (void)to, (void)from, (void)n, 0;
}
static bool has_f16c(void) {
    return false;
}
#endif

MR_CLONES static void F16_to_F32(void *to_, const void *from_, int64_t n) {
    const uint16_t *restrict from = from_;
    float *restrict to = to_;
    int64_t i = has_f16c() ? widen_vectors(to, from, n) : 0;
    for (; i < n; i++) to[i] = mr_f32_from_f16(from[i]);
}

MR_CLONES static void F32_to_F16(void *to_, const void *from_, int64_t n) {
    const float *restrict from = from_;
    uint16_t *restrict to = to_;
    int64_t i = has_f16c() ? narrow_vectors(to, from, n) : 0;
    for (; i < n; i++) to[i] = mr_f16_from_f32(from[i]);
}

static void (*const conversions[MR_DTYPE_COUNT][MR_DTYPE_COUNT])(void *, const void *, int64_t) = {
#define X(from, F, to, T, expression) [MR_##from][MR_##to] = from##_to_##to,
    CONVERSIONS(X)
#undef X
        [MR_F16][MR_F32] = F16_to_F32,
    [MR_F32][MR_F16] = F32_to_F16,
};

void mr_convert(mr_dtype to_dtype, void *to, mr_dtype from_dtype, const void *from, int64_t n) {
    if (to_dtype != from_dtype) conversions[from_dtype][to_dtype](to, from, n);
    else if (to != from) memcpy(to, from, (size_t)n * mr_dtype_size(to_dtype));
}
