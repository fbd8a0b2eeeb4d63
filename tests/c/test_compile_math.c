/* The functions that clang's kernels call for sin, exp, ...: measured against the C library's long double, over random
 * arguments and at the edges. The same text is compiled for a device (src/compile/device). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MR_FUNCTION static inline __attribute__((unused))
#define MR_TABLE    static const
#include "compile/device/clang/millrace/functions.h"

#define ROUNDS 100000

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t next_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Even between low and high or, if low > 0 and high is much larger, even in the exponent. */
static double between(double low, double high) {
    double part = (double)(next_bits() >> 11) * 0x1p-53;
    if (low > 0 && high > 1e3 * low) return exp(log(low) + (log(high) - log(low)) * part);
    return low + (high - low) * part;
}

/* The error in units of the last place of a number with `digits` bits and the smallest exponent `least`. */
static double ulps(double got, long double right, int digits, int least) {
    int exponent;
    if (isnan(right)) return isnan(got) ? 0 : INFINITY;
    long double most = digits == 24 ? 0x1.ffffffp127L : 0x1.fffffffffffff8p1023L;
    if (fabsl(right) >= most) return got == (right > 0 ? INFINITY : -INFINITY) ? 0 : INFINITY;
    if (isnan(got) || isinf(got)) return INFINITY;
    frexpl(right, &exponent);
    if (exponent < least) exponent = least;
    return (double)(fabsl((long double)got - right) / ldexpl(1, exponent - digits));
}

static double ulps_double(double got, long double right) {
    return ulps(got, right, 53, -1021);
}
static double ulps_float(float got, long double right) {
    return ulps(got, right, 24, -125);
}

/* ---------------------------------------------------------------- one argument, double */

static long double exp10_l(long double x) {
    return powl(10, x);
}
/* sin(pi x + turn pi/2), by an exact reduction. */
static long double turn_l(long double x, int turn) {
    const long double pi = 3.14159265358979323846264338327950288L;
    long double n = rintl(2 * x), part = x - n / 2;
    int quadrant = ((int)fmodl(n, 4) + 4 + turn) & 3;
    long double value = quadrant & 1 ? cosl(pi * part) : sinl(pi * part);
    return quadrant & 2 ? -value : value;
}
static long double sinpi_l(long double x) {
    return turn_l(x, 0);
}
static long double cospi_l(long double x) {
    return turn_l(x, 1);
}
static long double erfcx_l(long double x) {
    return expl(x * x) * erfcl(x);
}
static long double normcdf_l(long double x) {
    return erfcl(-x * 0.707106781186547524400844362104849039L) / 2;
}

typedef struct {
    const char *name;
    double (*ours)(double);
    long double (*right)(long double);
    double low, high, bound;
} function;

