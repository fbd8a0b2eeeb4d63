/* Powers of f32 and f64, like the functions of math.h: no branch, no table, no call where mr_pow_is_near. C's special
 * cases are apart (mr_pow_f32, mr_pow_f64), so a loop asks once a block whether it needs them (binary.c).
 *
 * Easiest to break: an exponent of a thousand makes a thousand units of one in the last place of the logarithm. So
 * the logarithm of f32 is computed in double, and that of f64 in two doubles: the second has the digits that the
 * first lacks. tests/c/test_ops_math.c measures the errors: below 0.6 units in the last place of f32, 1.5 of f64. */
#ifndef MR_OPS_MATH_POW_H
#define MR_OPS_MATH_POW_H

#include "ops/math_double.h"

/* ------------------------------------------------------------------------- f32 */

/* The power of f32 is 2^(b log2 |a|) in double. b log2 |a| is at most 150 where the power is a number, so the logarithm
 * has a relative error of 2^-37.8; that of 2^r is 2^-29. Subnormals of f32 are normal in double. A square is a * a:
 * most powers are squares, and it is correctly rounded. */

/* The logarithm of a positive finite number is k + log2(1 + f), where 1 + f is in [sqrt(1/2),
 * sqrt(2)). f P(f) gives log2(1 + f) with a relative error of 2^-38.5. A division would make the
 * polynomial shorter and take longer than that. */
