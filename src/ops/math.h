/* Elementary functions as code without branches: no branch, no table, no call, so that a loop
 * over them becomes vectors. A value is the same whether it is computed alone or in a vector, and
 * on every machine with IEEE arithmetic. A vector library beside the C library would not give
 * that.
 *
 * The polynomials of exp and log (f32) are those of Cephes, those of log, sin, cos and tanh (f64,
 * small) those of FreeBSD's msun, after Sun's fdlibm. The others are minimax approximations that
 * were made for this file. The comment of each names the function and the error. Errors are below
 * 1.5 units in the last place, 2 of gelu; tests/c/test_ops_math.c measures them. A multiply-add is fused where it is
 * written so. Most processors and all GPUs have an instruction for it, so a loop takes half the time and has the same
 * values everywhere. */
#ifndef MR_OPS_MATH_H
#define MR_OPS_MATH_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

/* Adding and subtracting these rounds to an integer, which then stands in the low bits of the sum: no
 * conversion that would be undefined for NaN. */
#define MR_ROUND_F32 0x1.8p23f
#define MR_ROUND_F64 0x1.8p52

/* ------------------------------------------------------------------------- exp */

/* y 2^n, where y is about 1 and t is n + MR_ROUND_F32 or MR_ROUND_F64. Uses two factors of about 2^(n/2): one alone
 * would overflow or be subnormal before the product is. */
MR_INLINE float mr_scale_f32(float y, float t) {
    uint32_t half = mr_bits_f32(t) >> 1 << 23, rest = (mr_bits_f32(t) << 23) - half;
    return mr_from_bits_f32(mr_bits_f32(y) + half) * mr_from_bits_f32(rest + 0x3f800000u);
}
MR_INLINE double mr_scale_f64(double y, double t) {
    uint64_t half = mr_bits_f64(t) >> 1 << 52, rest = (mr_bits_f64(t) << 52) - half;
    return mr_from_bits_f64(mr_bits_f64(y) + half) * mr_from_bits_f64(rest + 0x3ff0000000000000u);
}

/* From 89 on it is infinite, whatever comes of the rest. Not so below: from a constant 0 gcc would make branches where
 * the result is used. */
MR_INLINE float mr_exp_f32(float a) {
    float x = a < -104.0f ? -104.0f : a;
    float t = fmaf(x, 1.44269504088896341f, MR_ROUND_F32), k = t - MR_ROUND_F32;
    float r = fmaf(k, 2.12194440e-4f, fmaf(k, -0.693359375f, x));
    float p = 1.9875691500e-4f;
    p = fmaf(p, r, 1.3981999507e-3f);
    p = fmaf(p, r, 8.3334519073e-3f);
    p = fmaf(p, r, 4.1665795894e-2f);
    p = fmaf(p, r, 1.6666665459e-1f);
    p = fmaf(p, r, 5.0000001201e-1f);
    float y = mr_scale_f32(fmaf(p, r * r, r) + 1.0f, t);
    return a <= 89.0f ? y : a + INFINITY; /* NaN stays NaN */
}

/* 1 + r + r^2 P(r) with an error of 2^-56.5. */
MR_INLINE double mr_exp_f64(double a) {
    double x = a < -746.0 ? -746.0 : a;
    double t = fma(x, 1.44269504088896338700, MR_ROUND_F64), k = t - MR_ROUND_F64;
    double r = fma(k, -0x1.abc9e3b39803fp-56, fma(k, -0x1.62e42fefa39efp-1, x));
    double z = r * r, w = z * z;
    double p = fma(0x1.ad7efccb63eb7p-26, r, 0x1.28adcc0b4c5edp-22);
    p = fma(p, z, fma(0x1.71df262da219ep-19, r, 0x1.a01999b047259p-16));
    p = fma(p, w,
            fma(fma(0x1.a01a0129b4af8p-13, r, 0x1.6c16c1844a253p-10), z,
                fma(0x1.1111111127e80p-7, r, 0x1.55555555507f4p-5)));
    p = fma(p, z, fma(0x1.55555555554f9p-3, r, 0x1.000000000000ap-1));
    double y = mr_scale_f64(fma(p, z, r) + 1.0, t);
    return a <= 710.0 ? y : a + (double)INFINITY;
}

