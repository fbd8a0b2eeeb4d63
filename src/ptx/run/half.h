/* f16 and bf16 in one lane. Arithmetic computes in f64 and rounds once: sums of f16 and all products are exact there.
 * Other results are rounded twice without harm, as f64 has more than twice the digits and two. Only fma needs more
 * care. */
#ifndef MR_PTX_RUN_HALF_H
#define MR_PTX_RUN_HALF_H

#include "ptx/run/arith.h"

typedef enum { PTX_NEAREST, PTX_ZERO, PTX_DOWN, PTX_UP, PTX_AWAY /* .rna */ } ptx_rounding;

typedef struct {
    int exponent_bits, fraction_bits;
} ptx_format;
#define PTX_FORMAT_F16  ((ptx_format){5, 10})
#define PTX_FORMAT_BF16 ((ptx_format){8, 7})
#define PTX_FORMAT_TF32 ((ptx_format){8, 10})

MR_INLINE float ptx_f32_of_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    /* The exponent's bias differs by 112; the product also makes normal what was subnormal. */
    uint32_t bits = mr_bits_f32(mr_from_bits_f32(rest << 13) * 0x1p112f);
    bits = rest >= 0x7c00 ? rest << 13 | 0x7f800000 : bits;
    bits = rest > 0x7c00 ? 0x7fffffff : bits | sign;
    return mr_from_bits_f32(bits);
}
MR_INLINE uint32_t ptx_f32_of_bf16(uint16_t h) {
    return (h & 0x7fff) > 0x7f80 ? 0x7fffffff : (uint32_t)h << 16;
}

/* Rounds once. NaN: all ones but the sign. `finite`: an overflow becomes the largest number. The bits begin at bit
 * 0. */
MR_INLINE uint32_t ptx_narrow(double x, ptx_format format, ptx_rounding rounding, bool finite) {
    int bias = (1 << (format.exponent_bits - 1)) - 1, digits = format.fraction_bits;
    uint32_t infinity = ((1u << format.exponent_bits) - 1) << digits;
    uint64_t bits = mr_bits_f64(x), fraction = bits & (((uint64_t)1 << 52) - 1);
    uint32_t sign = (uint32_t)(bits >> 63) << (format.exponent_bits + digits);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    if (x != x) return infinity | ((1u << digits) - 1);
    if (exponent == 1024) return sign | (finite ? infinity - 1 : infinity);
    uint64_t m = exponent == -1023 ? fraction : fraction | (uint64_t)1 << 52;
    int least = 1 - bias, shift = 52 - digits;
    if (exponent < least) shift += least - exponent;
    if (shift > 62) shift = 62;
    uint64_t kept = m >> shift, rest = m & (((uint64_t)1 << shift) - 1),
             half = (uint64_t)1 << (shift - 1);
    bool negative = bits >> 63;
    kept += rounding == PTX_NEAREST ? rest > half || (rest == half && (kept & 1))
            : rounding == PTX_AWAY  ? rest >= half
            : rounding == PTX_UP    ? rest && !negative
            : rounding == PTX_DOWN  ? rest && negative
                                    : 0;
    uint64_t r = exponent < least
                     ? kept
                     : kept + ((uint64_t)(exponent + bias) << digits) - ((uint64_t)1 << digits);
    if (r >= infinity) {
        bool stays = finite || rounding == PTX_ZERO || (rounding == PTX_UP && negative) ||
                     (rounding == PTX_DOWN && !negative);
        r = stays ? infinity - 1 : infinity;
    }
    return sign | (uint32_t)r;
}

/* x + y rounded to odd: the last bit of an inexact sum is one, so that a second rounding is correct. */
MR_INLINE double ptx_add_to_odd(double x, double y) {
    double s = x + y, t = s - x, error = (x - (s - t)) + (y - t);
    uint64_t bits = mr_bits_f64(s);
    if (error != 0.0 && fabs(s) <= 0x1.fffffffffffffp1023 && !(bits & 1)) {
        bits += (error > 0.0) == (s > 0.0) ? 1 : (uint64_t)-1;
    }
    return mr_from_bits_f64(bits);
}
/* An integer as f64, rounded to odd. */
MR_INLINE double ptx_odd_of_u64(uint64_t a) {
    return a >> 53
               ? mr_from_bits_f64(mr_bits_f64((double)(a & ~(uint64_t)4095)) | ((a & 4095) != 0))
               : (double)a;
}

#endif