MR_INLINE double mr_log2_short(double a) {
    uint64_t shifted = mr_bits_f64(a) - 0x3fe6a09e667f3bcdu + 0x8000000000000000u;
    double k = mr_from_bits_f64(shifted >> 52 | 0x4330000000000000u) - (0x1p52 + 2048.0);
    double f = mr_from_bits_f64((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double z = f * f, w = z * z;
    double p = fma(-0x1.1da70dca802fep-4, f, 0x1.0f62c458929e1p-3);
    p = fma(p, z, fma(-0x1.13b8a9316ad9ep-3, f, 0x1.0acde1a04723fp-3));
    p = fma(p, w,
            fma(fma(-0x1.23d6483e285c9p-3, f, 0x1.481fade34a568p-3), z,
                fma(-0x1.7188d3ece86d7p-3, f, 0x1.a61b7dcb1e599p-3)));
    p = fma(p, w,
            fma(fma(-0x1.ec6f2df6865b4p-3, f, 0x1.2776b6cce6c8ap-2), z,
                fma(-0x1.71547888584e3p-2, f, 0x1.ec709de33d145p-2)));
    p = fma(p, z, fma(-0x1.71547651b6f0fp-1, f, 0x1.71547652b58f4p+0));
    return fma(p, f, k);
}
MR_INLINE double mr_exp2_short(double a) {
    double y = mr_exp2_within(a);
    y = a > 200.0 ? (double)INFINITY : y;
    return a < -200.0 ? 0.0 : y;
}

/* Where no special case of C's pow applies but that of a negative base. */
MR_INLINE bool mr_pow_is_near_f32(float a, float b) {
    return (fabsf(a) > 0.0f) & (fabsf(a) < INFINITY) & (fabsf(b) < 0x1p22f);
}
/* A cube is correctly rounded but for one case in 2^29: most powers after squares are cubes. */
MR_INLINE float mr_cube_f32(float a) {
    return (float)((double)a * (double)a * (double)a);
}
/* In two steps: each is a loop of its own, since together they need more registers than there are. */
typedef double mr_pow_exponent_f32;
MR_INLINE mr_pow_exponent_f32 mr_pow_exponent_of_f32(float a, float b) {
    return (double)b * mr_log2_short((double)fabsf(a));
}
MR_INLINE float mr_pow_near_f32(float a, float b, mr_pow_exponent_f32 exponent) {
    /* y + 2^23 is rounded to an integer, which is odd where the last bit is 1. */
    float y = fabsf(b), t = y + 0x1p23f;
    float r = (float)mr_exp2_short(exponent);
    r = mr_from_bits_f32(mr_bits_f32(r) ^ (mr_bits_f32(a) & (mr_bits_f32(t) << 31)));
    r = ((t - 0x1p23f != y) & (a < 0.0f)) ? NAN : r;
    r = b == 3.0f ? mr_cube_f32(a) : r;
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
    r = b == 3.0f ? mr_cube_f32(a) : r;
    return b == 2.0f ? a * a : r;
}

/* ------------------------------------------------------------------------- f64 */

/* A number in two doubles: `low` is at most half a unit in the last place of `high`. */
typedef struct {
    double high, low;
} mr_two;
MR_INLINE mr_two mr_two_product(double a, double b) {
    double p = a * b;
    return (mr_two){p, fma(a, b, -p)};
}
/* |a| >= |b|, or a is 0. */
MR_INLINE mr_two mr_two_sum(double a, double b) {
    double s = a + b;
    return (mr_two){s, (a - s) + b};
}

/* log2 of a positive normal number m 2^k with m in [sqrt(1/2), sqrt(2)). It is k + 2/ln 2 (s + s u), where s is (m - 1)
 * / (m + 1) and s + s u its inverse hyperbolic tangent. u is z/3 + z^2 R(z) for z = s^2. R is of the order of 2^-12
 * beside 1, so one double is enough for it, but not for s and for z/3. */
MR_INLINE mr_two mr_log2_two(double a) {
    uint64_t shifted = mr_bits_f64(a) - 0x3fe6a09e667f3bcdu, biased = (shifted >> 52) ^ 0x800u;
    double k = mr_from_bits_f64(0x4330000000000000u | (biased & 0xfffu)) - (0x1p52 + 2048.0);
    double m = mr_from_bits_f64((shifted & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
    double f = m - 1.0, d = m + 1.0, d_low = m - (d - 1.0), inverse = 1.0 / d;
    double s = f * inverse, s_low = fma(-s, d_low, fma(-s, d, f)) * inverse;
    mr_two z = mr_two_product(s, s);
    z.low = fma(s + s, s_low, z.low);
    double w = z.high * z.high;
    double r = fma(0x1.0e43f151e690ap-4, z.high, 0x1.0f7fcb92a746ep-4);
    r = fma(r, w, fma(0x1.3b1eed1af78fcp-4, z.high, 0x1.745ce9decac8fp-4));
    r = fma(r, w, fma(0x1.c71c722d6f9a2p-4, z.high, 0x1.2492492457d24p-3));
    r = fma(r, z.high, 0x1.9999999999b30p-3) * w;
    mr_two third = mr_two_product(z.high, 0x1.5555555555555p-2), u = mr_two_sum(third.high, r);
    u.low += third.low + fma(z.high, 0x1.5555555555555p-56, z.low * 0x1.5555555555555p-2);
    mr_two su = mr_two_product(s, u.high), t = mr_two_sum(s, su.high);
    t.low += su.low + fma(s, u.low, fma(s_low, u.high, s_low));
    mr_two l = mr_two_product(t.high, 0x1.71547652b82fep+1), sum = mr_two_sum(k, l.high);
    sum.low += l.low + fma(t.high, 0x1.777d0ffda0d24p-55, t.low * 0x1.71547652b82fep+1);
    return sum;
}

/* 2^(high + low): of r in [-1/2, 1/2] 1 + r P(r) with an error of 2^-55.5. */
MR_INLINE double mr_exp2_two(mr_two a) {
    double t = a.high + MR_ROUND_F64, r = (a.high - (t - MR_ROUND_F64)) + a.low;
    double z = r * r, w = z * z;
    double p = fma(0x1.c6db8deb4a621p-36, r, 0x1.ea14cb83f2a14p-32);
    p = fma(p, z, fma(0x1.e4cd9b7dadf63p-28, r, 0x1.b524d07b8096bp-24));
    p = fma(p, w,
            fma(fma(0x1.62c0229b0c301p-20, r, 0x1.ffcbfc7af8027p-17), z,
                fma(0x1.430912f85968ap-13, r, 0x1.5d87fe78a1261p-10)));
    p = fma(p, w,
            fma(fma(0x1.3b2ab6fba4ea8p-7, r, 0x1.c6b08d704a0d6p-5), z,
                fma(0x1.ebfbdff82c58fp-3, r, 0x1.62e42fefa39efp-1)));
    double y = mr_scale_f64(fma(p, r, 1.0), t);
    y = a.high > 1100.0 ? (double)INFINITY : y;
    return a.high < -1100.0 ? 0.0 : y;
}

/* With the rounding error of the square, so nearly correctly rounded. Without it if the cube overflows. */
MR_INLINE double mr_cube_f64(double a) {
    mr_two square = mr_two_product(a, a);
    double rough = square.high * a, cube = fma(square.high, a, square.low * a);
    return fabs(rough) < (double)INFINITY ? cube : rough;
}

/* As in f32; subnormal bases are special cases, too. */
MR_INLINE bool mr_pow_is_near_f64(double a, double b) {
    return (fabs(a) >= 0x1p-1022) & (fabs(a) < (double)INFINITY) & (fabs(b) < 0x1p51);
}
typedef mr_two mr_pow_exponent_f64;
MR_INLINE mr_pow_exponent_f64 mr_pow_exponent_of_f64(double a, double b) {
    mr_two l = mr_log2_two(fabs(a)), e = mr_two_product(b, l.high);
    e.low = fma(b, l.low, e.low);
    return e;
}
MR_INLINE double mr_pow_near_f64(double a, double b, mr_pow_exponent_f64 exponent) {
    double y = fabs(b), t = y + 0x1p52;
    double r = mr_exp2_two(exponent);
    r = mr_from_bits_f64(mr_bits_f64(r) ^ (mr_bits_f64(a) & (mr_bits_f64(t) << 63)));
    r = ((t - 0x1p52 != y) & (a < 0.0)) ? (double)NAN : r;
    double cube = mr_cube_f64(a);
    r = b == 3.0 ? cube : r;
    return b == 2.0 ? a * a : r;
}
MR_INLINE double mr_pow_f64(double a, double b) {
    if (!mr_pow_is_near_f64(a, b)) return b == 2.0 ? a * a : b == 3.0 ? mr_cube_f64(a) : pow(a, b);
    return mr_pow_near_f64(a, b, mr_pow_exponent_of_f64(a, b));
}

#endif
