/* The arithmetic of one lane, as PTX defines it where C does not: shifts and divisions with any operands, conversions
 * of any value, NaN with one pattern of bits. No function here branches on its operands where that can be avoided, so a
 * loop over the lanes becomes vectors. The loops must not be compiled with contraction of a * b + c. */
#ifndef MR_PTX_RUN_ARITH_H
#define MR_PTX_RUN_ARITH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

/* ---- integers */

MR_INLINE uint32_t ptx_shl_32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a << (n & 31);
}
MR_INLINE uint64_t ptx_shl_64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a << (n & 63);
}
MR_INLINE uint32_t ptx_shr_32(uint32_t a, uint32_t n) {
    return n > 31 ? 0 : a >> (n & 31);
}
MR_INLINE uint64_t ptx_shr_64(uint64_t a, uint32_t n) {
    return n > 63 ? 0 : a >> (n & 63);
}
MR_INLINE int32_t ptx_sar_32(int32_t a, uint32_t n) {
    return a >> (n > 31 ? 31 : n);
}
MR_INLINE int64_t ptx_sar_64(int64_t a, uint32_t n) {
    return a >> (n > 63 ? 63 : n);
}

/* The hardware gives all ones for x / 0 and x for x % 0; PTX leaves them open. */
MR_INLINE uint32_t ptx_div_u32(uint32_t a, uint32_t b) {
    return b == 0 ? UINT32_MAX : a / b;
}
MR_INLINE uint32_t ptx_rem_u32(uint32_t a, uint32_t b) {
    return b == 0 ? a : a % b;
}
MR_INLINE uint64_t ptx_div_u64(uint64_t a, uint64_t b) {
    return b == 0 ? UINT64_MAX : a / b;
}
MR_INLINE uint64_t ptx_rem_u64(uint64_t a, uint64_t b) {
    return b == 0 ? a : a % b;
}
MR_INLINE int32_t ptx_div_s32(int32_t a, int32_t b) {
    return b == 0 ? -1 : b == -1 ? (int32_t)(0 - (uint32_t)a) : a / b;
}
MR_INLINE int32_t ptx_rem_s32(int32_t a, int32_t b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
}
MR_INLINE int64_t ptx_div_s64(int64_t a, int64_t b) {
    return b == 0 ? -1 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
MR_INLINE int64_t ptx_rem_s64(int64_t a, int64_t b) {
    return b == 0 ? a : b == -1 ? 0 : a % b;
}

MR_INLINE uint64_t ptx_mul_hi_u64(uint64_t a, uint64_t b) {
    return (uint64_t)(((unsigned __int128)a * b) >> 64);
}
MR_INLINE int64_t ptx_mul_hi_s64(int64_t a, int64_t b) {
    return (int64_t)(((__int128)a * b) >> 64);
}
MR_INLINE int32_t ptx_clamp_s32(int64_t x) {
    return x > INT32_MAX ? INT32_MAX : x < INT32_MIN ? INT32_MIN : (int32_t)x;
}
MR_INLINE int64_t ptx_mul24_s(int32_t a, int32_t b) {
    return (int64_t)((int32_t)((uint32_t)a << 8) >> 8) * ((int32_t)((uint32_t)b << 8) >> 8);
}
MR_INLINE uint64_t ptx_mul24_u(uint32_t a, uint32_t b) {
    return (uint64_t)(a & 0xffffff) * (b & 0xffffff);
}

MR_INLINE uint32_t ptx_popc_32(uint32_t a) {
    a -= (a >> 1) & 0x55555555;
    a = (a & 0x33333333) + ((a >> 2) & 0x33333333);
    return (((a + (a >> 4)) & 0x0f0f0f0f) * 0x01010101) >> 24;
}
MR_INLINE uint32_t ptx_clz_32(uint32_t a) {
    return a ? (uint32_t)__builtin_clz(a) : 32;
}
MR_INLINE uint32_t ptx_clz_64(uint64_t a) {
    return a ? (uint32_t)__builtin_clzll(a) : 64;
}
MR_INLINE uint32_t ptx_brev_32(uint32_t a) {
    a = ((a >> 1) & 0x55555555) | ((a & 0x55555555) << 1);
    a = ((a >> 2) & 0x33333333) | ((a & 0x33333333) << 2);
    a = ((a >> 4) & 0x0f0f0f0f) | ((a & 0x0f0f0f0f) << 4);
    a = ((a >> 8) & 0x00ff00ff) | ((a & 0x00ff00ff) << 8);
    return a >> 16 | a << 16;
}
MR_INLINE uint64_t ptx_brev_64(uint64_t a) {
    return (uint64_t)ptx_brev_32((uint32_t)a) << 32 | ptx_brev_32((uint32_t)(a >> 32));
}
/* The position of the highest bit that is not a copy of the sign; -1: there is none. */
MR_INLINE uint32_t ptx_bfind_32(uint32_t a) {
    return 31 - ptx_clz_32(a);
}
MR_INLINE uint32_t ptx_bfind_64(uint64_t a) {
    return 63 - ptx_clz_64(a);
}
MR_INLINE uint32_t ptx_shiftamt_32(uint32_t found) {
    return found == UINT32_MAX ? found : 31 - found;
}
MR_INLINE uint32_t ptx_shiftamt_64(uint32_t found) {
    return found == UINT32_MAX ? found : 63 - found;
}

/* Only the low 8 bits of position and length count. */
MR_INLINE uint32_t ptx_bfe_u32(uint32_t a, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    uint32_t field = ptx_shr_32(a, pos);
    return len > 31 ? field : field & ((1u << len) - 1);
}
MR_INLINE uint64_t ptx_bfe_u64(uint64_t a, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    uint64_t field = ptx_shr_64(a, pos);
    return len > 63 ? field : field & (((uint64_t)1 << len) - 1);
}
/* The bits above the value repeat its sign, the bit at min(pos + len - 1, 31). */
MR_INLINE int32_t ptx_bfe_s32(int32_t a, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    if (len == 0) return 0;
    if (pos > 31) return a < 0 ? -1 : 0;
    if (pos + len > 32) return a >> pos;
    return (int32_t)((uint32_t)a << (32 - pos - len)) >> (32 - len);
}
MR_INLINE int64_t ptx_bfe_s64(int64_t a, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    if (len == 0) return 0;
    if (pos > 63) return a < 0 ? -1 : 0;
    if (pos + len > 64) return a >> pos;
    return (int64_t)((uint64_t)a << (64 - pos - len)) >> (64 - len);
}
MR_INLINE uint32_t ptx_bfi_32(uint32_t a, uint32_t b, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    uint32_t ones = len > 31 ? UINT32_MAX : (1u << len) - 1;
    uint32_t field = ptx_shl_32(ones, pos);
    return (b & ~field) | (ptx_shl_32(a, pos) & field);
}
MR_INLINE uint64_t ptx_bfi_64(uint64_t a, uint64_t b, uint32_t pos, uint32_t len) {
    pos &= 255, len &= 255;
    uint64_t ones = len > 63 ? UINT64_MAX : ((uint64_t)1 << len) - 1;
    uint64_t field = ptx_shl_64(ones, pos);
    return (b & ~field) | (ptx_shl_64(a, pos) & field);
}
MR_INLINE uint32_t ptx_bmsk(uint32_t pos, uint32_t len) {
    return ptx_shl_32(len > 31 ? UINT32_MAX : (1u << len) - 1, pos);
}
/* Sign- or zero-extends what lies in the low `n` bits. */
MR_INLINE uint32_t ptx_szext_u(uint32_t a, uint32_t n) {
    return n > 31 ? a : a & ((1u << n) - 1);
}
MR_INLINE uint32_t ptx_szext_s(uint32_t a, uint32_t n) {
    return n > 31 ? a : n == 0 ? 0 : (uint32_t)((int32_t)(a << (32 - n)) >> (32 - n));
}
MR_INLINE uint32_t ptx_shf_l(uint32_t lo, uint32_t hi, uint32_t n) {
    return (uint32_t)(((uint64_t)hi << 32 | lo) << n >> 32);
}
MR_INLINE uint32_t ptx_shf_r(uint32_t lo, uint32_t hi, uint32_t n) {
    return (uint32_t)(((uint64_t)hi << 32 | lo) >> n);
}
MR_INLINE uint32_t ptx_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
    uint32_t r = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint32_t term = (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
        r |= term & (0 - (table >> i & 1));
    }
    return r;
}
/* The default mode: each nibble of `selector` picks one of eight bytes, or eight copies of its sign. */
MR_INLINE uint32_t ptx_prmt(uint32_t a, uint32_t b, uint32_t selector) {
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t r = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint32_t s = selector >> (4 * i) & 15;
        uint32_t byte = (uint32_t)(bytes >> (8 * (s & 7))) & 255;
        if (s & 8) byte = byte & 128 ? 255 : 0;
        r |= byte << (8 * i);
    }
    return r;
}
/* The special modes as selectors of the default one, by the low two bits of the selector. */
MR_INLINE uint32_t ptx_prmt_f4e(uint32_t s) {
    s &= 3;
    return (0x3210 + 0x1111 * s) & 0x7777;
}
MR_INLINE uint32_t ptx_prmt_b4e(uint32_t s) {
    s &= 3;
    return (s & 7) | ((s - 1) & 7) << 4 | ((s - 2) & 7) << 8 | ((s - 3) & 7) << 12;
}
MR_INLINE uint32_t ptx_prmt_rc8(uint32_t s) {
    return 0x1111 * (s & 3);
}
MR_INLINE uint32_t ptx_prmt_ecl(uint32_t s) {
    s &= 3;
    return (s > 0 ? s : 0) | (s > 1 ? s : 1) << 4 | (s > 2 ? s : 2) << 8 | 3 << 12;
}
MR_INLINE uint32_t ptx_prmt_ecr(uint32_t s) {
    s &= 3;
    return 0 | (s < 1 ? s : 1) << 4 | (s < 2 ? s : 2) << 8 | s << 12;
}
MR_INLINE uint32_t ptx_prmt_rc16(uint32_t s) {
    return s & 1 ? 0x3232 : 0x1010;
}
/* The n-th set bit from `base` on, upwards for n > 0 (the first is base itself if it is set), downwards for n < 0. */
MR_INLINE uint32_t ptx_fns(uint32_t mask, uint32_t base, int32_t n) {
    base &= 31;
    if (n == 0) return mask >> base & 1 ? base : UINT32_MAX;
    int step = n > 0 ? 1 : -1;
    int64_t left = n > 0 ? n : -(int64_t)n;
    for (int i = (int)base; i >= 0 && i < 32; i += step) {
        if ((mask >> i & 1) && --left == 0) return (uint32_t)i;
    }
    return UINT32_MAX;
}
MR_INLINE int32_t ptx_byte(uint32_t x, unsigned i, bool is_signed) {
    uint32_t byte = x >> (8 * i) & 255;
    return is_signed ? (int8_t)byte : (int32_t)byte;
}
MR_INLINE int32_t ptx_short(uint32_t x, unsigned i, bool is_signed) {
    uint32_t half = x >> (16 * i) & 65535;
    return is_signed ? (int16_t)half : (int32_t)half;
}
MR_INLINE uint32_t ptx_dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb) {
    for (unsigned i = 0; i < 4; i++) c += (uint32_t)(ptx_byte(a, i, sa) * ptx_byte(b, i, sb));
    return c;
}
MR_INLINE uint32_t ptx_dp2a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb, unsigned first) {
    for (unsigned i = 0; i < 2; i++) {
        c += (uint32_t)(ptx_short(a, i, sa) * ptx_byte(b, first + i, sb));
    }
    return c;
}

