/* Elementary functions of f32 that are computed in double. There the polynomials need not be long, and cancelled digits
 * do no harm. Like the functions of math.h they have no branch, no table and no call. So loops over them become
 * vectors, and a GPU gives the same bits. The errors are below 0.6 units in the last place; tests/c/test_ops_math.c
 * measures them. Those of f64 that are not in math.h are the C library's.
 *
 * Easiest to break: -0, NaN and the infinities, which go through the same code as all other values. */
#ifndef MR_OPS_MATH_DOUBLE_H
#define MR_OPS_MATH_DOUBLE_H

#include "ops/math.h"

/* ------------------------------------------------------------------------- exponentials and logarithms */

#define MR_LN2  0.69314718055994530942
#define MR_PI   3.14159265358979323846
#define MR_PI_2 1.57079632679489661923

/* About 40 good bits, for values with the precision of f32: no subnormals. */
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
    double r = k * MR_LN2 + (s * z * p + (s + s));
    r = a == 0.0 ? -(double)INFINITY : r;
    r = a < (double)INFINITY ? r : a;
    return a < 0.0 ? (double)NAN : r;
}
/* About 32 good bits; the result is not subnormal. */
MR_INLINE double mr_exp_short(double a) {
    double x = a > 130.0 ? 130.0 : a;
    x = x < -160.0 ? -160.0 : x;
    double t = fma(x, 1.44269504088896338700, MR_ROUND_F64);
    uint64_t n = mr_bits_f64(t) - mr_bits_f64(MR_ROUND_F64);
    double r = fma(t - MR_ROUND_F64, -MR_LN2, x), p = 1.0 / 40320;
    p = fma(p, r, 1.0 / 5040);
    p = fma(p, r, 1.0 / 720);
    p = fma(p, r, 1.0 / 120);
    p = fma(p, r, 1.0 / 24);
    p = fma(p, r, 1.0 / 6);
    p = fma(p, r, 0.5);
    p = fma(p, r, 1.0);
    p = fma(p, r, 1.0);
    return p * mr_from_bits_f64((n + 1023) << 52);
}

/* 2^a for a from -1000 to 1000, with an error of 2^-29. NaN stays NaN. */
MR_INLINE double mr_exp2_within(double a) {
    double t = a + MR_ROUND_F64, r = a - (t - MR_ROUND_F64), z = r * r;
    double p = fma(fma(0x1.41d34799c33e5p-13, r, 0x1.5f456b9a26519p-10), z,
                   fma(0x1.3b2dbb9d9da8fp-7, r, 0x1.c6aed4b6d6613p-5));
    p = fma(fma(p, r, 0x1.ebfbdadcf484ep-3), z, fma(0x1.62e430c7eb538p-1, r, 0x1.000000026125fp+0));
    return mr_from_bits_f64(mr_bits_f64(p) + (mr_bits_f64(t) << 52));
}
/* 1 + exp(-a), exact enough for a quotient that is rounded to f32: beyond 128 the quotient is the same. If a itself
 * were limited, gcc would treat its limits as cases of their own. */
MR_INLINE double mr_1_plus_exp_minus(float a) {
    double d = 1.0 + mr_exp2_within((double)a * -1.44269504088896338700);
    d = a > 128.0f ? 1.0 : d;
    return a < -128.0f ? (double)INFINITY : d;
}

MR_INLINE float mr_exp2_f32(float a) {
    return (float)mr_exp_short((double)a * MR_LN2);
}
MR_INLINE float mr_log2_f32(float a) {
    return (float)(mr_log_short((double)a) * 1.44269504088896340736);
}
MR_INLINE float mr_log10_f32(float a) {
    return (float)(mr_log_short((double)a) * 0.43429448190325182765);
}

/* Near 0 by the series, as 1 + a would lose digits. */
MR_INLINE double mr_log1p_double(double a) {
    double series = a * (1.0 - a * (0.5 - a * (1.0 / 3 - a * 0.25)));
    return fabs(a) < 0x1p-12 ? (a == 0.0 ? a : series) : mr_log_short(1.0 + a);
}
MR_INLINE float mr_log1p_f32(float a) {
    return (float)mr_log1p_double((double)a);
}

/* Near 0 by the series of mr_exp_short without its first term. */
MR_INLINE double mr_expm1_double(double a) {
    double p = 1.0 / 362880;
    p = p * a + 1.0 / 40320;
    p = p * a + 1.0 / 5040;
    p = p * a + 1.0 / 720;
    p = p * a + 1.0 / 120;
    p = p * a + 1.0 / 24;
    p = p * a + 1.0 / 6;
    p = p * a + 0.5;
    p = p * a + 1.0;
    double far = mr_exp_short(a) - 1.0;
    return fabs(a) < 0.34 ? p * a : far;
}
MR_INLINE float mr_expm1_f32(float a) {
    return (float)mr_expm1_double((double)a);
}

MR_INLINE float mr_sinh_f32(float a) {
    double e = mr_expm1_double(fabs((double)a));
    return copysignf((float)(0.5 * (e + e / (e + 1.0))), a);
}
MR_INLINE float mr_cosh_f32(float a) {
    double e = mr_exp_short(fabs((double)a));
    return (float)(0.5 * (e + 1.0 / e));
}

/* In f32, exp(-a) would be infinite where the result is not 0 yet. Here and above, values are chosen after they are
 * computed: gcc makes no vectors of a fused multiply-add under a condition. */
MR_INLINE float mr_silu_f32(float a) {
    return (float)((double)a / mr_1_plus_exp_minus(a)); /* NaN of -inf, as of -inf * 0 */
}
MR_INLINE float mr_sigmoid_f32(float a) {
    return (float)(1.0 / mr_1_plus_exp_minus(a));
}