static const function functions[] = {
    {"exp", mr_exp, expl, -745, 710, 0.8},
    {"exp", mr_exp, expl, -1, 1, 0.6},
    {"exp2", mr_exp2, exp2l, -1075, 1024, 0.8},
    {"exp10", mr_exp10, exp10_l, -323, 309, 0.8},
    {"expm1", mr_expm1, expm1l, -40, 709, 0.7},
    {"expm1", mr_expm1, expm1l, -1, 1, 0.7},
    {"expm1 of small", mr_expm1, expm1l, 1e-20, 1, 0.7},
    {"sinh", mr_sinh, sinhl, -711, 711, 0.7},
    {"sinh", mr_sinh, sinhl, 1e-12, 30, 0.7},
    {"cosh", mr_cosh, coshl, -711, 711, 0.7},
    {"cosh", mr_cosh, coshl, -3, 3, 0.7},
    {"tanh", mr_tanh, tanhl, -25, 25, 0.7},
    {"tanh", mr_tanh, tanhl, 1e-12, 2, 0.7},
    {"log", mr_log, logl, 1e-320, 1e308, 1},
    {"log", mr_log, logl, 0.5, 2, 1},
    {"log2", mr_log2, log2l, 1e-320, 1e308, 0.6},
    {"log2", mr_log2, log2l, 0.9, 1.1, 0.6},
    {"log10", mr_log10, log10l, 1e-320, 1e308, 0.6},
    {"log10", mr_log10, log10l, 0.9, 1.1, 0.6},
    {"log1p", mr_log1p, log1pl, -0.999, 3, 1},
    {"log1p", mr_log1p, log1pl, 1e-20, 1e300, 1},
    {"asinh", mr_asinh, asinhl, 1e-12, 1e300, 2},
    {"asinh", mr_asinh, asinhl, -3, 3, 2},
    {"acosh", mr_acosh, acoshl, 1, 3, 2},
    {"acosh", mr_acosh, acoshl, 1, 1e300, 2},
    {"atanh", mr_atanh, atanhl, -1, 1, 2},
    {"atanh", mr_atanh, atanhl, 1e-12, 0.9, 2},
    {"cbrt", mr_cbrt, cbrtl, 1e-320, 1e308, 0.6},
    {"sin", mr_sin, sinl, -10, 10, 0.8},
    {"sin", mr_sin, sinl, 1e-10, 1e19, 0.8},
    {"cos", mr_cos, cosl, -10, 10, 0.8},
    {"cos", mr_cos, cosl, 1e-10, 1e19, 0.8},
    {"tan", mr_tan, tanl, -10, 10, 2},
    {"tan", mr_tan, tanl, 1e-10, 1e19, 2},
    {"sinpi", mr_sinpi, sinpi_l, -4, 4, 1},
    {"cospi", mr_cospi, cospi_l, -4, 4, 1},
    {"atan", mr_atan, atanl, -4, 4, 1},
    {"atan", mr_atan, atanl, 1e-12, 1e300, 1},
    {"asin", mr_asin, asinl, -1, 1, 1},
    {"asin", mr_asin, asinl, 1e-12, 1, 1},
    {"acos", mr_acos, acosl, -1, 1, 1},
    {"acos", mr_acos, acosl, 0.999, 1, 1},
    {"erf", mr_erf, erfl, -6, 6, 1},
    {"erf", mr_erf, erfl, 1e-300, 1, 1},
    {"erfc", mr_erfc, erfcl, -6, 6, 3},
    {"erfc", mr_erfc, erfcl, 0, 28, 3},
    {"erfcx", mr_erfcx, erfcx_l, -26, 10, 3},
    {"normcdf", mr_normcdf, normcdf_l, -8, 8, 4},
    {"tgamma", mr_tgamma, tgammal, 0.01, 171.6, 6},
    {"tgamma", mr_tgamma, tgammal, -20, 0, 6},
    {"tgamma", mr_tgamma, tgammal, -180, -20, 6},
    {"lgamma", mr_lgamma, lgammal, 0.01, 20, 4},
    {"lgamma", mr_lgamma, lgammal, 0.9, 2.1, 4},
    {"lgamma", mr_lgamma, lgammal, 1, 1e300, 4},
    {"lgamma", mr_lgamma, lgammal, -1000, -11.001, 4},
};

/* Says which function exceeded its bound. */
static bool judge(const char *name, double error, double x, double y, double bound) {
    if (getenv("MATH_SHOW") || error > bound)
        printf("%-16s %.3f ulp at %.17g, %.17g; bound %g\n", name, error, x, y, bound);
    return error <= bound;
}

static void double_functions_of_one_argument(void **test) {
    (void)test;
    bool is_good = true;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        const function *f = &functions[i];
        double most = 0, at = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double x = between(f->low, f->high), error = ulps_double(f->ours(x), f->right(x));
            if (error > most) most = error, at = x;
        }
        is_good &= judge(f->name, most, at, 0, f->bound);
    }
    assert_true(is_good);
}

/* The inverse of a function is right if the function of it is near the argument: in units of what one unit of the
 * result changes. */
static void inverses_of_the_error_functions(void **test) {
    (void)test;
    bool is_good = true;
    double most[3] = {0}, at[3] = {0};
    for (int round = 0; round < ROUNDS / 10; round++) {
        double p = between(-1, 1), q = between(1e-300, 1), n = between(1e-300, 1);
        double x = mr_erfinv(p), y = mr_erfcinv(q), z = mr_normcdfinv(n);
        const long double slope = 1.12837916709551257389615890312154517L;
        double errors[3] = {(double)(fabsl(erfl(x) - p) / (slope * expl(-(long double)x * x))) /
                                (nextafter(fabs(x), 9) - fabs(x)),
                            (double)(fabsl(erfcl(y) - q) / (slope * expl(-(long double)y * y))) /
                                (nextafter(fabs(y), 99) - fabs(y)),
                            (double)(fabsl(normcdf_l(z) - n) / (slope / 2.8284271247461901L *
                                                                expl(-(long double)z * z / 2))) /
                                (nextafter(fabs(z), 99) - fabs(z))};
        for (int i = 0; i < 3; i++)
            if (errors[i] > most[i]) most[i] = errors[i], at[i] = i == 0 ? p : i == 1 ? q : n;
    }
    is_good &= judge("erfinv", most[0], at[0], 0, 5);
    is_good &= judge("erfcinv", most[1], at[1], 0, 6);
    is_good &= judge("normcdfinv", most[2], at[2], 0, 8);
    assert_true(is_good);
}

/* ---------------------------------------------------------------- two arguments, double */

static double norm2(double x, double y) {
    return mr_norm(x, y, 0, 0, 0);
}
static double rnorm2(double x, double y) {
    return mr_norm(x, y, 0, 0, 1);
}
static long double rhypot_l(long double x, long double y) {
    return 1 / hypotl(x, y);
}