/* ---- floats */

/* Each NaN that f32 arithmetic makes is this one. */
MR_INLINE float ptx_nan_32(float x) {
    return x != x ? mr_from_bits_f32(0x7fffffff) : x;
}
/* .ftz: a subnormal is a zero with its sign. */
MR_INLINE float ptx_flush(float x) {
    uint32_t bits = mr_bits_f32(x);
    return mr_from_bits_f32(bits & 0x7f800000 ? bits : bits & 0x80000000);
}
/* .sat: into [0, 1], NaN to +0. */
MR_INLINE float ptx_saturate_32(float x) {
    return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f;
}
MR_INLINE double ptx_saturate_64(double x) {
    return x > 0.0 ? (x < 1.0 ? x : 1.0) : 0.0;
}
/* The operand that is a number, if one is; -0 is less than +0. */
MR_INLINE float ptx_min_f32(float a, float b) {
    float equal = mr_from_bits_f32(mr_bits_f32(a) | mr_bits_f32(b));
    float r = a < b ? a : b < a ? b : equal;
    r = b != b ? a : r;
    return ptx_nan_32(a != a ? b : r);
}
MR_INLINE float ptx_max_f32(float a, float b) {
    float equal = mr_from_bits_f32(mr_bits_f32(a) & mr_bits_f32(b));
    float r = a > b ? a : b > a ? b : equal;
    r = b != b ? a : r;
    return ptx_nan_32(a != a ? b : r);
}
MR_INLINE double ptx_min_f64(double a, double b) {
    double equal = mr_from_bits_f64(mr_bits_f64(a) | mr_bits_f64(b));
    double r = a < b ? a : b < a ? b : equal;
    r = b != b ? a : r;
    return a != a ? b : r;
}
MR_INLINE double ptx_max_f64(double a, double b) {
    double equal = mr_from_bits_f64(mr_bits_f64(a) & mr_bits_f64(b));
    double r = a > b ? a : b > a ? b : equal;
    r = b != b ? a : r;
    return a != a ? b : r;
}
MR_INLINE float ptx_nan_of(float a, float b, float r) {
    return ((a != a) | (b != b)) ? mr_from_bits_f32(0x7fffffff) : r;
}
MR_INLINE float ptx_xorsign(float a, float b, float magnitude) {
    uint32_t sign = (mr_bits_f32(a) ^ mr_bits_f32(b)) & 0x80000000;
    uint32_t bits = mr_bits_f32(magnitude);
    return magnitude != magnitude ? magnitude : mr_from_bits_f32((bits & 0x7fffffff) | sign);
}
MR_INLINE float ptx_copysign_32(float sign, float x) {
    return mr_from_bits_f32((mr_bits_f32(sign) & 0x80000000) | (mr_bits_f32(x) & 0x7fffffff));
}
MR_INLINE double ptx_copysign_64(double sign, double x) {
    uint64_t top = (uint64_t)1 << 63;
    return mr_from_bits_f64((mr_bits_f64(sign) & top) | (mr_bits_f64(x) & ~top));
}

