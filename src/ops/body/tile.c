/* Products of packed panels in registers (tile.h). A tile's sums stay in registers as long as the panels last. So its
 * size is that of the instruction set's registers, and the loops over it must be unrolled completely. */
#include "ops/body/tile.h"
#include "ops/body.h"

#include <math.h>

/* Also with sanitizers: which functions are called is decided at run time, not when the program is loaded. */
#if defined(__x86_64__) && defined(__gnu_linux__)
#define HAVE_VECTORS 1
#include <immintrin.h>
#else
#define HAVE_VECTORS 0
#endif

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* ------------------------------------------------------------------------- any processor */

enum { PLAIN_ROWS = 4, PLAIN_COLUMNS = 8 };

#define PLAIN(tag, T, fused)                                                                       \
    static void multiply_##tag(int64_t depth, const void *a_, const void *b_, void *c_,            \
                               int64_t c_row, bool first) {                                        \
        const T *a = a_, *b = b_;                                                                  \
        T *c = c_, sum[PLAIN_ROWS][PLAIN_COLUMNS];                                                 \
        for (int i = 0; i < PLAIN_ROWS; i++)                                                       \
            for (int j = 0; j < PLAIN_COLUMNS; j++) sum[i][j] = first ? 0 : c[i * c_row + j];      \
        for (int64_t d = 0; d < depth; d++)                                                        \
            for (int i = 0; i < PLAIN_ROWS; i++)                                                   \
                for (int j = 0; j < PLAIN_COLUMNS; j++)                                            \
                    sum[i][j] = fused(a[d * PLAIN_ROWS + i], b[d * PLAIN_COLUMNS + j], sum[i][j]); \
        for (int i = 0; i < PLAIN_ROWS; i++)                                                       \
            for (int j = 0; j < PLAIN_COLUMNS; j++) c[i * c_row + j] = sum[i][j];                  \
    }
PLAIN(f32, float, fmaf)
PLAIN(f64, double, fma)

/* ------------------------------------------------------------------------- x86 */

#if HAVE_VECTORS

#define TILE(name, isa, T, V, lanes, height, width, p)                                             \
    __attribute__((target(isa))) static void name(int64_t depth, const void *a_, const void *b_,   \
                                                  void *c_, int64_t c_row, bool first) {           \
        const T *a = a_, *b = b_;                                                                  \
        T *c = c_;                                                                                 \
        V sum[height][width], right[width];                                                        \
        UNROLL for (int i = 0; i < (height); i++) UNROLL for (int j = 0; j < (width); j++)         \
            sum[i][j] = first ? p##_setzero() : p##_loadu(&c[i * c_row + j * (lanes)]);            \
        for (int64_t d = 0; d < depth; d++) {                                                      \
            UNROLL for (int j = 0; j < (width); j++) right[j] = p##_loadu(b + j * (lanes));        \
            UNROLL for (int i = 0; i < (height); i++) {                                            \
                V left = p##_set1(a[i]);                                                           \
                UNROLL for (int j = 0; j < (width); j++) sum[i][j] =                               \
                    p##_fmadd(left, right[j], sum[i][j]);                                          \
            }                                                                                      \
            a += (height);                                                                         \
            b += (width) * (lanes);                                                                \
        }                                                                                          \
        UNROLL for (int i = 0; i < (height); i++) UNROLL for (int j = 0; j < (width); j++)         \
            p##_storeu(&c[i * c_row + j * (lanes)], sum[i][j]);                                    \
    }

#define wide_f32_setzero   _mm512_setzero_ps
#define wide_f32_loadu     _mm512_loadu_ps
#define wide_f32_storeu    _mm512_storeu_ps
#define wide_f32_set1      _mm512_set1_ps
#define wide_f32_fmadd     _mm512_fmadd_ps
#define wide_f64_setzero   _mm512_setzero_pd
#define wide_f64_loadu     _mm512_loadu_pd
#define wide_f64_storeu    _mm512_storeu_pd
#define wide_f64_set1      _mm512_set1_pd
#define wide_f64_fmadd     _mm512_fmadd_pd
#define narrow_f32_setzero _mm256_setzero_ps
#define narrow_f32_loadu   _mm256_loadu_ps
#define narrow_f32_storeu  _mm256_storeu_ps
#define narrow_f32_set1    _mm256_set1_ps
#define narrow_f32_fmadd   _mm256_fmadd_ps
#define narrow_f64_setzero _mm256_setzero_pd
#define narrow_f64_loadu   _mm256_loadu_pd
#define narrow_f64_storeu  _mm256_storeu_pd
#define narrow_f64_set1    _mm256_set1_pd
#define narrow_f64_fmadd   _mm256_fmadd_pd

TILE(multiply_wide_f32, "avx512f", float, __m512, 16, 8, 3, wide_f32)
TILE(multiply_wide_f64, "avx512f", double, __m512d, 8, 8, 3, wide_f64)
TILE(multiply_narrow_f32, "avx2,fma", float, __m256, 8, 4, 3, narrow_f32)
TILE(multiply_narrow_f64, "avx2,fma", double, __m256d, 4, 4, 3, narrow_f64)

typedef enum { ANY, NARROW, WIDE } instructions;
static instructions best(void) {
    if (__builtin_cpu_supports("avx512f")) return WIDE;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? NARROW : ANY;
}

#endif

/* ------------------------------------------------------------------------- the choice */

mr_tile mr_tile_of(mr_dtype dtype) {
    bool single = dtype == MR_F32;
#if HAVE_VECTORS
    switch (best()) {
    case WIDE:
        return single ? (mr_tile){8, 48, multiply_wide_f32} : (mr_tile){8, 24, multiply_wide_f64};
    case NARROW:
        return single ? (mr_tile){4, 24, multiply_narrow_f32}
                      : (mr_tile){4, 12, multiply_narrow_f64};
    default: break;
    }
#endif
    return (mr_tile){PLAIN_ROWS, PLAIN_COLUMNS, single ? multiply_f32 : multiply_f64};
}
