/* Elementary functions as code without branches: no branch, no table, no call, so that a loop over them
 * becomes vectors. A value is the same whether it is computed alone or in a vector, on any x86 or other
 * machine with IEEE arithmetic, which a vector library beside the C library's would not give.
 *
 * The polynomials of exp, log and erf (f32) are those of Cephes, those of f64 are those of FreeBSD's msun, after
 * Sun's fdlibm; those of sin, cos, tanh and pow (f32) are minimax approximations that were made for this file, and
 * the comment of each says of what and how close. Errors are below 1.5 units in the last place, 2.5 for sin and cos
 * of f64; tests/c/test_ops_math.c measures them. */
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

/* exp of x from -20 to 20 where the absolute error counts, as it is added to 1 or subtracted from it: one step takes out
 * the multiples of the float nearest to ln 2, which is so close (2e-9). The polynomial has an error of 2^-28.3. */
MR_INLINE float mr_exp_beside_1_f32(float x) {
    float t = x * 1.44269504088896341f + MR_ROUND_F32, k = t - MR_ROUND_F32;
    float r = x - k * 0.69314718055994531f;
    float p = 0x1.6a242ep-10f;
    p = p * r + 0x1.1239f8p-7f;
    p = p * r + 0x1.5558f2p-5f;
    p = p * r + 0x1.555492p-3f;
    p = p * r + 0x1.fffffcp-2f;
    p = p * (r * r) + r + 1.0f;
    return p * mr_from_bits_f32((mr_bits_f32(t) << 23) + 0x3f800000u); /* 2^k */
}

/* Below 0.55 a + a^3 P(a^2), with an error of 2^-24.7; beyond it 1 - 2 / (exp(2|a|) + 1), where no more than half of the
 * exponential's error arrives. */
MR_INLINE float mr_tanh_f32(float a) {
    float z = a * a, q = 0x1.0d5036p-6f;
    q = q * z - 0x1.af7ccep-5f;
    q = q * z + 0x1.10cef6p-3f;
    q = q * z - 0x1.555452p-2f;
    float near = a == 0.0f ? a : q * z * a + a; /* -0 stays -0 */
    float x = fabsf(a);
    x = x > 9.1f ? 9.1f : x; /* tanh is 1 from 9.011 on */
    float far = 1.0f - 2.0f / (mr_exp_beside_1_f32(x + x) + 1.0f);
    far = mr_from_bits_f32(mr_bits_f32(far) | (mr_bits_f32(a) & 0x80000000u));
    return x < 0.55f ? near : far;
}