/* The approximate functions compute in double and round once: closer than PTX asks for, the same on every machine.
 * Adding and subtracting the constant rounds to an integer, which then stands in the low bits. */
#define PTX_ROUND_64 0x1.8p52

MR_INLINE double ptx_exp2(double x) { /* relative error below 2^-31 for x in [-1000, 1000] */
    double t = x + PTX_ROUND_64;
    uint64_t n = mr_bits_f64(t) - mr_bits_f64(PTX_ROUND_64);
    double r = x - (t - PTX_ROUND_64);
    double p = 1.3215486790144309e-6;
    p = p * r + 1.5252733804059841e-5;
    p = p * r + 1.5403530393381608e-4;
    p = p * r + 1.3333558146428443e-3;
    p = p * r + 9.6181291076284771e-3;
    p = p * r + 5.5504108664821579e-2;
    p = p * r + 2.4022650695910071e-1;
    p = p * r + 6.9314718055994531e-1;
    p = p * r + 1.0;
    return mr_from_bits_f64(mr_bits_f64(p) + (n << 52));
}
MR_INLINE float ptx_ex2(float a) {
    double x = a;
    x = x > 200.0 ? 200.0 : x;
    x = x < -200.0 ? -200.0 : x;
    float r = (float)ptx_exp2(a != a ? 0.0 : x);
    return a != a ? mr_from_bits_f32(0x7fffffff) : r;
}
MR_INLINE float ptx_lg2(float a) {
    double x = a; /* a subnormal f32 is a normal f64 */
    uint64_t bits = mr_bits_f64(x);
    /* m in [0.75, 1.5) */
    uint64_t up = bits + ((uint64_t)1 << 51);
    double e = (double)(int32_t)(uint32_t)(up >> 52) - 1023.0;
    double m = mr_from_bits_f64(bits - (((up >> 52) - 1023) << 52));
    double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double p = 1.0 / 15;
    p = p * s2 + 1.0 / 13;
    p = p * s2 + 1.0 / 11;
    p = p * s2 + 1.0 / 9;
    p = p * s2 + 1.0 / 7;
    p = p * s2 + 1.0 / 5;
    p = p * s2 + 1.0 / 3;
    p = p * s2 + 1.0;
    float r = (float)(e + s * p * 2.8853900817779268);
    r = a == 0.0f ? -INFINITY : r;
    r = a == INFINITY ? INFINITY : r;
    return a >= 0.0f ? r : mr_from_bits_f32(0x7fffffff);
}
/* sin(a + quarter * pi/2). Beyond 2^40 PTX promises nothing: the angle counts as 0. */
MR_INLINE float ptx_sine(float a, uint32_t quarter) {
    double x = fabsf(a) < 0x1p40f ? a : 0.0;
    double t = x * 0.63661977236758134 + PTX_ROUND_64;
    uint32_t k = (uint32_t)mr_bits_f64(t) + quarter;
    double n = t - PTX_ROUND_64;
    double r = (x - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34;
    double r2 = r * r;
    double sine = -2.5052108385441719e-8;
    sine = sine * r2 + 2.7557319223985893e-6;
    sine = sine * r2 - 1.9841269841269841e-4;
    sine = sine * r2 + 8.3333333333333332e-3;
    sine = sine * r2 - 1.6666666666666667e-1;
    sine = r + r * (r2 * sine);
    double cosine = 2.0876756987868099e-9;
    cosine = cosine * r2 - 2.7557319223985891e-7;
    cosine = cosine * r2 + 2.4801587301587302e-5;
    cosine = cosine * r2 - 1.3888888888888889e-3;
    cosine = cosine * r2 + 4.1666666666666664e-2;
    cosine = cosine * r2 - 0.5;
    cosine = 1.0 + r2 * cosine;
    float v = (float)(k & 1 ? cosine : sine);
    v = k & 2 ? -v : v;
    return fabsf(a) <= 0x1.fffffep127f ? v : mr_from_bits_f32(0x7fffffff);
}
MR_INLINE float ptx_sin(float a) {
    return a == 0.0f ? a : ptx_sine(a, 0);
}
MR_INLINE float ptx_cos(float a) {
    return ptx_sine(a, 1);
}
MR_INLINE float ptx_tanh(float a) {
    double x = fabs((double)a), near = x - x * x * x / 3.0;
    double bounded = x < 20.0 ? x : 20.0;
    double t = ptx_exp2(bounded * -2.8853900817779268);
    double r = x < 0.001 ? near : (1.0 - t) / (1.0 + t);
    return a != a ? mr_from_bits_f32(0x7fffffff) : ptx_copysign_32(a, (float)r);
}
MR_INLINE float ptx_rsqrt(float a) {
    return ptx_nan_32((float)(1.0 / sqrt((double)a)));
}
MR_INLINE double ptx_rsqrt_64(double a) {
    return 1.0 / sqrt(a);
}
/* rcp.approx.ftz.f64 reads and gives the upper half of the bits. */
MR_INLINE double ptx_upper(double a) {
    uint64_t bits = mr_bits_f64(a);
    bits = bits >> 52 & 0x7ff ? bits : bits & (uint64_t)1 << 63;
    return a != a ? a : mr_from_bits_f64(bits & 0xffffffff00000000u);
}

/* To integers, as cvt has it: rounded towards zero, clamped; NaN to 0, or to the top bit alone where one side has 64
 * bits. */
MR_INLINE int32_t ptx_s32_of_f32(float a) {
    float bounded = a > -0x1p31f ? a : -0x1p31f;
    bounded = bounded < 0x1p31f ? bounded : 0.0f;
    int32_t r = (int32_t)bounded;
    r = a >= 0x1p31f ? INT32_MAX : r;
    return a != a ? 0 : r;
}
MR_INLINE uint32_t ptx_u32_of_f32(float a) {
    float bounded = a > 0.0f ? a : 0.0f;
    bounded = bounded < 0x1p32f ? bounded : 0.0f;
    uint32_t r = (uint32_t)(int64_t)bounded;
    return a >= 0x1p32f ? UINT32_MAX : r;
}
MR_INLINE int64_t ptx_s64_of_f64(double a) {
    double bounded = fabs(a) < 0x1p63 ? a : 0.0;
    int64_t r = (int64_t)bounded;
    r = a >= 0x1p63 ? INT64_MAX : r;
    return a != a || a <= -0x1p63 ? INT64_MIN : r;
}
MR_INLINE uint64_t ptx_u64_of_f64(double a) {
    double bounded = a > 0.0 && a < 0x1p64 ? a : 0.0;
    uint64_t r = (uint64_t)bounded;
    r = a >= 0x1p64 ? UINT64_MAX : r;
    return a != a ? (uint64_t)1 << 63 : r;
}
/* f64 has all values of 32 bits. A NaN of f64 becomes the top bit of 64, whose low half is what 32 bits take. */
MR_INLINE int32_t ptx_s32_of_f64(double a) {
    double bounded = a > -0x1p31 ? a : -0x1p31;
    bounded = bounded < 0x1p31 ? bounded : 0.0;
    int32_t r = (int32_t)bounded;
    r = a >= 0x1p31 ? INT32_MAX : r;
    return a != a ? INT32_MIN : r;
}
MR_INLINE uint32_t ptx_u32_of_f64(double a) {
    double bounded = a > 0.0 ? a : 0.0;
    bounded = bounded < 0x1p32 ? bounded : 0.0;
    uint32_t r = (uint32_t)(int64_t)bounded;
    r = a >= 0x1p32 ? UINT32_MAX : r;
    return a != a ? (uint32_t)1 << 31 : r;
}

#endif