static const struct {
    const char *name;
    double (*ours)(double, double);
    long double (*right)(long double, long double);
    double low_x, high_x, low_y, high_y, bound;
} pairs[] = {
    {"pow", mr_pow, powl, 1e-300, 1e300, -1, 1, 2},
    {"pow near 1", mr_pow, powl, 0.5, 2, -900, 900, 2},
    {"pow of squares", mr_pow, powl, 1e-100, 1e100, -3, 3, 2},
    {"atan2", mr_atan2, atan2l, -4, 4, -4, 4, 1},
    {"atan2", mr_atan2, atan2l, 1e-300, 1e300, 1e-300, 1e300, 1},
    {"hypot", norm2, hypotl, -4, 4, -4, 4, 1},
    {"hypot", norm2, hypotl, 1e-300, 1e300, 1e-300, 1e300, 1},
    {"rhypot", rnorm2, rhypot_l, -4, 4, -4, 4, 1.5},
};

static void double_functions_of_two_arguments(void **test) {
    (void)test;
    bool is_good = true;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        double most = 0, at_x = 0, at_y = 0;
        for (int round = 0; round < ROUNDS; round++) {
            double x = between(pairs[i].low_x, pairs[i].high_x),
                   y = between(pairs[i].low_y, pairs[i].high_y);
            double error = ulps_double(pairs[i].ours(x, y), pairs[i].right(x, y));
            if (error > most) most = error, at_x = x, at_y = y;
        }
        is_good &= judge(pairs[i].name, most, at_x, at_y, pairs[i].bound);
    }
    assert_true(is_good);
}

/* ---------------------------------------------------------------- float */

static const struct {
    const char *name;
    float (*ours)(float);
    long double (*right)(long double);
    double low, high;
} floats[] = {
    {"expf", mr_expf, expl, -110, 90},       {"expf", mr_expf, expl, -1, 1},
    {"exp2f", mr_exp2f, exp2l, -150, 129},   {"exp10f", mr_exp10f, exp10_l, -46, 39},
    {"logf", mr_logf, logl, 1e-45, 3e38},    {"logf", mr_logf, logl, 0.5, 2},
    {"log2f", mr_log2f, log2l, 1e-45, 3e38}, {"log2f", mr_log2f, log2l, 0.5, 2},
    {"log10f", mr_log10f, log10l, 0.5, 2},   {"sinf", mr_sinf, sinl, -10, 10},
    {"sinf", mr_sinf, sinl, 1e-40, 3e38},    {"cosf", mr_cosf, cosl, -10, 10},
    {"cosf", mr_cosf, cosl, 1e-40, 3e38},    {"tanf", mr_tanf, tanl, -10, 10},
    {"tanf", mr_tanf, tanl, 1e-40, 3e38},
};

static void float_functions(void **test) {
    (void)test;
    bool is_good = true;
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        double most = 0, at = 0;
        for (int round = 0; round < ROUNDS; round++) {
            float x = (float)between(floats[i].low, floats[i].high);
            long double right = fabsf(x) < 1e18f ? floats[i].right(x) : (long double)0;
            if (fabsf(x) >= 1e18f) /* beyond what the C library's long double reduces */
                right = floats[i].right == sinl   ? (long double)sin(x)
                        : floats[i].right == cosl ? (long double)cos(x)
                        : floats[i].right == tanl ? (long double)tan(x)
                                                  : floats[i].right(x);
            double error = ulps_float(floats[i].ours(x), right);
            if (error > most) most = error, at = x;
        }
        is_good &= judge(floats[i].name, most, at, 0, 0.51);
    }
    double most = 0, at_x = 0, at_y = 0;
    for (int round = 0; round < ROUNDS; round++) {
        float x = (float)between(1e-38, 1e38), y = (float)between(-4, 4);
        double error = ulps_float(mr_powf(x, y), powl(x, y));
        if (error > most) most = error, at_x = x, at_y = y;
    }
    assert_true(is_good & judge("powf", most, at_x, at_y, 0.51));
}

/* ---------------------------------------------------------------- exact functions, edges */

static void check_same(const char *name, double ours, double right, double x, double y) {
    bool is_same = isnan(right) ? isnan(ours) : ours == right && signbit(ours) == signbit(right);
    if (!is_same) fail_msg("%s(%.17g, %.17g) is %.17g, expected %.17g", name, x, y, ours, right);
}

