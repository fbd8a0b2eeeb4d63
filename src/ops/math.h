/* Elementary functions as code without branches: no branch, no table, no call, so that a loop over them
 * becomes vectors. A value is the same whether it is computed alone or in a vector, on any x86 or other
 * machine with IEEE arithmetic, which a vector library beside the C library's would not give.
 *
 * The polynomials are those of Cephes (f32) and FreeBSD's msun, after Sun's fdlibm (f64). Errors are
 * below 1.5 units in the last place, 2.5 for sin and cos of f64; tests/c/test_ops_math.c
 * measures them. */
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

/* 2^n for the n below by two factors, as one would overflow or be subnormal before the product is. */
MR_INLINE float mr_exp_f32(float a) {
    float x = a > 89.0f ? 89.0f : a;
    x = x < -104.0f ? -104.0f : x;
    float t = x * 1.44269504088896341f + MR_ROUND_F32;
    uint32_t n = mr_bits_f32(t) - mr_bits_f32(MR_ROUND_F32);
    float k = t - MR_ROUND_F32;
    float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    uint32_t half = (uint32_t)((int32_t)n >> 1);
    return p * mr_from_bits_f32((half + 127) << 23) * mr_from_bits_f32((n - half + 127) << 23);
}

MR_INLINE double mr_exp_f64(double a) {
    double x = a > 710.0 ? 710.0 : a;
    x = x < -746.0 ? -746.0 : x;
    double t = x * 1.44269504088896338700 + MR_ROUND_F64;
    uint64_t n = mr_bits_f64(t) - mr_bits_f64(MR_ROUND_F64);
    double k = t - MR_ROUND_F64;
    double high = x - k * 6.93147180369123816490e-01, low = k * 1.90821492927058770002e-10;
    double r = high - low, z = r * r;
    double p = 4.13813679705723846039e-08;
    p = p * z - 1.65339022054652515390e-06;
    p = p * z + 6.61375632143793436117e-05;
    p = p * z - 2.77777777770155933842e-03;
    p = p * z + 1.66666666666666019037e-01;
    double c = r - z * p;
    double y = 1.0 + ((r * c / (2.0 - c) - low) + high);
    /* The bias is added before the halving, so that no shift is arithmetic: AVX2 has none for 64 bits. */
    uint64_t half = ((n + 4096) >> 1) - 2048;
    return y * mr_from_bits_f64((half + 1023) << 52) * mr_from_bits_f64((n - half + 1023) << 52);
}

/* ------------------------------------------------------------------------- log */

