/* The formats f16 (IEEE 754 binary16) and bf16 (the upper half of an f32): one number to and from the wider types.
 *
 * Every conversion to a half rounds once, to nearest, even at the middle; what is too large becomes infinite. A NaN
 * stays one: it keeps its sign and the upper bits of its payload, and becomes quiet, as processors do it (F16C). There
 * are no branches, so that the compiler can vectorize a loop. */
#ifndef MR_BASE_HALF_H
#define MR_BASE_HALF_H

#include "base/bits.h"

MR_INLINE float mr_f32_from_f16(uint16_t h) {
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = h & 0x7fff;
    uint32_t normal = (rest << 13) + (112u << 23); /* the exponents' biases are 15 and 127 */
    uint32_t subnormal = mr_bits_f32((float)(int32_t)rest * 0x1p-24f);
    uint32_t special = rest << 13 | 0x7f800000 | (rest > 0x7c00 ? 0x400000 : 0);
    uint32_t bits = rest < 0x400 ? subnormal : normal;
    bits = rest >= 0x7c00 ? special : bits;
    return mr_from_bits_f32(bits | sign);
}

MR_INLINE float mr_f32_from_bf16(uint16_t h) {
    return mr_from_bits_f32((uint32_t)h << 16 | ((h & 0x7fff) > 0x7f80 ? 0x400000 : 0));
}

MR_INLINE uint16_t mr_f16_from_f32(float x) {
    uint32_t bits = mr_bits_f32(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    uint32_t normal = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
    /* The last bit of a sum with 0.5 counts 2^-24, as that of a subnormal f16 does. */
    uint32_t subnormal = mr_bits_f32(mr_from_bits_f32(rest) + 0.5f) - 0x3f000000;
    uint32_t nan = 0x7e00 | (rest >> 13 & 0x3ff);
    uint32_t h = rest < 0x38800000 ? subnormal : normal; /* 2^-14 */
    h = rest >= 0x477ff000 ? 0x7c00 : h;                 /* 65520, half way to 2^16 */
    h = rest > 0x7f800000 ? nan : h;
    return (uint16_t)(h | sign);
}

MR_INLINE uint16_t mr_bf16_from_f32(float x) {
    uint32_t bits = mr_bits_f32(x);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, nan = bits >> 16 | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

/* Rounded to odd: if 24 digits do not represent the number exactly, the last of them is 1. So a later rounding to fewer
 * digits knows on which side of a middle the number was. Exact as an f32 unless that is subnormal or infinite. */
MR_INLINE double mr_odd_f64(double x) {
    uint64_t bits = mr_bits_f64(x), unit = (uint64_t)1 << 29, lost = bits & (unit - 1);
    return mr_from_bits_f64((bits - lost) | (lost ? unit : 0));
}

MR_INLINE uint16_t mr_f16_from_f64(double x) {
    return mr_f16_from_f32((float)mr_odd_f64(x));
}

MR_INLINE uint16_t mr_bf16_from_f64(double x) {
    /* A subnormal bf16 is a subnormal f32 too. The last bit of a sum with 2^-81 counts 2^-133, as that of a subnormal
     * bf16 does. */
    uint64_t bits = mr_bits_f64(x), sign = bits & (uint64_t)1 << 63;
    double size = mr_from_bits_f64(bits - sign), subnormal = (size + 0x1p-81) - 0x1p-81;
    double odd = mr_odd_f64(x), small = mr_from_bits_f64(mr_bits_f64(subnormal) | sign);
    return mr_bf16_from_f32((float)(size < 0x1p-126 ? small : odd));
}

/* The integers that f32 cannot represent are infinite in f16. */
MR_INLINE uint16_t mr_f16_from_i64(int64_t i) {
    return mr_f16_from_f32((float)i);
}

/* From 2^53 on, f64 cannot represent all integers. The lower bits are combined into one, which is 1 if any of them
 * was. */
MR_INLINE uint16_t mr_bf16_from_i64(int64_t i) {
    uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i, low = size & 0xfff;
    size = size >> 53 ? (size - low) | (low ? 0x1000 : 0) : size;
    return mr_bf16_from_f64(i < 0 ? -(double)size : (double)size);
}

/* The next number below a finite one, in either format. */
MR_INLINE uint16_t mr_half_below(uint16_t h) {
    if ((h & 0x7fff) == 0) return 0x8001;
    return (uint16_t)(h & 0x8000 ? h + 1 : h - 1);
}

#endif