static void exact_functions_at(double x, double y) {
    int exponent, right_exponent, quotient, right_quotient;
    check_same("fmod", mr_fmod(x, y), fmod(x, y), x, y);
    check_same("remquo", mr_remquo(x, y, &quotient), remquo(x, y, &right_quotient), x, y);
    if (isfinite(x) && isfinite(y) && y != 0) assert_int_equal(quotient & 7, right_quotient & 7);
    check_same("nextafter", mr_nextafter(x, y), nextafter(x, y), x, y);
    check_same("nextafterf", mr_nextafterf((float)x, (float)y), nextafterf((float)x, (float)y), x,
               y);
    check_same("logb", mr_logb(x), logb(x), x, y);
    check_same("frexp", mr_frexp(x, &exponent), frexp(x, &right_exponent), x, y);
    if (isfinite(x)) assert_int_equal(exponent, right_exponent);
}

static void exact_functions(void **test) {
    (void)test;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t a = next_bits(), b = next_bits();
        double x, y;
        memcpy(&x, &a, sizeof x);
        memcpy(&y, &b, sizeof y);
        exact_functions_at(x, y);
        exact_functions_at(between(-100, 100), between(-10, 10));
        exact_functions_at((int)(a % 64) - 32, (int)(b % 16) - 8);
        int shift = (int)(a % 4400) - 2200;
        check_same("ldexp", mr_ldexp(y, shift), ldexp(y, shift), y, shift);
    }
}

static const double edges[] = {
    0.0,    -0.0,    1,         -1,        2,     -2,     3,        0.5,       -0.5,  1.5,    -1.5,
    1e-310, -1e-310, 0x1p-1074, 0x1p-1022, 1e308, -1e308, 0x1p53,   0x1p54,    709.8, -745.2, 1e5,
    -1e5,   171.7,   -170.5,    -180.5,    1e20,  -1e20,  INFINITY, -INFINITY, NAN};
#define EDGES (sizeof edges / sizeof *edges)

static void edges_of_double_functions(void **test) {
    (void)test;
    static const struct {
        const char *name;
        double (*ours)(double), (*right)(double);
        double tolerance;
    } list[] = {{"exp", mr_exp, exp, 2},          {"exp2", mr_exp2, exp2, 2},
                {"exp10", mr_exp10, exp10, 2},    {"expm1", mr_expm1, expm1, 2},
                {"sinh", mr_sinh, sinh, 4},       {"cosh", mr_cosh, cosh, 4},
                {"tanh", mr_tanh, tanh, 4},       {"log", mr_log, log, 2},
                {"log2", mr_log2, log2, 2},       {"log10", mr_log10, log10, 3},
                {"log1p", mr_log1p, log1p, 2},    {"asinh", mr_asinh, asinh, 4},
                {"acosh", mr_acosh, acosh, 4},    {"atanh", mr_atanh, atanh, 4},
                {"cbrt", mr_cbrt, cbrt, 2},       {"sin", mr_sin, sin, 2},
                {"cos", mr_cos, cos, 2},          {"tan", mr_tan, tan, 3},
                {"atan", mr_atan, atan, 2},       {"asin", mr_asin, asin, 2},
                {"acos", mr_acos, acos, 2},       {"erf", mr_erf, erf, 3},
                {"erfc", mr_erfc, erfc, 8},       {"lgamma", mr_lgamma, lgamma, 9},
                {"tgamma", mr_tgamma, tgamma, 15}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        for (size_t j = 0; j < EDGES; j++) {
            double x = edges[j], ours = list[i].ours(x), right = list[i].right(x);
            if (right == 0 || isnan(right)) check_same(list[i].name, ours, right, x, 0);
            else if (ulps_double(ours, isinf(right) ? right * (long double)1 : right) >
                     list[i].tolerance)
                fail_msg("%s(%.17g) is %.17g, expected %.17g", list[i].name, x, ours, right);
        }
    }
}

static void edges_of_pow_and_atan2(void **test) {
    (void)test;
    for (size_t i = 0; i < EDGES; i++) {
        for (size_t j = 0; j < EDGES; j++) {
            double x = edges[i], y = edges[j], power = pow(x, y), angle = atan2(x, y);
            exact_functions_at(x, y);
            if (power == 0 || isnan(power) || isinf(power))
                check_same("pow", mr_pow(x, y), power, x, y);
            else if (ulps_double(mr_pow(x, y), power) > 3) fail_msg("pow(%g, %g)", x, y);
            if (angle == 0 || isnan(angle)) check_same("atan2", mr_atan2(x, y), angle, x, y);
            else if (ulps_double(mr_atan2(x, y), angle) > 2)
                fail_msg("atan2(%g, %g): %g", x, y, mr_atan2(x, y));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(double_functions_of_one_argument),
        cmocka_unit_test(inverses_of_the_error_functions),
        cmocka_unit_test(double_functions_of_two_arguments),
        cmocka_unit_test(float_functions),
        cmocka_unit_test(exact_functions),
        cmocka_unit_test(edges_of_double_functions),
        cmocka_unit_test(edges_of_pow_and_atan2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