/* ------------------------------------------------------------------------- log */

MR_INLINE float mr_log_f32(float a) {
    /* Subnormals are made normal; the mantissa is then in [sqrt(1/2), sqrt(2)). */
    bool tiny = a < 0x1p-126f;
    uint32_t bits = mr_bits_f32(a * (tiny ? 0x1p23f : 1.0f));
    uint32_t shifted = bits - 0x3f3504f3u; /* sqrt(1/2) */
    int32_t e = (int32_t)shifted >> 23;
    float x = mr_from_bits_f32((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float k = (float)e - (tiny ? 23.0f : 0.0f);
    float z = x * x, p = 7.0376836292e-2f;
    p = fmaf(p, x, -1.1514610310e-1f);
    p = fmaf(p, x, 1.1676998740e-1f);
    p = fmaf(p, x, -1.2420140846e-1f);
    p = fmaf(p, x, 1.4249322787e-1f);
    p = fmaf(p, x, -1.6668057665e-1f);
    p = fmaf(p, x, 2.0000714765e-1f);
    p = fmaf(p, x, -2.4999993993e-1f);
    p = fmaf(p, x, 3.3333331174e-1f);
    float y = fmaf(z, -0.5f, fmaf(k, -2.12194440e-4f, x * z * p));
    float r = fmaf(k, 0.693359375f, x + y);
    r = a < INFINITY ? r : a; /* also NaN */
    r = a > 0.0f ? r : a == 0.0f ? -INFINITY : NAN;
    return r;
}

/* log(a + rest / a) where the second is less than a unit in the last place of the first: for log1p. */
MR_INLINE double mr_log_and_rest_f64(double a, double rest) {
    bool tiny = a < 0x1p-1022;
    uint64_t bits = mr_bits_f64(a * (tiny ? 0x1p54 : 1.0));
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdu;
    /* The exponent as a double, by way of the mantissa's bits: there is no vector conversion of 64 bits. */
    uint64_t biased = (shifted >> 52) ^ 0x800u; /* e + 2048, modulo 4096 */
    double k = mr_from_bits_f64(0x4330000000000000u | (biased & 0xfffu)) - (0x1p52 + 2048.0) -
               (tiny ? 54.0 : 0.0);
    double f = mr_from_bits_f64((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f), z = s * s, w = z * z;
    double t = fma(fma(1.479819860511658591e-01, z, 1.531383769920937332e-01), z,
                   1.818357216161805012e-01);
    t = fma(t, w, fma(2.222219843214978396e-01, z, 2.857142874366239149e-01));
    t = fma(t, w, fma(3.999999999940941908e-01, z, 6.666666666666735130e-01)) * z;
    double y = fma(s, t - f, fma(k, 1.90821492927058770002e-10, rest));
    double r = fma(k, 6.93147180369123816490e-01, f + y);
    r = a < (double)INFINITY ? r : a;
    r = a > 0.0 ? r : a == 0.0 ? -(double)INFINITY : (double)NAN;
    return r;
}
MR_INLINE double mr_log_f64(double a) {
    return mr_log_and_rest_f64(a, 0.0);
}
/* 1 + a is rounded; the error is divided by it, since that is the logarithm's derivative. */
MR_INLINE double mr_log1p_f64(double a) {
    double sum = 1.0 + a, of_small = a - (sum - 1.0), of_large = 1.0 - (sum - a);
    double rest = (fabs(a) < 1.0 ? of_small : of_large) / sum;
    rest = ((sum > 0.0) & (sum < (double)INFINITY)) ? rest : 0.0;
    double r = mr_log_and_rest_f64(sum, rest);
    return a == 0.0 ? a : r; /* -0, too */
}

/* ------------------------------------------------------------------------- tanh */

/* exp of x from -20 to 20. Only the absolute error counts, as the result is added to 1 or subtracted from it. So one
 * step takes out the multiples of the float nearest to ln 2, whose error is 2e-9. The polynomial has an error of
 * 2^-28.3. */
MR_INLINE float mr_exp_beside_1_f32(float x) {
    float t = fmaf(x, 1.44269504088896341f, MR_ROUND_F32), k = t - MR_ROUND_F32;
    float r = fmaf(k, -0.69314718055994531f, x);
    float p = 0x1.6a242ep-10f;
    p = fmaf(p, r, 0x1.1239f8p-7f);
    p = fmaf(p, r, 0x1.5558f2p-5f);
    p = fmaf(p, r, 0x1.555492p-3f);
    p = fmaf(p, r, 0x1.fffffcp-2f);
    p = fmaf(p, r * r, r) + 1.0f;
    return p * mr_from_bits_f32((mr_bits_f32(t) << 23) + 0x3f800000u); /* 2^k */
}

/* Below 0.55 a + a^3 P(a^2), with an error of 2^-24.7; beyond it 1 - 2 / (exp(2|a|) + 1), where no more than half of
 * the exponential's error arrives. */
MR_INLINE float mr_tanh_f32(float a) {
    float x = fabsf(a), z = x * x, q = 0x1.0d5036p-6f;
    q = fmaf(q, z, -0x1.af7ccep-5f);
    q = fmaf(q, z, 0x1.10cef6p-3f);
    q = fmaf(q, z, -0x1.555452p-2f);
    float near = fmaf(q * z, x, x), far = 1.0f - 2.0f / (mr_exp_beside_1_f32(x + x) + 1.0f);
    float y = x < 0.55f ? near : far;
    y = x > 9.1f ? 1.0f : y; /* tanh is 1 from 9.011 on; exp has no value from 44 on */
    return mr_from_bits_f32(mr_bits_f32(y) | (mr_bits_f32(a) & 0x80000000u));
}

/* a + a^3 P / Q or 1 - 2 / (exp(2|a|) + 1), by one division. exp has a polynomial with a relative error of 2^-57.9. */
MR_INLINE double mr_tanh_f64(double a) {
    double x = fabs(a), z = a * a;
    double p = fma(fma(-9.64399179425052238628e-1, z, -9.92877231001918586564e1), z,
                   -1.61468768441708447952e3);
    double q = fma(fma(z + 1.12811678491632931402e2, z, 2.23548839060100448583e3), z,
                   4.84406305325125486048e3);
    double y = x > 20.0 ? 20.0 : x; /* tanh is 1 from 19.1 on */
    double t = fma(y, 2.88539008177792681472, MR_ROUND_F64), k = t - MR_ROUND_F64;
    double r = fma(k, -9.54107464635293850010e-11, fma(k, -3.46573590184561908245e-01, y));
    r = r + r;
    double s = r * r, w = s * s;
    double e = fma(fma(0x1.ad7f5db445c45p-26, r, 0x1.28ad81797c76fp-22), s,
                   fma(0x1.71df257517ff8p-19, r, 0x1.a01999fd43989p-16));
    e = fma(e, w,
            fma(fma(0x1.a01a012a3d9a0p-13, r, 0x1.6c16c1842f564p-10), s,
                fma(0x1.1111111127c50p-7, r, 0x1.5555555550866p-5)));
    e = fma(fma(e, s, fma(0x1.55555555554fap-3, r, 0x1.000000000000ap-1)), s, r) + 1.0;
    e = e * mr_from_bits_f64((mr_bits_f64(t) << 52) + 0x3ff0000000000000u); /* 2^k */
    bool near = x < 0.625;
    double above = near ? p * z : -2.0, below = near ? q : e + 1.0, base = near ? x : 1.0;
    double v = base + base * (above / below);
    return mr_from_bits_f64(mr_bits_f64(v) | (mr_bits_f64(a) & 0x8000000000000000u));
}

/* ------------------------------------------------------------------------- sin, cos */

/* Good for |x| < MR_NEAR_F32 or MR_NEAR_F64; beyond it a turn cannot be subtracted without many more digits of pi. */
#define MR_NEAR_F32 0x1p17f
#define MR_NEAR_F64 0x1p19
MR_INLINE bool mr_is_near_f32(float a) {
    return fabsf(a) < MR_NEAR_F32;
}
MR_INLINE bool mr_is_near_f64(double a) {
    return fabs(a) < MR_NEAR_F64;
}

/* |a| less the nearest multiple of pi/2, and how many of them modulo 4 in the low bits. pi/2 has three parts: what is
 * left of |a| after the first is exact, and after the second has a relative error of half a unit. The polynomials are
 * of up to pi/4: r + r^3 P(r^2) and 1 - r^2/2 + r^4 Q(r^2), in f32 with errors of 2^-27.9 and 2^-33. The sine is that
 * of |a|, as
 * -0 would come out as 0; its sign is put in at the end. */
typedef struct {
    float r;
    uint32_t quarter;
} mr_turned_f32;
MR_INLINE mr_turned_f32 mr_turn_f32(float a) {
    float x = fabsf(a), t = fmaf(x, 0x1.45f306p-1f, MR_ROUND_F32), k = t - MR_ROUND_F32;
    float r = fmaf(k, -0x1.4442dp-24f, fmaf(k, -0x1.921fb4p+0f, x));
    return (mr_turned_f32){fmaf(k, -0x1.84698ap-48f, r), mr_bits_f32(t)};
}
/* One of the two polynomials by the quarter, and its sign by `sign` and the quarter. */
MR_INLINE float mr_circular_f32(float r, uint32_t quarter, uint32_t sign) {
    float z = r * r, s = fmaf(-0x1.9953f4p-13f, z, 0x1.110778p-7f);
    s = fmaf(fmaf(s, z, -0x1.555546p-3f), r * z, r);
    float c = fmaf(0x1.99e80cp-16f, z, -0x1.6c0c28p-10f);
    c = fmaf(fmaf(fmaf(c, z, 0x1.55554ap-5f), z, -0.5f), z, 1.0f);
    float v = (quarter & 1) ? c : s;
    return mr_from_bits_f32(mr_bits_f32(v) ^ ((quarter << 30 ^ sign) & 0x80000000u));
}
MR_INLINE float mr_sin_near_f32(float a) {
    mr_turned_f32 t = mr_turn_f32(a);
    return mr_circular_f32(t.r, t.quarter, mr_bits_f32(a));
}
MR_INLINE float mr_cos_near_f32(float a) {
    mr_turned_f32 t = mr_turn_f32(a);
    return mr_circular_f32(t.r, t.quarter + 1, 0);
}

typedef struct {
    double r;
    uint64_t quarter;
} mr_turned_f64;
MR_INLINE mr_turned_f64 mr_turn_f64(double a) {
    double x = fabs(a), t = fma(x, 0x1.45f306dc9c883p-1, MR_ROUND_F64), k = t - MR_ROUND_F64;
    double r = fma(k, -0x1.1a62633145c06p-54, fma(k, -0x1.921fb54442d18p+0, x));
    return (mr_turned_f64){fma(k, -0x1.c1cd129024e09p-107, r), mr_bits_f64(t)};
}
MR_INLINE double mr_circular_f64(double r, uint64_t quarter, uint64_t sign) {
    double z = r * r, w = z * z;
    double s = fma(1.58969099521155010221e-10, z, -2.50507602534068634195e-08);
    s = fma(s, w, fma(2.75573137070700676789e-06, z, -1.98412698298579493134e-04));
    s = fma(s, w, fma(8.33333333332248946124e-03, z, -1.66666666666666324348e-01));
    s = fma(s, r * z, r);
    double c = fma(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09);
    c = fma(c, w, fma(-2.75573143513906633035e-07, z, 2.48015872894767294178e-05));
    c = fma(c, w, fma(-1.38888888888741095749e-03, z, 4.16666666666666019037e-02));
    c = fma(fma(c, z, -0.5), z, 1.0);
    double v = (quarter & 1) ? c : s;
    return mr_from_bits_f64(mr_bits_f64(v) ^ ((quarter << 62 ^ sign) & 0x8000000000000000u));
}
MR_INLINE double mr_sin_near_f64(double a) {
    mr_turned_f64 t = mr_turn_f64(a);
    return mr_circular_f64(t.r, t.quarter, mr_bits_f64(a));
}
MR_INLINE double mr_cos_near_f64(double a) {
    mr_turned_f64 t = mr_turn_f64(a);
    return mr_circular_f64(t.r, t.quarter + 1, 0);
}

/* The tangent as a quotient of sums of two doubles each; the second has the digits that the first lacks, so rounding
 * counts once. The error of the reduction counts as well, up to 1.6 times. */
typedef struct {
    double high, low;
} mr_sum_f64;
MR_INLINE mr_sum_f64 mr_add_small_f64(double high, double low) {
    double sum = high + low;
    return (mr_sum_f64){sum, low - (sum - high)};
}
MR_INLINE double mr_tan_near_f64(double a) {
    double x = fabs(a), t = fma(x, 0x1.45f306dc9c883p-1, MR_ROUND_F64), k = t - MR_ROUND_F64;
    double first = fma(k, -0x1.921fb54442d18p+0, x); /* exact */
    double second = k * 0x1.1a62633145c06p-54, lost = fma(k, 0x1.1a62633145c06p-54, -second);
    double left = first - second, moved = left - first;
    double rest = (first - (left - moved)) - (second + moved) - lost;
    mr_sum_f64 r = mr_add_small_f64(left, fma(k, -0x1.c1cd129024e09p-107, rest));
    double z = r.high * r.high, w = z * z, half = 0.5 * z, one = 1.0 - half;
    double s = fma(1.58969099521155010221e-10, z, -2.50507602534068634195e-08);
    s = fma(s, w, fma(2.75573137070700676789e-06, z, -1.98412698298579493134e-04));
    s = fma(s, w, fma(8.33333333332248946124e-03, z, -1.66666666666666324348e-01));
    double c = fma(-1.13596475577881948265e-11, z, 2.08757232129817482790e-09);
    c = fma(c, w, fma(-2.75573143513906633035e-07, z, 2.48015872894767294178e-05));
    c = fma(c, w, fma(-1.38888888888741095749e-03, z, 4.16666666666666019037e-02));
    double z_low = fma(r.high + r.high, r.low, fma(r.high, r.high, -z));
    mr_sum_f64 sine = mr_add_small_f64(r.high, fma(s, r.high * z, r.low * one));
    mr_sum_f64 cosine = mr_add_small_f64(one, fma(-0.5, z_low, fma(c, w, (1.0 - one) - half)));
    bool turned = mr_bits_f64(t) & 1; /* by a right angle: -cos / sin */
    double n = turned ? cosine.high : sine.high, n_low = turned ? cosine.low : sine.low;
    double d = turned ? sine.high : cosine.high, d_low = turned ? sine.low : cosine.low;
    double inverse = 1.0 / d, q = n * inverse;
    q = fma(fma(-q, d_low, fma(-q, d, n) + n_low), inverse, q);
    return mr_from_bits_f64(mr_bits_f64(q) ^
                            ((mr_bits_f64(t) << 63) ^ (mr_bits_f64(a) & 0x8000000000000000u)));
}

MR_INLINE float mr_sin_f32(float a) {
    return mr_is_near_f32(a) ? mr_sin_near_f32(a) : sinf(a);
}
MR_INLINE float mr_cos_f32(float a) {
    return mr_is_near_f32(a) ? mr_cos_near_f32(a) : cosf(a);
}
MR_INLINE double mr_sin_f64(double a) {
    return mr_is_near_f64(a) ? mr_sin_near_f64(a) : sin(a);
}
MR_INLINE double mr_cos_f64(double a) {
    return mr_is_near_f64(a) ? mr_cos_near_f64(a) : cos(a);
}
MR_INLINE double mr_tan_f64(double a) {
    return mr_is_near_f64(a) ? mr_tan_near_f64(a) : tan(a);
}

/* ------------------------------------------------------------------------- normal numbers */

/* Box-Muller for f32: 32 random bits give a radius and 32 a direction, and their products are two normal numbers.
 * All multiply-adds are fused and say so: every GPU and most CPUs have an instruction for that, and the numbers are
 * then the same everywhere. */

/* The radius's square: -2 log(u), where u is (bits + 1/2) / 2^32, rounded, and m 2^e with m in [2/3, 4/3). The
 * polynomial is of g = 2 - 2m, in which the logarithm's series begins with g. The small number that is added to the 2
 * makes the square 2^-22 and not 0 where u is 1. So there is no division by 0. */
MR_INLINE float mr_normal_square(uint32_t bits) {
    float u = fmaf((float)bits, 0x1p-32f, 0x1p-33f);
    uint32_t e = (mr_bits_f32(u) - 0x3f2aaaabu) & 0xff800000u; /* in units of 2^-23 */
    float m = mr_from_bits_f32(mr_bits_f32(u) - e), g = fmaf(m, -2.0f, 2.0f + 0x1p-22f);
    float p = 5.479049287e-4f;
    p = fmaf(p, g, 1.202229527e-3f);
    p = fmaf(p, g, 2.186844591e-3f);
    p = fmaf(p, g, 5.129987840e-3f);
    p = fmaf(p, g, 1.250698045e-2f);
    p = fmaf(p, g, 3.125977516e-2f);
    p = fmaf(p, g, 8.333299309e-2f);
    p = fmaf(p, g, 2.499996871e-1f);
    return fmaf((float)(int32_t)e, -1.65259166351e-7f, fmaf(p, g * g, g)); /* -2 log(2) 2^-23 */
}

/* The lowest 23 bits give an angle between plus and minus a right angle, counted in right angles:
 * k 2^-22 - 1. A GPU has the same number for an instruction less from a subnormal, which is what
 * slows a CPU down. */
MR_INLINE float mr_normal_angle(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return fmaf(mr_from_bits_f32(bits & 0x7fffffu), 0x1p127f, -1.0f);
#else
    return mr_from_bits_f32((bits & 0x7fffffu) | 0x40000000u) - 3.0f;
#endif
}

/* The direction: the highest bit is the cosine's sign. The factor 1 - a^2 of the cosine keeps its digits where it
 * is almost 0. */
typedef struct {
    float cosine, sine;
} mr_direction;
MR_INLINE mr_direction mr_normal_direction(uint32_t bits) {
    float a = mr_normal_angle(bits), z = a * a;
    float s = 1.559292286e-4f;
    s = fmaf(s, z, -4.683104344e-3f);
    s = fmaf(s, z, 7.969593257e-2f);
    s = fmaf(s, z, -6.459650993e-1f);
    s = fmaf(s, z, 1.570796371f);
    float c = -8.475887007e-4f;
    c = fmaf(c, z, 1.994146965e-2f);
    c = fmaf(c, z, -2.336959094e-1f);
    c = fmaf(c, z, 1.0f) * fmaf(-a, a, 1.0f);
    return (mr_direction){mr_from_bits_f32(mr_bits_f32(c) ^ (bits & 0x80000000u)), s * a};
}

/* ------------------------------------------------------------------------- erf */

/* After N. Juffa: a polynomial near 0, 1 - exp(polynomial) beyond. */
MR_INLINE float mr_erf_f32(float a) {
    float t = fabsf(a), s = a * a;
    float u = t > 4.0f ? 4.0f : t; /* erf is 1 there, and the polynomial still falls */
    float z = u * u;
    float r = fmaf(-1.72853470e-5f, u, 3.83197126e-4f);
    r = fmaf(r, z, fmaf(-3.88396438e-3f, u, 2.42546219e-2f));
    r = fmaf(r, u, -1.06777877e-1f);
    r = fmaf(r, u, -6.34846687e-1f);
    r = fmaf(r, u, -1.28717512e-1f);
    float far = 1.0f - mr_exp_beside_1_f32(fmaf(r, u, -u));
    float p = -5.96761703e-4f;
    p = fmaf(p, s, 4.99119423e-3f);
    p = fmaf(p, s, -2.67681349e-2f);
    p = fmaf(p, s, 1.12819925e-1f);
    p = fmaf(p, s, -3.76125336e-1f);
    p = fmaf(p, s, 1.28379166e-1f);
    float near = a == 0.0f ? a : fmaf(p, a, a);
    far = mr_from_bits_f32(mr_bits_f32(far) | (mr_bits_f32(a) & 0x80000000u));
    return t <= 0.921875f ? near : far; /* far is also NaN */
}

/* ------------------------------------------------------------------------- gelu */

/* a Phi(a), where Phi is the normal distribution function. Negative a are computed without the cancelling of 1 + erf,
 * and without rounding a / sqrt(2), which the result would have 2 a^2 times. For t = |a|, Phi(-t) is exp(-t^2/2) v
 * P(v), where v = 1 / (1 + t/4). The polynomial P is in v - 0.5, so that rounding adds up less; its relative error is
 * 2^-26.7. The rounding errors of v (`rest`) and of t^2 (`low`) go into the exponent. For G(v) = v P(v), G'(v) v / G(v)
 * is about 0.65 + 2.5 v. The part that P(v) and the products v P(v) and t G(v) lack is added to the last product. */
MR_INLINE float mr_gelu_f32(float a) {
    float t = fabsf(a), d = fmaf(t, 0.25f, 1.0f), v = 1.0f / d;
    float rest = fmaf(-v, fmaf(t, 0.25f, 1.0f - d), fmaf(-v, d, 1.0f));
    float square = t * t, low = fmaf(t, t, -square), half = 0.5f * square;
    float n = fmaf(square, -0.72134752044448170f, MR_ROUND_F32), k = n - MR_ROUND_F32;
    float small = fmaf(low, -0.5f, fmaf(rest, fmaf(v, 2.5f, 0.65f), k * 2.12194440e-4f));
    float r = fmaf(k, -0.693359375f, -half) + small;
    float e = 1.9875691500e-4f; /* exp(r) - 1, as in mr_exp_f32 */
    e = fmaf(e, r, 1.3981999507e-3f);
    e = fmaf(e, r, 8.3334519073e-3f);
    e = fmaf(e, r, 4.1665795894e-2f);
    e = fmaf(e, r, 1.6666665459e-1f);
    e = fmaf(e, r, 5.0000001201e-1f);
    e = fmaf(e, r * r, r);
    float m = v - 0x1.02p-1f, p = 0x1.166160p-6f;
    p = fmaf(p, m, 0x1.89264ap-7f);
    p = fmaf(p, m, -0x1.989a84p-5f);
    p = fmaf(p, m, -0x1.d78048p-5f);
    p = fmaf(p, m, 0x1.e2422ep-5f);
    p = fmaf(p, m, 0x1.f1353ap-3f);
    p = fmaf(p, m, 0x1.81e008p-2f);
    p = fmaf(p, m, 0x1.90ed6ep-2f);
    p = fmaf(p, m, 0x1.3a5b92p-2f);
    float q = fmaf(p, m, 0x1.852654p-3f), q_low = fmaf(p, m, 0x1.852654p-3f - q);
    float g = v * q, g_low = fmaf(v, q_low, fmaf(v, q, -g));
    float y = t * g, lost = fmaf(t, g_low, fmaf(t, g, -y));
    y = y + fmaf(y, e, lost);
    /* Times 2^k, by 2^(k + 64), which is exact, and 2^-64, which rounds only subnormal numbers. */
    y = y * mr_from_bits_f32((mr_bits_f32(n) << 23) + 0x5f800000u);
    float far = a * (a > 0.0f ? 1.0f : 0.0f), near = fmaf(y, -0x1p-64f, far);
    return t > 15.0f ? far : near; /* 0 or a from 14.5 on; NaN stays NaN */
}
MR_INLINE double mr_gelu_f64(double a) {
    return 0.5 * a * erfc(a * -0.70710678118654752440);
}

#endif