MR_INLINE float mr_log_f32(float a) {
    /* Subnormals are made normal; the mantissa is then in [sqrt(1/2), sqrt(2)). */
    bool tiny = a < 0x1p-126f;
    uint32_t bits = mr_bits_f32(tiny ? a * 0x1p23f : a);
    uint32_t shifted = bits - 0x3f3504f3u; /* sqrt(1/2) */
    int32_t e = (int32_t)shifted >> 23;
    float x = mr_from_bits_f32((shifted & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float k = (float)e - (tiny ? 23.0f : 0.0f);
    float z = x * x, p = 7.0376836292e-2f;
    p = p * x - 1.1514610310e-1f;
    p = p * x + 1.1676998740e-1f;
    p = p * x - 1.2420140846e-1f;
    p = p * x + 1.4249322787e-1f;
    p = p * x - 1.6668057665e-1f;
    p = p * x + 2.0000714765e-1f;
    p = p * x - 2.4999993993e-1f;
    p = p * x + 3.3333331174e-1f;
    float y = x * z * p + k * -2.12194440e-4f - 0.5f * z;
    float r = x + y + k * 0.693359375f;
    r = a < INFINITY ? r : a; /* also NaN */
    r = a > 0.0f ? r : a == 0.0f ? -INFINITY : NAN;
    return r;
}

MR_INLINE double mr_log_f64(double a) {
    bool tiny = a < 0x1p-1022;
    uint64_t bits = mr_bits_f64(tiny ? a * 0x1p54 : a);
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdu;
    /* The exponent as a double, by way of the mantissa's bits: there is no vector conversion of 64 bits. */
    uint64_t biased = (shifted >> 52) ^ 0x800u; /* e + 2048, modulo 4096 */
    double k = mr_from_bits_f64(0x4330000000000000u | (biased & 0xfffu)) - (0x1p52 + 2048.0) -
               (tiny ? 54.0 : 0.0);
    double f = mr_from_bits_f64((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f), z = s * s, w = z * z;
    double t1 = w * (3.999999999940941908e-01 +
                     w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double t2 = z * (6.666666666666735130e-01 +
                     w * (2.857142874366239149e-01 +
                          w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    double half = 0.5 * f * f;
    double r = k * 6.93147180369123816490e-01 -
               ((half - (s * (half + (t1 + t2)) + k * 1.90821492927058770002e-10)) - f);
    r = a < (double)INFINITY ? r : a;
    r = a > 0.0 ? r : a == 0.0 ? -(double)INFINITY : (double)NAN;
    return r;
}

/* ------------------------------------------------------------------------- tanh */

MR_INLINE float mr_tanh_f32(float a) {
    float x = fabsf(a), z = a * a;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float near = a == 0.0f ? a : p * z * a + a; /* -0 stays -0 */
    float far = 1.0f - 2.0f / (mr_exp_f32(x + x) + 1.0f);
    return x < 0.625f ? near : a < 0.0f ? -far : a != a ? a : far;
}

MR_INLINE double mr_tanh_f64(double a) {
    double x = fabs(a), z = a * a;
    double p =
        (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
    double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
               4.84406305325125486048e3;
    double near = a == 0.0 ? a : a + a * z * (p / q);
    double far = 1.0 - 2.0 / (mr_exp_f64(x + x) + 1.0);
    return x < 0.625 ? near : a < 0.0 ? -far : a != a ? a : far;
}

/* ------------------------------------------------------------------------- sin, cos */

/* Good for |x| < MR_NEAR; beyond it a turn cannot be subtracted without many more digits of pi. */
#define MR_NEAR 0x1p19
MR_INLINE bool mr_is_near_f32(float a) {
    return fabsf(a) < (float)MR_NEAR;
}
MR_INLINE bool mr_is_near_f64(double a) {
    return fabs(a) < MR_NEAR;
}

/* x less the nearest multiple of pi/2, and how many of them modulo 4 in the low bits. The first parts of
 * pi/2 have 33 bits each, so their products with the multiple are exact. */
typedef struct {
    double r;
    uint64_t quarter;
} mr_turned;
MR_INLINE mr_turned mr_turn(double x) {
    double t = x * 6.36619772367581382433e-01 + MR_ROUND_F64, k = t - MR_ROUND_F64;
    double r = (x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11;
    return (mr_turned){r - k * 2.02226624879595063154e-21, mr_bits_f64(t)};
}

MR_INLINE double mr_sin_core(double r) {
    double z = r * r, p = 1.58969099521155010221e-10;
    p = p * z - 2.50507602534068634195e-08;
    p = p * z + 2.75573137070700676789e-06;
    p = p * z - 1.98412698298579493134e-04;
    p = p * z + 8.33333333332248946124e-03;
    p = p * z - 1.66666666666666324348e-01;
    return r + r * z * p;
}
MR_INLINE double mr_cos_core(double r) {
    double z = r * r, p = -1.13596475577881948265e-11;
    p = p * z + 2.08757232129817482790e-09;
    p = p * z - 2.75573143513906633035e-07;
    p = p * z + 2.48015872894767294178e-05;
    p = p * z - 1.38888888888741095749e-03;
    p = p * z + 4.16666666666666019037e-02;
    double half = 0.5 * z, w = 1.0 - half;
    return w + (((1.0 - w) - half) + z * z * p);
}
/* For results in f32: fewer terms, of FreeBSD's k_sinf.c and k_cosf.c. */
MR_INLINE double mr_sin_core_f32(double r) {
    double z = r * r;
    return r + r * z *
                   ((-0x15555554cbac77.0p-55 + z * 0x111110896efbb2.0p-59) +
                    z * z * (-0x1a00f9e2cae774.0p-65 + z * 0x16cd878c3b46a7.0p-71));
}
MR_INLINE double mr_cos_core_f32(double r) {
    double z = r * r;
    return (1.0 + z * -0x1ffffffd0c5e81.0p-54) +
           z * z *
               (0x155553e1053a42.0p-57 +
                z * (-0x16c087e80f1e27.0p-62 + z * 0x199342e0ee5069.0p-68));
}

/* One of the two cores, and its sign, by the quarter; `first` is 0 for sin and 1 for cos. */
#define MR_CIRCULAR(T, suffix, first)                                                              \
    mr_turned t = mr_turn((double)a);                                                              \
    uint64_t q = t.quarter + (first);                                                              \
    double s = t.r == 0 ? t.r : mr_sin_core##suffix(t.r); /* -0 stays -0 */                        \
    double c = mr_cos_core##suffix(t.r), v = (q & 1) ? c : s;                                      \
    return (T)((q & 2) ? -v : v)

MR_INLINE float mr_sin_near_f32(float a) {
    MR_CIRCULAR(float, _f32, 0);
}
MR_INLINE float mr_cos_near_f32(float a) {
    MR_CIRCULAR(float, _f32, 1);
}
MR_INLINE double mr_sin_near_f64(double a) {
    MR_CIRCULAR(double, , 0);
}
MR_INLINE double mr_cos_near_f64(double a) {
    MR_CIRCULAR(double, , 1);
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

/* ------------------------------------------------------------------------- normal numbers */

/* Box-Muller for f32: 32 random bits give a radius and 32 a direction, and their products are two normal numbers.
 * All multiply-adds are fused and say so: every GPU and most CPUs have an instruction for that, and the numbers are
 * then the same everywhere. */

/* The radius's square: -2 log(u), where u is (bits + 1/2) / 2^32, rounded, and m 2^e with m in [2/3, 4/3). The
 * polynomial is of g = 2 - 2m, in which the logarithm's series begins with g; what is added to the 2 makes the
 * square 2^-22 and not 0 where u is 1, so that nobody has to divide by 0. */
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

/* Of the bits, the lowest 23 give an angle between plus and minus a right angle, counted in such: k 2^-22 - 1. A GPU
 * has the same number for an instruction less from a subnormal, which is what slows a CPU down. */
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

/* ------------------------------------------------------------------------- erf, erfc, pow */

/* After N. Juffa: a polynomial near 0, 1 - exp(polynomial) beyond. */
MR_INLINE float mr_erf_f32(float a) {
    float t = fabsf(a), s = a * a;
    float u = t > 4.0f ? 4.0f : t; /* erf is 1 there, and the polynomial still falls */
    float z = u * u;
    float r = -1.72853470e-5f * u + 3.83197126e-4f;
    r = r * z + (-3.88396438e-3f * u + 2.42546219e-2f);
    r = r * u - 1.06777877e-1f;
    r = r * u - 6.34846687e-1f;
    r = r * u - 1.28717512e-1f;
    float far = 1.0f - mr_exp_f32(r * u - u);
    float p = -5.96761703e-4f;
    p = p * s + 4.99119423e-3f;
    p = p * s - 2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s - 3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    float near = p * a + a;
    return t <= 0.921875f ? near : a < 0.0f ? -far : a != a ? a : far;
}
/* 1 - erf: of f64 without its cancelling, of f32 with it. */
MR_INLINE float mr_erfc_f32(float a) {
    return 1.0f - mr_erf_f32(a);
}
MR_INLINE double mr_erfc_f64(double a) {
    return erfc(a);
}

/* log and exp in double for a result in f32: about 40 good bits, no division in exp, no subnormals
 * (those of f32 are none in double). */
MR_INLINE double mr_log_short(double a) {
    uint64_t shifted = mr_bits_f64(a) - 0x3fe6a09e667f3bcdu;
    uint64_t biased = (shifted >> 52) ^ 0x800u;
    double k = mr_from_bits_f64(0x4330000000000000u | (biased & 0xfffu)) - (0x1p52 + 2048.0);
    double f = mr_from_bits_f64((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double s = f / (2.0 + f), z = s * s, p = 2.0 / 13;
    p = p * z + 2.0 / 11;
    p = p * z + 2.0 / 9;
    p = p * z + 2.0 / 7;
    p = p * z + 2.0 / 5;
    p = p * z + 2.0 / 3;
    double r = k * 0.69314718055994530942 + (s * z * p + (s + s));
    r = a == 0.0 ? -(double)INFINITY : r;
    return a < (double)INFINITY ? r : a;
}
MR_INLINE double mr_exp_short(double a) {
    double x = a > 130.0 ? 130.0 : a;
    x = x < -160.0 ? -160.0 : x;
    double t = x * 1.44269504088896338700 + MR_ROUND_F64;
    uint64_t n = mr_bits_f64(t) - mr_bits_f64(MR_ROUND_F64);
    double r = x - (t - MR_ROUND_F64) * 0.69314718055994530942, p = 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    return p * mr_from_bits_f64((n + 1023) << 52);
}

/* exp(b log|a|) in double, then C's special cases. From 2^24 on every f32 is an even integer, so for
 * telling odd from even larger exponents may be cut off. */
MR_INLINE float mr_pow_f32(float a, float b) {
    double x = fabs((double)a), y = fabs((double)b), inf = (double)INFINITY;
    float r = (float)mr_exp_short((double)b * mr_log_short(x));
    double whole = y > 0x1p30 ? 0x1p30 : y, half = whole * 0.5;
    bool integer = (whole + MR_ROUND_F64) - MR_ROUND_F64 == whole;
    bool even = (half + MR_ROUND_F64) - MR_ROUND_F64 == half;
    float broken = x == 0.0 ? r : x == inf ? r : NAN;
    float below = even ? r : integer ? -r : broken;
    r = copysignf(1.0f, a) < 0.0f ? below : r;
    r = x == 1.0 ? y == inf ? 1.0f : r : r;
    r = a == 1.0f ? 1.0f : r;
    return b == 0.0f ? 1.0f : r;
}
MR_INLINE double mr_pow_f64(double a, double b) {
    return pow(a, b);
}

#endif
