/* Functions of the CUDA math API for clang: the part that computes. Those of double are within 2 units in the last
 * place (the gamma functions: 10), which are CUDA's own bounds or less. Those of float are computed in double and
 * rounded once. tests/c/test_compile_math.c measures all of them on the host, so this file is C that both sides
 * compile: MR_FUNCTION is what stands in front of a function.
 *
 * Series are Taylor's on a short interval; the polynomials given by numbers interpolate at Chebyshev's points.
 * Easiest to break: sums whose error is computed (mr_two_sum) must not be contracted to fused operations, so each
 * function that uses them begins with MR_EXACT. */
#ifndef MILLRACE_FUNCTIONS_H
#define MILLRACE_FUNCTIONS_H

#ifdef __clang__
#pragma clang system_header
#define MR_EXACT _Pragma("clang fp contract(off)")
#else
#define MR_EXACT
#endif

typedef unsigned long long mr_bits64;
typedef struct {
    double high, low; /* their sum, with about 106 bits */
} mr_pair;

#define MR_INFINITY  __builtin_inf()
#define MR_NAN       __builtin_nan("")
#define MR_PI        3.141592653589793
#define MR_PI_LOW    1.2246467991473532e-16
#define MR_HALF_PI   1.5707963267948966
#define MR_HALF_LOW  6.123233995736766e-17
#define MR_HALF_LAST -1.4973849048591698e-33
#define MR_LN2       0.6931471805599453
#define MR_LN2_LOW   2.3190468138462996e-17
/* The first 32 bits of ln 2, and the rest: a multiple of the first by an exponent is exact. */
#define MR_LN2_SHORT 0.6931471803691238
#define MR_LN2_REST  1.9082149292705877e-10

/* ---------------------------------------------------------------- bits and pairs */