/* a + a^3 P / Q or 1 - 2 / (exp(2|a|) + 1), by one division. exp has a polynomial with a relative error of 2^-57.9. */
MR_INLINE double mr_tanh_f64(double a) {
    double x = fabs(a), z = a * a;
    double p =
        (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
    double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
               4.84406305325125486048e3;
    double y = x > 20.0 ? 20.0 : x; /* tanh is 1 from 19.1 on */
    double t = y * 2.88539008177792681472 + MR_ROUND_F64, k = t - MR_ROUND_F64;
    double r = (y - k * 3.46573590184561908245e-01) - k * 9.54107464635293850010e-11;
    r = r + r;
    double s = r * r, w = s * s;
    double e = (0x1.ad7f5db445c45p-26 * r + 0x1.28ad81797c76fp-22) * s +
               (0x1.71df257517ff8p-19 * r + 0x1.a01999fd43989p-16);
    e = e * w + ((0x1.a01a012a3d9a0p-13 * r + 0x1.6c16c1842f564p-10) * s +
                 (0x1.1111111127c50p-7 * r + 0x1.5555555550866p-5));
    e = (e * s + (0x1.55555555554fap-3 * r + 0x1.000000000000ap-1)) * s + r + 1.0;
    e = e * mr_from_bits_f64((mr_bits_f64(t) << 52) + 0x3ff0000000000000u); /* 2^k */
    bool near = x < 0.625;
    double above = near ? p * z : -2.0, below = near ? q : e + 1.0, base = near ? x : 1.0;
    double v = base + base * (above / below);
    return mr_from_bits_f64(mr_bits_f64(v) | (mr_bits_f64(a) & 0x8000000000000000u));
}

/* ------------------------------------------------------------------------- sin, cos */

/* Good for |x| < MR_NEAR_F32 or MR_NEAR_F64; beyond it a turn cannot be subtracted without many more digits of pi. */
#define MR_NEAR_F32 0x1p22f
#define MR_NEAR_F64 0x1p19
MR_INLINE bool mr_is_near_f32(float a) {
    return fabsf(a) < MR_NEAR_F32;
}
MR_INLINE bool mr_is_near_f64(double a) {
    return fabs(a) < MR_NEAR_F64;
}

/* f32, in double, whose digits beyond the 24 make the reduction and the polynomials simple. In half turns: x / pi is
 * x * (A + B); A has 29 bits, so x * A is exact, and what it is more than a whole number too. Each half turn changes
 * the sign. For r in [-1/2, 1/2], sin(pi r) is r P(r^2) with a relative error of 2^-27.5, and cos(pi r) is
 * (1/4 - r^2) Q(r^2), which has the cosine's zeros, with one of 2^-29.9. */
typedef struct {
    double r;
    uint64_t sign;
} mr_half_turned;
MR_INLINE mr_half_turned mr_half_turn(float a) {
    double x = (double)a, u = x * 0x1.45f306dp-2, t = u + MR_ROUND_F64;
    double r = (u - (t - MR_ROUND_F64)) + x * 0x1.9391054a7f09dp-31;
    return (mr_half_turned){r, mr_bits_f64(t) << 63};
}
MR_INLINE float mr_sin_near_f32(float a) {
    mr_half_turned t = mr_half_turn(a);
    double z = t.r * t.r, p = 0x1.3daff386a0576p-4;
    p = p * z - 0x1.324cca9ea7790p-1;
    p = p * z + 0x1.4668af4d67451p+1;
    p = p * z - 0x1.4abbc166d54fdp+2;
    p = p * z + 0x1.921fb52068e3dp+1;
    return (float)mr_from_bits_f64(mr_bits_f64(p * t.r) ^ t.sign);
}
MR_INLINE float mr_cos_near_f32(float a) {
    mr_half_turned t = mr_half_turn(a);
    double z = t.r * t.r, p = 0x1.8bbd9f846f079p-6;
    p = p * z - 0x1.d474df60201c5p-3;
    p = p * z + 0x1.472a5655be6f9p+0;
    p = p * z - 0x1.de9e5e8b0c4f0p+1;
    p = p * z + 0x1.fffffff790c8fp+1;
    return (float)mr_from_bits_f64(mr_bits_f64(p * (0.25 - z)) ^ t.sign);
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

/* One of the two cores, and its sign, by the quarter; `first` is 0 for sin and 1 for cos. */
MR_INLINE double mr_circular(double a, uint64_t first) {
    mr_turned t = mr_turn(a);
    uint64_t q = t.quarter + first;
    double s = t.r == 0 ? t.r : mr_sin_core(t.r); /* -0 stays -0 */
    double c = mr_cos_core(t.r), v = (q & 1) ? c : s;
    return (q & 2) ? -v : v;
}
MR_INLINE double mr_sin_near_f64(double a) {
    return mr_circular(a, 0);
}
MR_INLINE double mr_cos_near_f64(double a) {
    return mr_circular(a, 1);
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
    float far = 1.0f - mr_exp_beside_1_f32(r * u - u);
    float p = -5.96761703e-4f;
    p = p * s + 4.99119423e-3f;
    p = p * s - 2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s - 3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    float near = p * a + a;
    far = mr_from_bits_f32(mr_bits_f32(far) | (mr_bits_f32(a) & 0x80000000u));
    return t <= 0.921875f ? near : far; /* far is also NaN */
}
/* 1 - erf: of f64 without its cancelling, of f32 with it. */
MR_INLINE float mr_erfc_f32(float a) {
    return 1.0f - mr_erf_f32(a);
}
MR_INLINE double mr_erfc_f64(double a) {
    return erfc(a);
}

/* The power of f32 is 2^(b log2 |a|) in double. b log2 |a| is at most 150 where the power is a number, so the logarithm
 * has a relative error of 2^-37.8; that of 2^r is 2^-29. Subnormals of f32 are none in double. A square is a * a: most
 * powers are squares, and it is correctly rounded. */

/* Of a positive finite number: m is -1 times its mantissa, in (-sqrt(2), -sqrt(1/2)], as the exponent is cut out with
 * its sign bit inverted, so that it comes as an unsigned number. q is (|m| - 1) / (|m| + 1). */
MR_INLINE double mr_log2_short(double a) {
    uint64_t bits = mr_bits_f64(a), shifted = bits + (0x8000000000000000u - 0x3fe6a09e667f3bcdu);
    double m = mr_from_bits_f64(bits - (shifted & 0xfff0000000000000u));
    double k = mr_from_bits_f64((shifted >> 52) | 0x4330000000000000u) - (0x1p52 + 2048.0);
    double q = (m + 1.0) / (m - 1.0), z = q * q, p = 0x1.5ce7cf5d668cbp-2;
    p = p * z + 0x1.a58d8faa15c5dp-2;
    p = p * z + 0x1.27777fda92677p-1;
    p = p * z + 0x1.ec709d12e120fp-1;
    p = p * z + 0x1.71547652bede5p+1;
    return p * q + k;
}
MR_INLINE double mr_exp2_short(double a) {
    double x = a > 200.0 ? 200.0 : a;
    x = x < -200.0 ? -200.0 : x;
    double t = x + MR_ROUND_F64, r = x - (t - MR_ROUND_F64), z = r * r;
    double p = (0x1.41d34799c33e5p-13 * r + 0x1.5f456b9a26519p-10) * z +
               (0x1.3b2dbb9d9da8fp-7 * r + 0x1.c6aed4b6d6613p-5);
    p = (p * r + 0x1.ebfbdadcf484ep-3) * z + (0x1.62e430c7eb538p-1 * r + 0x1.000000026125fp+0);
    return mr_from_bits_f64(mr_bits_f64(p) + (mr_bits_f64(t) << 52));
}

/* Where no special case of C's pow applies but that of a negative base. */
MR_INLINE bool mr_pow_is_near_f32(float a, float b) {
    return (fabsf(a) > 0.0f) & (fabsf(a) < INFINITY) & (fabsf(b) < 0x1p22f);
}
/* In two steps: each is a loop of its own, since together they need more registers than there are. */
MR_INLINE double mr_pow_exponent_f32(float a, float b) {
    return (double)b * mr_log2_short((double)fabsf(a));
}
MR_INLINE float mr_pow_near_f32(float a, float b, double exponent) {
    float y = fabsf(b),
          t = y + 0x1p23f; /* rounded to an integer, which is odd where the last bit is 1 */
    float r = (float)mr_exp2_short(exponent);
    r = mr_from_bits_f32(mr_bits_f32(r) ^ (mr_bits_f32(a) & (mr_bits_f32(t) << 31)));
    r = ((t - 0x1p23f != y) & (a < 0.0f)) ? NAN : r;
    return b == 2.0f ? a * a : r;
}

/* All of C's special cases. From 2^24 on every f32 is an even integer, so for telling odd from even larger exponents
 * may be cut off. */
MR_INLINE float mr_pow_f32(float a, float b) {
    double x = fabs((double)a), y = fabs((double)b), inf = (double)INFINITY;
    double log2 = x == 0.0 ? -inf : x < inf ? mr_log2_short(x) : x;
    float r = (float)mr_exp2_short((double)b * log2);
    double whole = y > 0x1p30 ? 0x1p30 : y, half = whole * 0.5;
    bool integer = (whole + MR_ROUND_F64) - MR_ROUND_F64 == whole;
    bool even = (half + MR_ROUND_F64) - MR_ROUND_F64 == half;
    float broken = x == 0.0 ? r : x == inf ? r : NAN;
    float below = even ? r : integer ? -r : broken;
    r = copysignf(1.0f, a) < 0.0f ? below : r;
    r = x == 1.0 ? y == inf ? 1.0f : r : r;
    r = a == 1.0f ? 1.0f : r;
    r = b == 0.0f ? 1.0f : r;
    return b == 2.0f ? a * a : r;
}
MR_INLINE double mr_pow_f64(double a, double b) {
    return b == 2.0 ? a * a : pow(a, b);
}

#endif