/* ------------------------------------------------------------------------- circular functions */

/* In half turns: x / pi is x * (A + B); A has 29 bits, so x * A is exact, and what it is more
 * than a whole number too. For r in [-1/2, 1/2], sin(pi r) is r P(r^2) with a relative error of
 * 2^-27.5. cos(pi r) is (1/4 - r^2) Q(r^2) with one of 2^-29.9; the factor has the cosine's
 * zeros. A half turn changes both signs. */
MR_INLINE float mr_tan_near_f32(float a) {
    double x = (double)a, u = x * 0x1.45f306dp-2, whole = (u + MR_ROUND_F64) - MR_ROUND_F64;
    double r = fma(x, 0x1.9391054a7f09dp-31, u - whole), z = r * r, p = 0x1.3daff386a0576p-4;
    p = fma(p, z, -0x1.324cca9ea7790p-1);
    p = fma(p, z, 0x1.4668af4d67451p+1);
    p = fma(p, z, -0x1.4abbc166d54fdp+2);
    p = fma(p, z, 0x1.921fb52068e3dp+1);
    double q = 0x1.8bbd9f846f079p-6;
    q = fma(q, z, -0x1.d474df60201c5p-3);
    q = fma(q, z, 0x1.472a5655be6f9p+0);
    q = fma(q, z, -0x1.de9e5e8b0c4f0p+1);
    q = fma(q, z, 0x1.fffffff790c8fp+1);
    return (float)(p * r / (q * (0.25 - z)));
}
MR_INLINE float mr_tan_f32(float a) {
    return mr_is_near_f32(a) ? mr_tan_near_f32(a) : (float)tan((double)a);
}

/* The polynomials are Chebyshev fits: of atan(x) / x in x^2 up to tan(pi/8), of asin(x) / x up to 1/2. */
MR_INLINE double mr_atan_positive(double x) { /* up to 1 */
    bool far = x > 0.41421356237309504880;
    double t = far ? (x - 1.0) / (x + 1.0) : x, z = t * t;
    double p = 0.047129969607085015;
    p = p * z - 0.08459109007825491;
    p = p * z + 0.11041054130440606;
    p = p * z - 0.14281639256795803;
    p = p * z + 0.19999885898575315;
    p = p * z - 0.33333332127877696;
    p = p * z + 0.99999999997912825;
    return far ? 0.25 * MR_PI + p * t : p * t;
}
MR_INLINE float mr_atan_f32(float a) {
    double x = fabs((double)a);
    bool steep = x > 1.0;
    double r = mr_atan_positive(steep ? 1.0 / x : x);
    return copysignf((float)(steep ? MR_PI_2 - r : r), a);
}

/* C's rules for zeros and infinities: the sign of a zero says on which side it lies. */
MR_INLINE float mr_atan2_f32(float a, float b) {
    double y = fabs((double)a), x = fabs((double)b);
    double most = y > x ? y : x, least = y > x ? x : y;
    double q = most == least ? (most == 0.0 ? 0.0 : 1.0) : least / most;
    double r = mr_atan_positive(q);
    r = y > x ? MR_PI_2 - r : r;
    r = copysignf(1.0f, b) < 0.0f ? MR_PI - r : r;
    return a != a || b != b ? NAN : copysignf((float)r, a);
}

MR_INLINE double mr_asin_ratio(double z) {
    double p = 0.0348736947527125;
    p = p * z + 0.007291878960894017;
    p = p * z + 0.024688181221785677;
    p = p * z + 0.03009618505411334;
    p = p * z + 0.044661688331228667;
    p = p * z + 0.074999396423197959;
    p = p * z + 0.16666667399184693;
    p = p * z + 0.99999999998547484;
    return p;
}
/* Up to 1/2 by the polynomial p(z) x; from there on asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)). */
MR_INLINE float mr_asin_f32(float a) {
    double x = fabs((double)a), half = 0.5 - 0.5 * x;
    bool far = x > 0.5;
    double z = far ? half : x * x, t = far ? sqrt(half) : x, r = t * mr_asin_ratio(z);
    return copysignf((float)(far ? MR_PI_2 - 2.0 * r : r), a);
}
MR_INLINE float mr_acos_f32(float a) {
    double x = fabs((double)a), half = 0.5 - 0.5 * x;
    bool far = x > 0.5;
    double z = far ? half : x * x, t = far ? sqrt(half) : x, r = t * mr_asin_ratio(z);
    double near = MR_PI_2 - (a < 0.0f ? -r : r), edge = a < 0.0f ? MR_PI - 2.0 * r : 2.0 * r;
    return (float)(far ? edge : near);
}

/* ------------------------------------------------------------------------- f64 */

/* C's function for the type. */
#define MR_BY_LIBRARY(name)                                                                        \
    MR_INLINE double mr_##name##_f64(double a) {                                                   \
        return name(a);                                                                            \
    }
MR_BY_LIBRARY(exp2)
MR_BY_LIBRARY(log2)
MR_BY_LIBRARY(log10)
MR_BY_LIBRARY(expm1)
MR_BY_LIBRARY(sinh)
MR_BY_LIBRARY(cosh)
MR_BY_LIBRARY(atan)
MR_BY_LIBRARY(asin)
MR_BY_LIBRARY(acos)
MR_BY_LIBRARY(erf)
#undef MR_BY_LIBRARY
MR_INLINE double mr_silu_f64(double a) {
    double e = mr_exp_f64(-fabs(a));
    return a < 0.0 ? a * e / (1.0 + e) : a / (1.0 + e);
}
MR_INLINE double mr_sigmoid_f64(double a) {
    double e = mr_exp_f64(-fabs(a));
    return a < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}
MR_INLINE double mr_atan2_f64(double a, double b) {
    return atan2(a, b);
}

#endif