MR_FUNCTION mr_bits64 mr_bits(double x) {
    mr_bits64 bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
MR_FUNCTION double mr_of_bits(mr_bits64 bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
MR_FUNCTION int mr_is_nan(double x) {
    return x != x;
}
MR_FUNCTION int mr_is_finite(double x) {
    return __builtin_fabs(x) < MR_INFINITY;
}
MR_FUNCTION int mr_is_negative(double x) {
    return (int)(mr_bits(x) >> 63);
}

/* 2 to the power of n, for a normal result. */
MR_FUNCTION double mr_power_of_2(int n) {
    return mr_of_bits((mr_bits64)(n + 1023) << 52);
}

/* x 2^n, rounded once where x is normal. */
MR_FUNCTION double mr_ldexp(double x, int n) {
    if (n > 1023) {
        x *= mr_power_of_2(1023);
        n -= 1023;
        if (n > 1023) {
            x *= mr_power_of_2(1023);
            n = n > 2046 ? 1023 : n - 1023;
        }
    } else if (n < -1022) { /* so that only the last product is rounded */
        x *= mr_power_of_2(-969);
        n += 969;
        if (n < -1022) {
            x *= mr_power_of_2(-969);
            n = n < -1991 ? -1022 : n + 969;
        }
    }
    return x * mr_power_of_2(n);
}

/* m and e with x = m 2^e and 0.5 <= |m| < 1; of zero, infinity and NaN themselves and 0. */
MR_FUNCTION double mr_frexp(double x, int *out_exponent) {
    int extra = 0;
    *out_exponent = 0;
    if (x == 0.0 || !mr_is_finite(x)) return x;
    if (__builtin_fabs(x) < 2.2250738585072014e-308) {
        x *= 18014398509481984.0; /* 2^54 */
        extra = -54;
    }
    mr_bits64 bits = mr_bits(x);
    *out_exponent = (int)(bits >> 52 & 0x7ff) - 1022 + extra;
    return mr_of_bits((bits & ~((mr_bits64)0x7ff << 52)) | (mr_bits64)1022 << 52);
}

MR_FUNCTION mr_pair mr_two_sum(double a, double b) {
    MR_EXACT
    mr_pair sum;
    sum.high = a + b;
    double part = sum.high - a;
    sum.low = (a - (sum.high - part)) + (b - part);
    return sum;
}
/* For |a| >= |b|, or a == 0. */
MR_FUNCTION mr_pair mr_quick_sum(double a, double b) {
    MR_EXACT
    mr_pair sum;
    sum.high = a + b;
    sum.low = b - (sum.high - a);
    return sum;
}
MR_FUNCTION mr_pair mr_product(double a, double b) {
    mr_pair product;
    product.high = a * b;
    product.low = __builtin_fma(a, b, -product.high);
    return product;
}
MR_FUNCTION mr_pair mr_pair_product(mr_pair a, mr_pair b) {
    MR_EXACT
    mr_pair p = mr_product(a.high, b.high);
    return mr_quick_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
MR_FUNCTION mr_pair mr_pair_sum(mr_pair a, mr_pair b) {
    MR_EXACT
    mr_pair high = mr_two_sum(a.high, b.high), low = mr_two_sum(a.low, b.low);
    mr_pair sum = mr_quick_sum(high.high, high.low + low.high);
    return mr_quick_sum(sum.high, sum.low + low.low);
}
MR_FUNCTION mr_pair mr_pair_quotient(mr_pair a, mr_pair b) {
    MR_EXACT
    double q = a.high / b.high;
    double rest = __builtin_fma(-q, b.high, a.high) + (a.low - q * b.low);
    return mr_quick_sum(q, rest / b.high);
}
MR_FUNCTION mr_pair mr_pair_of(double high, double low) {
    mr_pair pair = {high, low};
    return pair;
}

/* The polynomial with these coefficients, from x^0 to x^degree. Its last step is a pair, and the coefficient of x^0 has
 * the addition `first_low`. */
MR_FUNCTION mr_pair mr_polynomial(const double *coefficients, int degree, double first_low,
                                  mr_pair x) {
    MR_EXACT
    double p = 0.0;
    for (int i = degree; i > 0; i--) p = __builtin_fma(p, x.high, coefficients[i]);
    mr_pair product = mr_product(p, x.high), sum = mr_two_sum(coefficients[0], product.high);
    return mr_quick_sum(sum.high, sum.low + (product.low + p * x.low + first_low));
}

/* ---------------------------------------------------------------- exponentials */

/* e^r - 1 - r - r^2/2 for |r| <= 0.35, divided by r^3. */
MR_FUNCTION double mr_exp_tail(double r) {
    double p = 1.0 / 6227020800.0;
    p = __builtin_fma(p, r, 1.0 / 479001600.0);
    p = __builtin_fma(p, r, 1.0 / 39916800.0);
    p = __builtin_fma(p, r, 1.0 / 3628800.0);
    p = __builtin_fma(p, r, 1.0 / 362880.0);
    p = __builtin_fma(p, r, 1.0 / 40320.0);
    p = __builtin_fma(p, r, 1.0 / 5040.0);
    p = __builtin_fma(p, r, 1.0 / 720.0);
    p = __builtin_fma(p, r, 1.0 / 120.0);
    p = __builtin_fma(p, r, 1.0 / 24.0);
    return __builtin_fma(p, r, 1.0 / 6.0);
}

/* e^(r.high + r.low) - 1. */
MR_FUNCTION mr_pair mr_exp_series(mr_pair r) {
    MR_EXACT
    mr_pair half = mr_product(0.5 * r.high, r.high);
    double tail = __builtin_fma(2.0 * half.high * r.high, mr_exp_tail(r.high), half.low);
    mr_pair sum = mr_quick_sum(r.high, half.high);
    return mr_quick_sum(sum.high, sum.low + (tail + __builtin_fma(r.high, r.low, r.low)));
}

/* e^(high + low) 2^shift. */
MR_FUNCTION double mr_exp_pair(double high, double low, int shift) {
    MR_EXACT
    if (mr_is_nan(high)) return high;
    if (high > 1500.0) return MR_INFINITY;
    if (high < -1500.0) return 0.0;
    double k = __builtin_rint(high * 1.4426950408889634);
    mr_pair r =
        mr_two_sum(__builtin_fma(-k, MR_LN2_SHORT, high), __builtin_fma(-k, MR_LN2_REST, low));
    mr_pair series = mr_exp_series(r), sum = mr_quick_sum(1.0, series.high);
    return mr_ldexp(sum.high + (sum.low + series.low), (int)k + shift);
}

MR_FUNCTION double mr_exp(double x) {
    return mr_exp_pair(x, 0.0, 0);
}

MR_FUNCTION double mr_exp2(double x) {
    if (!(__builtin_fabs(x) < 1100.0)) return x > 0.0 ? MR_INFINITY : x < 0.0 ? 0.0 : x;
    double k = __builtin_rint(x);
    mr_pair r = mr_product(x - k, MR_LN2);
    return mr_exp_pair(r.high, __builtin_fma(x - k, MR_LN2_LOW, r.low), (int)k);
}

MR_FUNCTION double mr_exp10(double x) {
    MR_EXACT
    if (!(__builtin_fabs(x) < 400.0)) return x > 0.0 ? MR_INFINITY : x < 0.0 ? 0.0 : x;
    double k = __builtin_rint(x * 3.321928094887362);
    /* The first 32 bits of log10(2), and the rest. */
    mr_pair r = mr_two_sum(__builtin_fma(-k, 0.3010299955494702, x), -k * 1.1451100898021838e-10);
    mr_pair p = mr_product(r.high, 2.302585092994046);
    double low = __builtin_fma(r.high, -2.1707562233822494e-16, r.low * 2.302585092994046);
    return mr_exp_pair(p.high, p.low + low, (int)k);
}

/* e^x - 1 for |x| < 700. */
MR_FUNCTION mr_pair mr_expm1_pair(double x) {
    MR_EXACT
    double k = __builtin_rint(x * 1.4426950408889634);
    mr_pair r = mr_two_sum(__builtin_fma(-k, MR_LN2_SHORT, x), -k * MR_LN2_REST),
            series = mr_exp_series(r);
    if (k == 0.0) return series;
    double scale = mr_ldexp(1.0, (int)k);
    mr_pair one = mr_two_sum(scale, -1.0);
    return mr_pair_sum(one, mr_pair_of(scale * series.high, scale * series.low));
}

MR_FUNCTION double mr_expm1(double x) {
    if (mr_is_nan(x) || x == 0.0) return x;
    if (x > 60.0) return mr_exp(x);
    if (x < -40.0) return -1.0;
    mr_pair e = mr_expm1_pair(x);
    return e.high + e.low;
}

MR_FUNCTION double mr_sinh(double x) {
    MR_EXACT
    double a = __builtin_fabs(x);
    if (a < 1e-9 || mr_is_nan(x)) return x;
    if (a > 22.0) return __builtin_copysign(mr_exp_pair(a, 0.0, -1), x);
    mr_pair e = mr_expm1_pair(a),
            quotient = mr_pair_quotient(e, mr_pair_sum(e, mr_pair_of(1.0, 0.0)));
    e = mr_pair_sum(e, quotient);
    return __builtin_copysign(0.5 * (e.high + e.low), x);
}

MR_FUNCTION double mr_cosh(double x) {
    MR_EXACT
    double a = __builtin_fabs(x);
    if (a > 22.0 || mr_is_nan(x)) return mr_exp_pair(a, 0.0, -1);
    mr_pair e = mr_pair_sum(mr_expm1_pair(a), mr_pair_of(1.0, 0.0));
    e = mr_pair_sum(e, mr_pair_quotient(mr_pair_of(1.0, 0.0), e));
    return 0.5 * (e.high + e.low);
}

MR_FUNCTION double mr_tanh(double x) {
    MR_EXACT
    double a = __builtin_fabs(x);
    if (a < 1e-9 || mr_is_nan(x)) return x;
    if (a > 22.0) return __builtin_copysign(1.0, x);
    mr_pair e = mr_expm1_pair(2.0 * a),
            quotient = mr_pair_quotient(e, mr_pair_sum(e, mr_pair_of(2.0, 0.0)));
    return __builtin_copysign(quotient.high + quotient.low, x);
}

/* ---------------------------------------------------------------- logarithms */

/* x = m 2^e with m from sqrt(1/2) to sqrt(2); returns m - 1. For positive, finite x. */
MR_FUNCTION double mr_log_reduce(double x, double *out_exponent) {
    int exponent;
    double m = mr_frexp(x, &exponent);
    if (m < 0.7071067811865476) {
        m += m;
        exponent--;
    }
    *out_exponent = exponent;
    return m - 1.0;
}

/* (log(1 + f) - 2s) / s^3 - 2/3, divided by z, where s = f / (2 + f) and z = s^2. */
MR_FUNCTION double mr_log_tail(double z) {
    double p = 2.0 / 25.0;
    p = __builtin_fma(p, z, 2.0 / 23.0);
    p = __builtin_fma(p, z, 2.0 / 21.0);
    p = __builtin_fma(p, z, 2.0 / 19.0);
    p = __builtin_fma(p, z, 2.0 / 17.0);
    p = __builtin_fma(p, z, 2.0 / 15.0);
    p = __builtin_fma(p, z, 2.0 / 13.0);
    p = __builtin_fma(p, z, 2.0 / 11.0);
    p = __builtin_fma(p, z, 2.0 / 9.0);
    p = __builtin_fma(p, z, 2.0 / 7.0);
    return __builtin_fma(p, z, 2.0 / 5.0);
}

/* log(x) for positive, finite x, to 2^-64 of its value. */
MR_FUNCTION mr_pair mr_log_pair(double x) {
    MR_EXACT
    double e, f = mr_log_reduce(x, &e);
    mr_pair d = mr_quick_sum(2.0, f), s;
    s.high = f / d.high;
    s.low = (__builtin_fma(-s.high, d.high, f) - s.high * d.low) / d.high;
    mr_pair z = mr_pair_product(s, s), cube = mr_pair_product(z, s);
    mr_pair sum = mr_pair_product(cube, mr_pair_of(0.6666666666666666, 3.700743415417188e-17));
    sum.low += cube.high * (z.high * mr_log_tail(z.high));
    sum = mr_pair_sum(mr_pair_of(2.0 * s.high, 2.0 * s.low), mr_quick_sum(sum.high, sum.low));
    mr_pair whole = mr_product(e, MR_LN2);
    whole.low += e * MR_LN2_LOW;
    return mr_pair_sum(mr_quick_sum(whole.high, whole.low), sum);
}

/* The results of a logarithm for zero, negative numbers, infinity and NaN. */
MR_FUNCTION int mr_log_is_special(double x, double *out) {
    *out = x == 0.0 ? -MR_INFINITY : x < 0.0 ? MR_NAN : x;
    return !(x > 0.0 && x < MR_INFINITY);
}

/* (sum of log's series beyond f) as f - (h - s (h + R)), where h = f^2 / 2: exact enough without pairs. */
MR_FUNCTION double mr_log_with(double f, double e, double correction) {
    MR_EXACT
    double s = f / (2.0 + f), z = s * s, h = 0.5 * f * f;
    double tail = z * __builtin_fma(z, mr_log_tail(z), 2.0 / 3.0);
    double rest = __builtin_fma(e, MR_LN2_REST, s * (h + tail)) + correction;
    return __builtin_fma(e, MR_LN2_SHORT, f - (h - rest));
}

MR_FUNCTION double mr_log(double x) {
    double special, e;
    if (mr_log_is_special(x, &special)) return special;
    double f = mr_log_reduce(x, &e);
    return mr_log_with(f, e, 0.0);
}

MR_FUNCTION double mr_log1p(double x) {
    MR_EXACT
    double special, e;
    if (mr_log_is_special(1.0 + x, &special)) return mr_is_nan(x) ? x : special;
    if (__builtin_fabs(x) < 1e-17) return x;
    mr_pair u = mr_two_sum(1.0, x);
    double f = mr_log_reduce(u.high, &e);
    return mr_log_with(f, e, u.low / u.high);
}

MR_FUNCTION double mr_log_by(double x, double factor, double factor_low) {
    double special;
    if (mr_log_is_special(x, &special)) return special;
    mr_pair log = mr_pair_product(mr_log_pair(x), mr_pair_of(factor, factor_low));
    return log.high + log.low;
}
MR_FUNCTION double mr_log2(double x) {
    return mr_log_by(x, 1.4426950408889634, 2.0355273740931033e-17);
}
MR_FUNCTION double mr_log10(double x) {
    return mr_log_by(x, 0.4342944819032518, 1.098319650216765e-17);
}

MR_FUNCTION double mr_asinh(double x) {
    double a = __builtin_fabs(x), square = a * a;
    if (a < 1e-9 || !mr_is_finite(x)) return x;
    if (a > 1e9) return __builtin_copysign(mr_log(a) + MR_LN2, x);
    return __builtin_copysign(mr_log1p(a + square / (1.0 + __builtin_sqrt(1.0 + square))), x);
}
MR_FUNCTION double mr_acosh(double x) {
    if (x < 1.0) return MR_NAN;
    if (x > 1e9) return mr_log(x) + MR_LN2;
    double t = x - 1.0;
    return mr_log1p(t + __builtin_sqrt(2.0 * t + t * t));
}
MR_FUNCTION double mr_atanh(double x) {
    double a = __builtin_fabs(x);
    if (a < 1e-9) return x;
    return __builtin_copysign(0.5 * mr_log1p(2.0 * a / (1.0 - a)), x);
}

/* ---------------------------------------------------------------- powers and roots */

/* 0: no integer, 1: odd, 2: even. */
MR_FUNCTION int mr_parity(double y) {
    double a = __builtin_fabs(y);
    if (a >= 9007199254740992.0) return 2;
    if (__builtin_trunc(a) != a) return 0;
    return (mr_bits64)a & 1 ? 1 : 2;
}

/* For x and y of which one is zero, infinite or NaN, or x == 1. */
MR_FUNCTION double mr_pow_special(double x, double y) {
    double a = __builtin_fabs(x);
    int is_odd = mr_parity(y) == 1;
    if (x == 1.0 || y == 0.0) return 1.0;
    if (mr_is_nan(x) || mr_is_nan(y)) return MR_NAN;
    if (!mr_is_finite(y)) return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? MR_INFINITY : 0.0;
    double result = (a == 0.0) == (y > 0.0) ? 0.0 : MR_INFINITY;
    return is_odd ? __builtin_copysign(result, x) : result;
}

MR_FUNCTION double mr_pow(double x, double y) {
    MR_EXACT
    double a = __builtin_fabs(x);
    if (x == 1.0 || !(a > 0.0 && a < MR_INFINITY) || y == 0.0 || !mr_is_finite(y))
        return mr_pow_special(x, y);
    int parity = mr_parity(y);
    if (x < 0.0 && parity == 0) return MR_NAN;
    mr_pair log = mr_log_pair(a);
    double sign = x < 0.0 && parity == 1 ? -1.0 : 1.0;
    if (a == 1.0) return sign;
    if (__builtin_fabs(y) > 1e25) return sign * ((log.high > 0.0) == (y > 0.0) ? MR_INFINITY : 0.0);
    mr_pair p = mr_product(log.high, y);
    return sign * mr_exp_pair(p.high, __builtin_fma(log.low, y, p.low), 0);
}

MR_FUNCTION double mr_cbrt(double x) {
    MR_EXACT
    int exponent;
    if (x == 0.0 || !mr_is_finite(x)) return x;
    double m = mr_frexp(__builtin_fabs(x), &exponent);
    int third = (exponent + 3000) / 3 - 1000;
    m = mr_ldexp(m, exponent - 3 * third); /* from 0.5 to 4 */
    double root = __builtin_fma(m, 0.28, 0.6);
    for (int i = 0; i < 4; i++) root = root - (root * root * root - m) / (3.0 * root * root);
    mr_pair square = mr_product(root, root), cube = mr_product(square.high, root);
    double error = (cube.high - m) + (cube.low + square.low * root);
    return __builtin_copysign(mr_ldexp(root - error / (3.0 * square.high), third), x);
}

/* Scales so that no square overflows or vanishes. `most` is the largest of the magnitudes. */
MR_FUNCTION int mr_norm_shift(double most) {
    int exponent;
    mr_frexp(most, &exponent);
    return -exponent;
}

MR_FUNCTION mr_pair mr_square_sum(mr_pair sum, double x) {
    return mr_pair_sum(sum, mr_product(x, x));
}

MR_FUNCTION mr_pair mr_pair_sqrt(mr_pair x) {
    MR_EXACT
    double root = __builtin_sqrt(x.high);
    if (root == 0.0) return mr_pair_of(0.0, 0.0);
    return mr_pair_of(root, (__builtin_fma(-root, root, x.high) + x.low) / (2.0 * root));
}

/* The length of (x, y, z, w), or its reciprocal. */
MR_FUNCTION double mr_norm(double x, double y, double z, double w, int is_reciprocal) {
    double a = __builtin_fmax(__builtin_fabs(x), __builtin_fabs(y));
    double b = __builtin_fmax(__builtin_fabs(z), __builtin_fabs(w)), most = __builtin_fmax(a, b);
    if (most == MR_INFINITY) return is_reciprocal ? 0.0 : most;
    if (mr_is_nan(x) || mr_is_nan(y) || mr_is_nan(z) || mr_is_nan(w)) return MR_NAN;
    if (most == 0.0) return is_reciprocal ? MR_INFINITY : 0.0;
    int shift = mr_norm_shift(most);
    mr_pair sum =
        mr_square_sum(mr_product(mr_ldexp(x, shift), mr_ldexp(x, shift)), mr_ldexp(y, shift));
    sum = mr_square_sum(mr_square_sum(sum, mr_ldexp(z, shift)), mr_ldexp(w, shift));
    mr_pair root = mr_pair_sqrt(sum);
    if (is_reciprocal) root = mr_pair_quotient(mr_pair_of(1.0, 0.0), root);
    return mr_ldexp(root.high + root.low, is_reciprocal ? shift : -shift);
}

/* ---------------------------------------------------------------- sine and cosine */

/* The bits of 2/pi after the point. */
MR_TABLE mr_bits64 mr_two_over_pi[20] = {
    0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
    0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};

/* 64 bits of 2/pi from bit `first` on; those in front of the point are zero. */
MR_FUNCTION mr_bits64 mr_two_over_pi_bits(int first) {
    int word = (first + 64) / 64 - 1, bit = (first + 64) % 64;
    mr_bits64 high = word >= 0 ? mr_two_over_pi[word] : 0, low = mr_two_over_pi[word + 1];
    return bit ? high << bit | low >> (64 - bit) : high;
}

/* For |x| from 2^20 on: the product of its 53 bits with those 192 bits of 2/pi that matter, modulo 8. */
MR_FUNCTION mr_pair mr_reduce_large(double x, int *out_quadrant) {
    mr_bits64 bits = mr_bits(x), m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
    int first = (int)(bits >> 52 & 0x7ff) - 1075 - 3;
    mr_bits64 a = mr_two_over_pi_bits(first), b = mr_two_over_pi_bits(first + 64),
              c = mr_two_over_pi_bits(first + 128);
    unsigned __int128 low = (unsigned __int128)m * c,
                      middle = (unsigned __int128)m * b + (mr_bits64)(low >> 64);
    mr_bits64 top = m * a + (mr_bits64)(middle >> 64);
    /* 3 bits of an integer, then a fraction; the nearest integer is taken off. */
    unsigned __int128 fraction = (unsigned __int128)top << 64 | (mr_bits64)middle;
    int quadrant = (int)(top >> 61);
    fraction = fraction << 3 | (mr_bits64)low >> 61;
    /* A fraction from 1/2 on becomes the distance to the next integer, below it. */
    int is_negative = (int)(fraction >> 127);
    if (is_negative) fraction = -fraction, quadrant++;
    /* As doubles without a rounding: a fraction next to zero has its first digits after bit 64. */
    double high =
        (double)((mr_bits64)(fraction >> 64) & ~2047ull) * 5.421010862427522e-20; /* 2^-64 */
    mr_bits64 left = (mr_bits64)(fraction >> 32) & 0x7ffffffffffull;
    mr_pair sum = mr_quick_sum(high, (double)left * 1.2621774483536189e-29); /* 2^-96 */
    sum = mr_quick_sum(sum.high, sum.low + (double)(mr_bits64)(unsigned)fraction *
                                               2.938735877055719e-39); /* 2^-128 */
    mr_pair turned = mr_pair_product(sum, mr_pair_of(MR_HALF_PI, MR_HALF_LOW));
    if (mr_is_negative(x)) quadrant = -quadrant;
    if (mr_is_negative(x) != is_negative) {
        turned.high = -turned.high;
        turned.low = -turned.low;
    }
    *out_quadrant = quadrant & 3;
    return turned;
}

/* x = r + quadrant pi/2, with |r| up to pi/4. */
MR_FUNCTION mr_pair mr_reduce(double x, int *out_quadrant) {
    MR_EXACT
    *out_quadrant = 0;
    if (__builtin_fabs(x) <= 0.7853981633974483) return mr_pair_of(x, 0.0);
    if (!mr_is_finite(x)) return mr_pair_of(MR_NAN, 0.0);
    if (__builtin_fabs(x) >= 1048576.0) return mr_reduce_large(x, out_quadrant);
    double q = __builtin_rint(x * 0.6366197723675814);
    *out_quadrant = (int)q & 3;
    double r = __builtin_fma(-q, MR_HALF_PI, x); /* exact */
    mr_pair second = mr_product(q, MR_HALF_LOW), sum = mr_two_sum(r, -second.high);
    return mr_quick_sum(sum.high, sum.low - second.low - q * MR_HALF_LAST);
}

MR_FUNCTION double mr_sin_of(mr_pair r) {
    MR_EXACT
    double z = r.high * r.high;
    double p = 1.0 / 121645100408832000.0;
    p = __builtin_fma(-p, z, 1.0 / 355687428096000.0);
    p = __builtin_fma(-p, z, 1.0 / 1307674368000.0);
    p = __builtin_fma(-p, z, 1.0 / 6227020800.0);
    p = __builtin_fma(-p, z, 1.0 / 39916800.0);
    p = __builtin_fma(-p, z, 1.0 / 362880.0);
    p = __builtin_fma(-p, z, 1.0 / 5040.0);
    p = __builtin_fma(-p, z, 1.0 / 120.0);
    p = __builtin_fma(-p, z, 1.0 / 6.0);
    double low = __builtin_fma(-0.5 * z, r.low, r.low);
    return r.high - (p * z * r.high - low);
}

MR_FUNCTION double mr_cos_of(mr_pair r) {
    MR_EXACT
    double z = r.high * r.high, half = 0.5 * z, one = 1.0 - half;
    double p = 1.0 / 6402373705728000.0;
    p = __builtin_fma(-p, z, 1.0 / 20922789888000.0);
    p = __builtin_fma(-p, z, 1.0 / 87178291200.0);
    p = __builtin_fma(-p, z, 1.0 / 479001600.0);
    p = __builtin_fma(-p, z, 1.0 / 3628800.0);
    p = __builtin_fma(-p, z, 1.0 / 40320.0);
    p = __builtin_fma(-p, z, 1.0 / 720.0);
    p = __builtin_fma(-p, z, 1.0 / 24.0);
    double error = __builtin_fma(r.high, r.high, -z);
    double rest = ((1.0 - one) - half) + (z * z * p - r.high * r.low - 0.5 * error);
    return one + rest;
}

/* The sine (turn 0) or cosine (turn 1) of r + quadrant pi/2. */
MR_FUNCTION double mr_sine(mr_pair r, int quadrant, int turn) {
    quadrant += turn;
    double value = quadrant & 1 ? mr_cos_of(r) : mr_sin_of(r);
    return quadrant & 2 ? -value : value;
}

MR_FUNCTION double mr_sin(double x) {
    int quadrant;
    mr_pair r = mr_reduce(x, &quadrant);
    return x == 0.0 ? x : mr_sine(r, quadrant, 0);
}
MR_FUNCTION double mr_cos(double x) {
    int quadrant;
    mr_pair r = mr_reduce(x, &quadrant);
    return mr_sine(r, quadrant, 1);
}
MR_FUNCTION void mr_sincos(double x, double *sine, double *cosine) {
    int quadrant;
    mr_pair r = mr_reduce(x, &quadrant);
    *sine = x == 0.0 ? x : mr_sine(r, quadrant, 0);
    *cosine = mr_sine(r, quadrant, 1);
}
MR_FUNCTION double mr_tan(double x) {
    int quadrant;
    mr_pair r = mr_reduce(x, &quadrant);
    double sine = mr_sin_of(r), cosine = mr_cos_of(r);
    return x == 0.0 ? x : quadrant & 1 ? -cosine / sine : sine / cosine;
}

/* x pi, reduced as above: exact, since x modulo 1/2 is. */
MR_FUNCTION mr_pair mr_reduce_pi(double x, int *out_quadrant) {
    *out_quadrant = 0;
    if (!mr_is_finite(x)) return mr_pair_of(MR_NAN, 0.0);
    if (__builtin_fabs(x) >= 9007199254740992.0) return mr_pair_of(__builtin_copysign(0.0, x), 0.0);
    double n = __builtin_rint(2.0 * x), part = __builtin_fma(-0.5, n, x);
    *out_quadrant = (int)((long long)n & 3);
    mr_pair r = mr_product(part, MR_PI);
    return mr_quick_sum(r.high, __builtin_fma(part, MR_PI_LOW, r.low));
}
MR_FUNCTION double mr_sinpi(double x) {
    int quadrant;
    mr_pair r = mr_reduce_pi(x, &quadrant);
    if (r.high == 0.0 && !(quadrant & 1)) return __builtin_copysign(0.0, x);
    return mr_sine(r, quadrant, 0);
}
MR_FUNCTION double mr_cospi(double x) {
    int quadrant;
    mr_pair r = mr_reduce_pi(x, &quadrant);
    if (r.high == 0.0 && (quadrant & 1)) return 0.0;
    return mr_sine(r, quadrant, 1);
}

/* ---------------------------------------------------------------- the inverse functions */

/* atan(k/8) */
MR_TABLE double mr_atan_high[9] = {0.0,
                                   0.12435499454676144,
                                   0.24497866312686414,
                                   0.35877067027057225,
                                   0.4636476090008061,
                                   0.5585993153435624,
                                   0.6435011087932844,
                                   0.7188299996216245,
                                   0.7853981633974483};
MR_TABLE double mr_atan_low[9] = {0.0,
                                  -3.1253241424539383e-18,
                                  1.0698755618734451e-17,
                                  -2.4623815582638635e-17,
                                  2.2698777452961687e-17,
                                  -5.4556305485916264e-18,
                                  1.5834785051444286e-17,
                                  -2.1478388444456983e-17,
                                  3.061616997868383e-17};

/* atan(y / x) for 0 <= y <= x, x > 0, neither near the limits of the exponent; y may be a pair. */
MR_FUNCTION mr_pair mr_atan_ratio(mr_pair y, mr_pair x) {
    MR_EXACT
    double k = __builtin_rint(8.0 * y.high / x.high), c = 0.125 * k;
    /* (y - c x) / (x + c y): the tangent of the rest, at most 1/16 */
    double above = __builtin_fma(-c, x.high, y.high) + (y.low - c * x.low);
    mr_pair below = mr_two_sum(x.high, c * y.high);
    double t = above / below.high;
    double t_low =
        (__builtin_fma(-t, below.high, above) - t * (below.low + x.low + c * y.low)) / below.high;
    double z = t * t;
    double p = 1.0 / 17.0;
    p = __builtin_fma(-p, z, 1.0 / 15.0);
    p = __builtin_fma(-p, z, 1.0 / 13.0);
    p = __builtin_fma(-p, z, 1.0 / 11.0);
    p = __builtin_fma(-p, z, 1.0 / 9.0);
    p = __builtin_fma(-p, z, 1.0 / 7.0);
    p = __builtin_fma(-p, z, 1.0 / 5.0);
    p = __builtin_fma(-p, z, 1.0 / 3.0);
    mr_pair sum = mr_quick_sum(mr_atan_high[(int)k], t);
    sum.low += mr_atan_low[(int)k] + (t_low - p * z * t);
    return sum;
}

/* The angle of (x, y), which are pairs of magnitudes; then with the signs given. */
MR_FUNCTION double mr_angle(mr_pair y, mr_pair x, int is_left, double sign) {
    MR_EXACT
    mr_pair angle;
    if (y.high <= x.high) angle = mr_atan_ratio(y, x);
    else {
        angle = mr_atan_ratio(x, y);
        angle =
            mr_pair_sum(mr_pair_of(MR_HALF_PI, MR_HALF_LOW), mr_pair_of(-angle.high, -angle.low));
    }
    if (is_left)
        angle = mr_pair_sum(mr_pair_of(MR_PI, MR_PI_LOW), mr_pair_of(-angle.high, -angle.low));
    return __builtin_copysign(angle.high + angle.low, sign);
}

MR_FUNCTION double mr_atan2(double y, double x) {
    double a = __builtin_fabs(y), b = __builtin_fabs(x);
    int is_left = mr_is_negative(x);
    if (mr_is_nan(x) || mr_is_nan(y)) return MR_NAN;
    if (a == MR_INFINITY && b == MR_INFINITY) a = b = 1.0;
    else if (a == MR_INFINITY || b == 0.0) {
        if (a == 0.0) return is_left ? __builtin_copysign(MR_PI, y) : y;
        return __builtin_copysign(MR_HALF_PI, y);
    } else if (b == MR_INFINITY) a = 0.0, b = 1.0;
    int shift, other;
    mr_frexp(a > b ? a : b, &shift);
    mr_frexp(a > b ? b : a, &other);
    if (a == 0.0 || b == 0.0) other = shift;
    if (a < b && shift - other > 60) { /* the ratio itself, which may be subnormal */
        if (is_left) return __builtin_copysign(MR_PI, y);
        return y / b;
    }
    if (a > b && shift - other > 60) return __builtin_copysign(MR_HALF_PI, y);
    return mr_angle(mr_pair_of(mr_ldexp(a, -shift), 0.0), mr_pair_of(mr_ldexp(b, -shift), 0.0),
                    is_left, y);
}

MR_FUNCTION double mr_atan(double x) {
    if (__builtin_fabs(x) < 1e-9) return x;
    return mr_atan2(x, 1.0);
}

/* sqrt(1 - x^2) as a pair. */
MR_FUNCTION mr_pair mr_other_side(double x) {
    MR_EXACT
    mr_pair square = mr_product(x, x), rest = mr_two_sum(1.0, -square.high);
    rest = mr_quick_sum(rest.high, rest.low - square.low);
    return mr_pair_sqrt(rest);
}

MR_FUNCTION double mr_asin(double x) {
    double a = __builtin_fabs(x);
    if (!(a <= 1.0)) return MR_NAN;
    if (a < 1e-9) return x;
    return mr_angle(mr_pair_of(a, 0.0), mr_other_side(a), 0, x);
}
MR_FUNCTION double mr_acos(double x) {
    double a = __builtin_fabs(x);
    if (!(a <= 1.0)) return MR_NAN;
    return mr_angle(mr_other_side(a), mr_pair_of(a, 0.0), mr_is_negative(x), 1.0);
}

/* ---------------------------------------------------------------- the error functions */

MR_TABLE double mr_erfcx_table[] = {
    0.3280914166959618,      0.18084185718647453,    0.08326630364349655,    0.031080518578963264,
    0.00883263054288102,     0.0016078748371514417,  3.7923822963330006e-05, -7.376115097988218e-05,
    -1.6133559790077468e-05, 2.18937730003283e-06,   1.3817814858251049e-06, -3.483533750239568e-08,
    -1.1174994778498124e-07, -1.374883411561687e-09, 9.857562676101765e-09,  5.1869402403121135e-11,
    -9.470260357196056e-10,  2.950965119360912e-11,  8.938144972451537e-11,  -4.64414063868826e-12,
    -5.96112649139483e-12};
/* e^(x^2) erfc(x) for x >= 0.75: a polynomial in 3 / (3 + x), then the asymptotic series. */
MR_FUNCTION mr_pair mr_erfcx_large(double x) {
    MR_EXACT
    if (x > 30.0) {
        double z = 0.5 / (x * x), p = 1.0 - 11.0 * z;
        p = 1.0 - 9.0 * z * p;
        p = 1.0 - 7.0 * z * p;
        p = 1.0 - 5.0 * z * p;
        p = 1.0 - 3.0 * z * p;
        p = 1.0 - z * p;
        return mr_pair_of(p * 0.5641895835477563 / x, 0.0);
    }
    mr_pair t = mr_pair_quotient(mr_pair_of(3.0, 0.0), mr_two_sum(3.0, x));
    mr_pair u =
        mr_pair_sum(mr_pair_product(t, mr_pair_of(2.8205128205128207, -1.9357734788336063e-16)),
                    mr_pair_of(-1.2564102564102564, -2.2773805633336544e-17));
    return mr_pair_product(mr_polynomial(mr_erfcx_table, 20, -4.849172741443105e-19, u), t);
}

MR_TABLE double mr_erf_table[] = {
    0.9654687386698673,     -0.1405360890227171,     0.019852496688983708,  -0.0022854855611441132,
    0.00021751715604159932, -1.7537169441124866e-05, 1.223382738359897e-06, -7.511569286591727e-08,
    4.115800583208149e-09,  -2.035228405815769e-10,  9.167619596865806e-12, -3.8078824063194953e-13,
    1.4543887079465116e-14};
/* erf(x) for |x| <= 1. */
MR_FUNCTION double mr_erf_small(double x) {
    MR_EXACT
    mr_pair square = mr_product(2.0 * x, x), u = mr_two_sum(-1.0, square.high);
    u.low += square.low;
    mr_pair value = mr_polynomial(mr_erf_table, 12, 4.2566798032558066e-17, u);
    return __builtin_fma(value.high, x, value.low * x);
}

/* e^(sign x^2 scale) erfcx(y), for a scale that is a power of 2; times 2^shift. */
MR_FUNCTION double mr_exp_times(double x, double scale, mr_pair factor, int shift) {
    mr_pair square = mr_product(x, x);
    double e = mr_exp_pair(scale * square.high, scale * square.low, 0);
    return mr_ldexp(__builtin_fma(e, factor.high, e * factor.low), shift);
}

MR_FUNCTION double mr_erf(double x) {
    double a = __builtin_fabs(x);
    if (mr_is_nan(x)) return x;
    if (a < 1.0) return mr_erf_small(x);
    if (a > 6.0) return __builtin_copysign(1.0, x);
    return __builtin_copysign(1.0 - mr_exp_times(a, -1.0, mr_erfcx_large(a), 0), x);
}
MR_FUNCTION double mr_erfc(double x) {
    if (mr_is_nan(x)) return x;
    if (x < 0.75) return 1.0 - mr_erf(x);
    if (x > 28.0) return 0.0;
    return mr_exp_times(x, -1.0, mr_erfcx_large(x), 0);
}
MR_FUNCTION double mr_erfcx(double x) {
    if (mr_is_nan(x)) return x;
    if (x >= 0.75) {
        mr_pair value = mr_erfcx_large(x);
        return value.high + value.low;
    }
    if (x < -27.0) return MR_INFINITY;
    return mr_exp_times(x, 1.0, mr_pair_of(mr_erfc(x), 0.0), 0);
}

/* The standard normal distribution: erfc(-x / sqrt 2) / 2, without the error of that quotient in the exponent. */
MR_FUNCTION double mr_normcdf(double x) {
    if (mr_is_nan(x)) return x;
    double scaled = -x * 0.7071067811865476;
    if (x > -1.1) return 0.5 * mr_erfc(scaled);
    if (x < -39.0) return 0.0;
    return mr_exp_times(x, -0.5, mr_erfcx_large(scaled), -1);
}

/* From an approximation by elementary functions (Winitzki's), by Newton's method: for erf(x) - (1 - q) with Halley's
 * correction, and in the tail for log(erfc(x)), where it converges from far away. For 0 < q <= 1. */
MR_FUNCTION double mr_erfcinv_upper(double q) {
    double log = mr_log(q * (2.0 - q)), a = 4.33 + 0.5 * log; /* 4.33 = 2 / (0.147 pi) */
    double x = __builtin_sqrt(__builtin_fmax(__builtin_sqrt(a * a - log / 0.147) - a, 0.0));
    for (int i = 0; i < 4; i++) {
        if (q > 0.25) {
            double difference = q > 0.5 ? (1.0 - q) - mr_erf(x) : mr_erfc(x) - q;
            double step = difference * (0.886226925452758 * mr_exp_pair(x * x, 0.0, 0));
            x += step / (1.0 + x * step);
        } else {
            double scaled = mr_erfcx(x);
            double difference =
                i < 3 || q < 1e-290 ? mr_log(scaled / q) - x * x : mr_log1p((mr_erfc(x) - q) / q);
            x += difference * 0.886226925452758 * scaled;
        }
    }
    return x;
}
MR_FUNCTION double mr_erfcinv(double q) {
    if (!(q >= 0.0 && q <= 2.0)) return MR_NAN;
    if (q == 0.0) return MR_INFINITY;
    if (q == 2.0) return -MR_INFINITY;
    return q <= 1.0 ? mr_erfcinv_upper(q) : -mr_erfcinv_upper(2.0 - q);
}
MR_FUNCTION double mr_erfinv(double p) {
    double a = __builtin_fabs(p);
    if (!(a <= 1.0)) return MR_NAN;
    if (a == 1.0) return __builtin_copysign(MR_INFINITY, p);
    double x = a < 1e-9 ? a * 0.886226925452758 : mr_erfcinv_upper(1.0 - a);
    if (a >= 1e-9 && a < 0.5) { /* 1 - a was rounded: one step with a itself */
        double step = (a - mr_erf(x)) * (0.886226925452758 * mr_exp_pair(x * x, 0.0, 0));
        x += step / (1.0 + x * step);
    }
    return __builtin_copysign(x, p);
}
MR_FUNCTION double mr_normcdfinv(double p) {
    return -1.4142135623730951 * mr_erfcinv(2.0 * p);
}

/* ---------------------------------------------------------------- the gamma functions */

MR_TABLE double mr_gamma_table[] = {
    -0.469681344698759,      0.2295033680971165,     0.03748640492104537,
    -0.06690176775577845,    0.019741056139989787,   0.0021769082297530334,
    -0.003108441153794791,   0.0008270778778121913,  3.967015879198198e-06,
    -6.403366790976116e-05,  1.8702781829059994e-05, -1.5038075231536492e-06,
    -5.911690023969429e-07,  2.3006176915495078e-07, -3.29932101146806e-08,
    -1.0917933282534848e-09, 1.5051091483125788e-09, -3.1358080951685456e-10,
    1.6084571968372446e-11,  4.9637895784895575e-12};
/* 1 / gamma(x) - 1 for x from 0.5 to 3, as (x - 1)(x - 2) times a polynomial: the quotient has no zeros and no
 * poles. */
MR_FUNCTION mr_pair mr_gamma_core(double x) {
    MR_EXACT
    mr_pair scaled = mr_product(x, 0.8), u = mr_two_sum(scaled.high, -1.4);
    u.low +=
        scaled.low + x * -4.4408920985006264e-17 + 8.881784197001253e-17; /* of 0.8 and of 1.4 */
    mr_pair zeros = mr_pair_product(mr_pair_of(x - 1.0, 0.0), mr_two_sum(x, -2.0));
    return mr_pair_product(mr_polynomial(mr_gamma_table, 19, 2.2095721540865737e-17, u), zeros);
}

/* The sum of Stirling's series, for x >= 12. */
MR_FUNCTION double mr_stirling(double x) {
    double z = 1.0 / (x * x), p = -3617.0 / 122400.0;
    p = __builtin_fma(p, z, 1.0 / 156.0);
    p = __builtin_fma(p, z, -691.0 / 360360.0);
    p = __builtin_fma(p, z, 1.0 / 1188.0);
    p = __builtin_fma(p, z, -1.0 / 1680.0);
    p = __builtin_fma(p, z, 1.0 / 1260.0);
    p = __builtin_fma(p, z, -1.0 / 360.0);
    return __builtin_fma(p, z, 1.0 / 12.0) / x;
}

/* gamma(x) for x from 0.5 to 12. */
MR_FUNCTION double mr_gamma_middle(double x) {
    mr_pair product = mr_pair_of(1.0, 0.0);
    while (x > 2.5) {
        x -= 1.0;
        product = mr_pair_product(product, mr_pair_of(x, 0.0));
    }
    mr_pair value = mr_pair_quotient(product, mr_pair_sum(mr_gamma_core(x), mr_pair_of(1.0, 0.0)));
    return value.high + value.low;
}

/* gamma(x) for x >= 12. */
MR_FUNCTION double mr_gamma_large(double x) {
    MR_EXACT
    if (x > 172.0) return MR_INFINITY;
    mr_pair log = mr_log_pair(x), power = mr_pair_product(log, mr_pair_of(x - 0.5, 0.0));
    power = mr_pair_sum(power, mr_pair_of(-x, 0.0));
    return 2.5066282746310002 * mr_exp_pair(power.high, power.low + mr_stirling(x), 0);
}

MR_FUNCTION double mr_tgamma(double x) {
    if (mr_is_nan(x)) return x;
    if (x == 0.0) return __builtin_copysign(MR_INFINITY, x);
    if (x >= 12.0) return mr_gamma_large(x);
    if (x >= 0.5) return mr_gamma_middle(x);
    if (x == __builtin_floor(x)) return MR_NAN;
    if (x > -0.5) return mr_gamma_middle(x + 1.0) / x;
    if (x < -184.0) return __builtin_copysign(0.0, mr_sinpi(x));
    /* gamma(x) gamma(-x) = -pi / (x sin(pi x)) */
    double y = -x,
           factor = MR_PI / (y * mr_sinpi(x)); /* of the sign of sin(pi x), which is -sin(pi y) */
    if (y < 12.0) return factor / mr_gamma_middle(y);
    if (y < 171.0) return factor / mr_gamma_large(y);
    /* gamma(y) itself is no double: gamma(y) = gamma(y - 20) (y - 20) (y - 19) ... */
    double product = factor / mr_gamma_large(y - 20.0);
    for (double z = y - 20.0; z < y - 0.5; z += 1.0) product /= z;
    return product;
}

MR_FUNCTION double mr_lgamma_positive(double x) {
    MR_EXACT
    if (x >= 1e17) return x * (mr_log(x) - 1.0);
    if (x >= 12.0) {
        mr_pair log = mr_log_pair(x), power = mr_pair_product(log, mr_pair_of(x - 0.5, 0.0));
        power = mr_pair_sum(power, mr_pair_of(-x, 0.0));
        return power.high + (power.low + 0.9189385332046728 + mr_stirling(x));
    }
    if (x >= 3.0) return mr_log(mr_gamma_middle(x));
    mr_pair core = mr_gamma_core(x);
    return 0.0 - (mr_log1p(core.high) + core.low / (1.0 + core.high)); /* not -0 at 1 and 2 */
}

MR_FUNCTION double mr_lgamma(double x) {
    double a = __builtin_fabs(x);
    if (mr_is_nan(x)) return x;
    if (a == MR_INFINITY) return MR_INFINITY;
    if (x >= 0.5) return mr_lgamma_positive(x);
    if (x == __builtin_floor(x)) return MR_INFINITY;
    if (x > -0.5) return -mr_log(a / mr_gamma_middle(x + 1.0));
    return mr_log(MR_PI / (a * __builtin_fabs(mr_sinpi(x)))) - mr_lgamma_positive(a);
}

/* ---------------------------------------------------------------- remainders */

/* Exact: the exponents' difference is worked off 10 bits at a time. Sets the lowest bits of the quotient. */
MR_FUNCTION double mr_remainder_of(double x, double y, unsigned int *out_quotient) {
    int ex, ey;
    *out_quotient = 0;
    if (x < y) return x;
    mr_bits64 m = (mr_bits64)(mr_frexp(x, &ex) * 9007199254740992.0),
              n = (mr_bits64)(mr_frexp(y, &ey) * 9007199254740992.0);
    int left = ex - ey;
    mr_bits64 quotient = m / n;
    m %= n;
    while (left > 0) {
        int bits = left < 10 ? left : 10;
        quotient = quotient << bits | (m << bits) / n;
        m = (m << bits) % n;
        left -= bits;
    }
    *out_quotient = (unsigned int)quotient;
    return mr_ldexp((double)m, ey - 53);
}

MR_FUNCTION double mr_fmod(double x, double y) {
    unsigned int quotient;
    if (mr_is_nan(x) || mr_is_nan(y) || !mr_is_finite(x) || y == 0.0) return MR_NAN;
    if (!mr_is_finite(y)) return x;
    return __builtin_copysign(mr_remainder_of(__builtin_fabs(x), __builtin_fabs(y), &quotient), x);
}

MR_FUNCTION double mr_remquo(double x, double y, int *out_quotient) {
    unsigned int quotient = 0;
    double a = __builtin_fabs(x), b = __builtin_fabs(y), r = a;
    *out_quotient = 0;
    if (mr_is_nan(x) || mr_is_nan(y) || !mr_is_finite(x) || y == 0.0) return MR_NAN;
    if (mr_is_finite(y)) {
        r = mr_remainder_of(a, b, &quotient);
        /* To the nearest multiple, a tie to the even one: r > b - r, without rounding. */
        if (r > b - r || (r == b - r && (quotient & 1))) {
            r -= b;
            quotient++;
        }
    }
    int sign = mr_is_negative(x) != mr_is_negative(y) ? -1 : 1;
    *out_quotient = sign * (int)(quotient & 0x7fffffff);
    return mr_is_negative(x) ? -r : r;
}

MR_FUNCTION double mr_nextafter(double x, double y) {
    if (mr_is_nan(x) || mr_is_nan(y)) return MR_NAN;
    if (x == y) return y;
    if (x == 0.0) return __builtin_copysign(4.9406564584124654e-324, y);
    mr_bits64 bits = mr_bits(x);
    return mr_of_bits((x < y) == (x > 0.0) ? bits + 1 : bits - 1);
}
MR_FUNCTION double mr_logb(double x) {
    int exponent;
    if (x == 0.0) return -MR_INFINITY;
    if (!mr_is_finite(x)) return x * x;
    mr_frexp(x, &exponent);
    return exponent - 1;
}

/* ---------------------------------------------------------------- float: in double, with shorter series */

MR_FUNCTION float mr_expf_of(double r, double k) {
    double p = 1.0 / 40320.0;
    p = __builtin_fma(p, r, 1.0 / 5040.0);
    p = __builtin_fma(p, r, 1.0 / 720.0);
    p = __builtin_fma(p, r, 1.0 / 120.0);
    p = __builtin_fma(p, r, 1.0 / 24.0);
    p = __builtin_fma(p, r, 1.0 / 6.0);
    p = __builtin_fma(p, r, 0.5);
    p = __builtin_fma(p, r, 1.0);
    p = __builtin_fma(p, r, 1.0);
    return (float)(p * mr_power_of_2((int)k));
}
MR_FUNCTION float mr_expf(float x) {
    if (!(__builtin_fabsf(x) < 110.0f)) return x > 0.0f ? __builtin_inff() : x < 0.0f ? 0.0f : x;
    double k = __builtin_rint(x * 1.4426950408889634);
    return mr_expf_of(__builtin_fma(-k, MR_LN2, (double)x), k);
}
MR_FUNCTION float mr_exp2f(float x) {
    if (!(__builtin_fabsf(x) < 160.0f)) return x > 0.0f ? __builtin_inff() : x < 0.0f ? 0.0f : x;
    double k = __builtin_rint((double)x);
    return mr_expf_of((x - k) * MR_LN2, k);
}
MR_FUNCTION float mr_exp10f(float x) {
    if (!(__builtin_fabsf(x) < 50.0f)) return x > 0.0f ? __builtin_inff() : x < 0.0f ? 0.0f : x;
    double k = __builtin_rint(x * 3.321928094887362);
    return mr_expf_of(__builtin_fma(-k, MR_LN2, x * 2.302585092994046), k);
}

/* log(x) as a double, to about 2^-40 of its value. */
MR_FUNCTION double mr_logf_of(float x) {
    double e, f = mr_log_reduce((double)x, &e), s = f / (2.0 + f), z = s * s;
    double p = 2.0 / 15.0;
    p = __builtin_fma(p, z, 2.0 / 13.0);
    p = __builtin_fma(p, z, 2.0 / 11.0);
    p = __builtin_fma(p, z, 2.0 / 9.0);
    p = __builtin_fma(p, z, 2.0 / 7.0);
    p = __builtin_fma(p, z, 2.0 / 5.0);
    p = __builtin_fma(p, z, 2.0 / 3.0);
    p = __builtin_fma(p, z, 2.0);
    return __builtin_fma(e, MR_LN2, s * p);
}
MR_FUNCTION float mr_logf_by(float x, double factor) {
    double special;
    if (mr_log_is_special((double)x, &special)) return (float)special;
    return (float)(mr_logf_of(x) * factor);
}
MR_FUNCTION float mr_logf(float x) {
    return mr_logf_by(x, 1.0);
}
MR_FUNCTION float mr_log2f(float x) {
    return mr_logf_by(x, 1.4426950408889634);
}
MR_FUNCTION float mr_log10f(float x) {
    return mr_logf_by(x, 0.4342944819032518);
}

/* r with x = r + quadrant pi/2; the sine's series to r^11, the cosine's to r^12. */
MR_FUNCTION double mr_reducef(float x, int *out_quadrant) {
    if (!(__builtin_fabsf(x) < 1048576.0f)) return mr_reduce((double)x, out_quadrant).high;
    double q = __builtin_rint(x * 0.6366197723675814);
    *out_quadrant = (int)q & 3;
    return __builtin_fma(-q, MR_HALF_LOW, __builtin_fma(-q, MR_HALF_PI, (double)x));
}
MR_FUNCTION double mr_sinef(double r, int quadrant) {
    double z = r * r, p;
    if (quadrant & 1) {
        p = 1.0 / 479001600.0;
        p = __builtin_fma(p, z, -1.0 / 3628800.0);
        p = __builtin_fma(p, z, 1.0 / 40320.0);
        p = __builtin_fma(p, z, -1.0 / 720.0);
        p = __builtin_fma(p, z, 1.0 / 24.0);
        p = __builtin_fma(p, z, -0.5);
        p = __builtin_fma(p, z, 1.0);
    } else {
        p = -1.0 / 39916800.0;
        p = __builtin_fma(p, z, 1.0 / 362880.0);
        p = __builtin_fma(p, z, -1.0 / 5040.0);
        p = __builtin_fma(p, z, 1.0 / 120.0);
        p = __builtin_fma(p, z, -1.0 / 6.0);
        p = __builtin_fma(p * z, r, r);
    }
    return quadrant & 2 ? -p : p;
}
MR_FUNCTION float mr_sinf(float x) {
    int quadrant;
    double r = mr_reducef(x, &quadrant);
    return x == 0.0f ? x : (float)mr_sinef(r, quadrant);
}
MR_FUNCTION float mr_cosf(float x) {
    int quadrant;
    double r = mr_reducef(x, &quadrant);
    return (float)mr_sinef(r, quadrant + 1);
}
MR_FUNCTION float mr_tanf(float x) {
    int quadrant;
    double r = mr_reducef(x, &quadrant);
    return x == 0.0f ? x : (float)(mr_sinef(r, quadrant) / mr_sinef(r, quadrant + 1));
}

MR_FUNCTION float mr_powf(float x, float y) {
    float a = __builtin_fabsf(x);
    if (x == 1.0f || !(a > 0.0f && a < __builtin_inff()) || y == 0.0f ||
        !(__builtin_fabsf(y) < __builtin_inff()))
        return (float)mr_pow_special((double)x, (double)y);
    int parity = mr_parity((double)y);
    if (x < 0.0f && parity == 0) return __builtin_nanf("");
    double special,
        power = mr_log_is_special((double)a, &special) ? special : mr_log((double)a) * y;
    double value = power > 110.0 ? MR_INFINITY : power < -120.0 ? 0.0 : mr_exp(power);
    return (float)(x < 0.0f && parity == 1 ? -value : value);
}

MR_FUNCTION float mr_nextafterf(float x, float y) {
    unsigned int bits;
    if (x != x || y != y) return __builtin_nanf("");
    if (x == y) return y;
    if (x == 0.0f) return __builtin_copysignf(1.40129846e-45f, y);
    __builtin_memcpy(&bits, &x, sizeof bits);
    bits += (x < y) == (x > 0.0f) ? 1 : -1;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
