/* The elementary functions against the C library's in more digits: the error in units in the last place
 * over random arguments of every magnitude, and the special values of C. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "ops/expr.h"

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Half of them any bits at all, half of a magnitude that the functions do something with. */
static float random_f32(void) {
    uint32_t bits = (uint32_t)next_random();
    if (next_random() & 1) return mr_from_bits_f32(bits);
    return ldexpf((float)(int32_t)bits, (int)(next_random() % 40) - 50);
}
static double random_f64(void) {
    uint64_t bits = next_random();
    if (next_random() & 1) return mr_from_bits_f64(bits);
    return ldexp((double)(int64_t)bits, (int)(next_random() % 60) - 90);
}

static double ulps_f32(float got, double exact) {
    float rounded = (float)exact;
    if (isnan(exact) || isinf(rounded) || isinf(got) || isnan(got)) {
        bool edge =
            (isinf(got) && fabs(exact) > 3.4028e38) || (isinf(rounded) && fabsf(got) > 3.4028e38f);
        return (isnan(exact) && isnan(got)) || got == rounded || edge ? 0 : 1e9;
    }
    double unit = fmax(ldexp(1, ilogb(exact == 0 ? 1e-45 : exact) - 23), 0x1p-149);
    return fabs((double)got - exact) / unit;
}
static double ulps_f64(double got, long double exact) {
    double rounded = (double)exact;
    if (isnan(exact) || isinf(rounded) || isinf(got) || isnan(got)) {
        bool edge =
            (isinf(got) && fabsl(exact) > 1.797e308L) || (isinf(rounded) && fabs(got) > 1.797e308);
        return (isnan(exact) && isnan(got)) || got == rounded || edge ? 0 : 1e9;
    }
    long double unit = fmaxl(ldexpl(1, ilogbl(exact == 0 ? 1e-320L : exact) - 52), 0x1p-1074L);
    return (double)(fabsl((long double)got - exact) / unit);
}

static bool same_f32(float a, float b) {
    return (isnan(a) && isnan(b)) || mr_bits_f32(a) == mr_bits_f32(b);
}
static bool same_f64(double a, double b) {
    return (isnan(a) && isnan(b)) || mr_bits_f64(a) == mr_bits_f64(b);
}

enum { ROUNDS = 300000 };
static const double specials[] = {0.0,  -0.0,     1,         -1,       INFINITY,     -INFINITY,
                                  NAN,  0x1p-149, -0x1p-149, 0x1p-126, 3.4028234e38, 89,
                                  -104, 0.5,      2,         3,        -3,           1e-30};
enum { SPECIALS = sizeof specials / sizeof *specials };

#define CHECK(name, limit_f32, limit_f64)                                                          \
    static void name##_is_close(void **state) {                                                    \
        (void)state;                                                                               \
        double worst_f32 = 0, worst_f64 = 0, at_f32 = 0, at_f64 = 0;                               \
        for (int i = 0; i < ROUNDS; i++) {                                                         \
            float x = i < SPECIALS ? (float)specials[i] : random_f32();                            \
            double y = i < SPECIALS ? specials[i] : random_f64();                                  \
            double off = ulps_f32(mr_##name(x), name((double)x));                                  \
            if (off > worst_f32) worst_f32 = off, at_f32 = (double)x;                              \
            off = ulps_f64(mr_##name(y), name##l((long double)y));                                 \
            if (off > worst_f64) worst_f64 = off, at_f64 = y;                                      \
        }                                                                                          \
        print_message("%-5s %.2f ulp in f32, %.2f in f64\n", #name, worst_f32, worst_f64);         \
        if (worst_f32 > limit_f32)                                                                 \
            fail_msg("%s(%.9g) is %.9g", #name, at_f32, (double)mr_##name((float)at_f32));         \
        if (worst_f64 > limit_f64)                                                                 \
            fail_msg("%s(%.17g) is %.17g", #name, at_f64, mr_##name(at_f64));                      \
    }
CHECK(exp, 1.5, 1.5)
CHECK(log, 1.5, 1.5)
CHECK(sin, 1.5, 1.5)
CHECK(cos, 1.5, 1.5)
CHECK(tanh, 1.5, 1.5)
CHECK(exp2, 0.6, 1)
CHECK(expm1, 0.6, 1)
CHECK(log2, 0.6, 1)
CHECK(log10, 0.6, 2)
CHECK(log1p, 0.6, 1)
CHECK(tan, 0.6, 1)
CHECK(asin, 0.6, 1)
CHECK(acos, 0.6, 1)
CHECK(atan, 0.6, 1)
CHECK(sinh, 0.6, 2)
CHECK(cosh, 0.6, 2)

static void erf_is_close(void **state) {
    (void)state;
    double worst = 0, at = 0;
    for (int i = 0; i < ROUNDS; i++) {
        float x = i < SPECIALS ? (float)specials[i] : random_f32();
        double off = ulps_f32(mr_erf_f32(x), erf((double)x));
        if (off > worst) worst = off, at = (double)x;
    }
    print_message("erf   %.2f ulp in f32\n", worst);
    if (worst > 1.5) fail_msg("erf(%.9g) is %.9g", at, (double)mr_erf_f32((float)at));
}

/* For negative numbers 1 + erf has fewer and fewer digits. */
static double exact_gelu(double x) {
    if (isinf(x)) return x > 0 ? x : (double)NAN;
    long double t = (long double)x * -0.707106781186547524400844362104849039L;
    return (double)(0.5L * x * erfcl(t));
}
static void gelu_is_close(void **state) {
    (void)state;
    double worst = 0, at = 0;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        float x = i < SPECIALS ? (float)specials[i] : random_f32();
        if (i & 1) x = ldexpf((float)(int32_t)next_random(), -27); /* from -16 to 16 */
        double off = ulps_f32(mr_gelu(x), exact_gelu((double)x));
        if (off > worst) worst = off, at = (double)x;
    }
    print_message("gelu  %.2f ulp in f32\n", worst);
    if (worst > 2) fail_msg("gelu(%.9g) is %.9g", at, (double)mr_gelu((float)at));
    assert_true(signbit(mr_gelu(-0.0f)) && signbit(mr_gelu(-20.0f)) && mr_gelu(20.0f) == 20);
}

static void sigmoid_and_silu_are_close(void **state) {
    (void)state;
    double worst = 0, at = 0;
    for (int i = 0; i < ROUNDS; i++) {
        float x = i < SPECIALS ? (float)specials[i] : random_f32();
        double exact = 1 / (1 + exp(-(double)x)), off = ulps_f32(mr_sigmoid(x), exact);
        if (off > worst) worst = off, at = (double)x;
        off = ulps_f32(mr_silu(x), (double)x / (1 + exp(-(double)x)));
        if (off > worst) worst = off, at = (double)x;
    }
    print_message("sigmoid, silu %.2f ulp in f32\n", worst);
    if (worst > 0.6)
        fail_msg("of %.9g: %.9g, %.9g", at, (double)mr_sigmoid((float)at),
                 (double)mr_silu((float)at));
}

/* The quotient's floor by the rest, which fmod gives exactly: rounding the quotient may have passed a whole number. */
static double floor_of_quotient(double a, double b) {
    if (b == 0) return a / b;
    double rest = fmod(a, b), quotient = (a - rest) / b;
    if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
    if (quotient == 0) return copysign(0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

/* Any numbers; whole ones, which mostly divide without a rest; multiples of b and their neighbours; numbers with few
 * bits. */
static void random_division(double *a, double *b, bool single) {
    double limit = single ? -INFINITY : 0;
    for (int i = 0; i < 2; i++) {
        double any = single ? (double)random_f32() : random_f64();
        uint64_t n = next_random();
        *(i ? a : b) = n % 3 == 0   ? any
                       : n % 3 == 1 ? (double)((int)(n >> 8) % 1000)
                                    : (double)((int)(n >> 8) % 64) * 0.25;
    }
    if (next_random() & 1) return;
    *a = *b * (double)(next_random() % 100);
    if (single) *a = (double)nextafterf((float)*a, (float)limit);
    else *a = nextafter(*a, limit);
}

/* The rest of a division is exact, so all that is computed from it has one right answer, near or far. */
static void divisions_are_exact(void **state) {
    (void)state;
    int near = 0;
    for (int i = 0; i < 4 * ROUNDS; i++) {
        double a, b;
        random_division(&a, &b, true);
        if (i < SPECIALS * SPECIALS) a = specials[i / SPECIALS], b = specials[i % SPECIALS];
        float x = (float)a, y = (float)b, rest = fmodf(x, y);
        float positive = rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
        double whole = floor_of_quotient((double)x, (double)y);
        near += mr_quotient_is_near(x, y);
        assert_true(same_f32(mr_fmod(x, y), rest));
        assert_true(same_f32(mr_remainder(x, y), positive));
        if (mr_quotient_is_near(x, y) || fabs(whole) < 0x1p22 || isnan(whole))
            assert_true(same_f32(mr_floor_divide(x, y), (float)whole));
        random_division(&a, &b, false);
        if (i < SPECIALS * SPECIALS) a = specials[i / SPECIALS], b = specials[i % SPECIALS];
        double left = fmod(a, b);
        near += mr_quotient_is_near(a, b);
        assert_true(same_f64(mr_fmod(a, b), left));
        assert_true(
            same_f64(mr_remainder(a, b), left != 0 && (left < 0) != (b < 0) ? left + b : left));
        assert_true(same_f64(mr_floor_divide(a, b), floor_of_quotient(a, b)));
    }
    assert_true(near > 2 * ROUNDS);
}

static void pow_is_close(void **state) {
    (void)state;
    double worst = 0, at_a = 0, at_b = 0;
    for (int i = 0; i < ROUNDS; i++) {
        float a = random_f32(), b = (next_random() & 3)
                                        ? (float)((int)(next_random() % 41) - 20) * 0.5f
                                        : random_f32();
        if (i < SPECIALS * SPECIALS)
            a = (float)specials[i / SPECIALS], b = (float)specials[i % SPECIALS];
        double off = ulps_f32(mr_pow(a, b), pow((double)a, (double)b));
        if (off > worst) worst = off, at_a = (double)a, at_b = (double)b;
    }
    print_message("pow   %.2f ulp in f32\n", worst);
    if (worst > 1)
        fail_msg("pow(%.9g, %.9g) is %.9g", at_a, at_b, (double)mr_pow((float)at_a, (float)at_b));
}

/* Exponents for which the power is a number, so that there is something to compare. They are a few tenths, up to the
 * greatest and the least, and bases are next to 1 where those are large. */
static void pow_of_f64_is_close(void **state) {
    (void)state;
    double worst = 0, at_a = 0, at_b = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double a = random_f64(), b = random_f64();
        if (next_random() & 1) a = 1 + ldexp((double)(int64_t)next_random(), -70);
        if (next_random() & 3) {
            double most = 1075 / fmax(fabs(log2(fabs(a))), 1e-18);
            b = most * ldexp((double)(int64_t)next_random(), -63);
            if (next_random() & 1) a = fabs(a);
            else b = rint(b);
        }
        if (i < SPECIALS * SPECIALS) a = specials[i / SPECIALS], b = specials[i % SPECIALS];
        double off = ulps_f64(mr_pow(a, b), powl((long double)a, (long double)b));
        if (off > worst) worst = off, at_a = a, at_b = b;
    }
    print_message("pow   %.2f ulp in f64\n", worst);
    if (worst > 1.5) fail_msg("pow(%.17g, %.17g) is %.17g", at_a, at_b, mr_pow(at_a, at_b));
}

/* C's special cases, all pairs. Also cases where a digit too few would show: bases next to 1 with large exponents,
 * results next to the greatest and the least number, subnormal bases. */
static void pow_has_all_special_cases(void **state) {
    (void)state;
    static const float values[] = {
        0,         1,         2,        3,       0.5f,           2.5f,          0x1p22f,
        0x1p23f,   8388609,   0x1p24f,  0x1p31f, 0x1p100f,       0x1p127f,      3.4028235e38f,
        0x1p-126f, 0x1p-149f, 1.4e-40f, 1e-30f,  0x1.fffffep-1f, 0x1.000002p0f, INFINITY,
        NAN};
    enum { VALUES = sizeof values / sizeof *values };
    for (int i = 0; i < 4 * VALUES * VALUES; i++) {
        float a = values[i / 4 % VALUES], b = values[i / 4 / VALUES];
        if (i & 1) a = -a;
        if (i & 2) b = -b;
        double exact = pow((double)a, (double)b);
        float got = mr_pow(a, b);
        bool same_sign = isnan(exact) || !signbit(exact) == !signbit(got);
        if (!same_sign || ulps_f32(got, exact) > 1)
            fail_msg("pow(%.9g, %.9g) is %.9g", (double)a, (double)b, (double)got);
    }
}

/* A block is computed by the one or the other, so where both count they must be the same. */
static void quick_ways_have_the_same_bits(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        float a = random_f32(),
              b = (next_random() & 1) ? random_f32() : (float)((int)(next_random() % 41) - 20);
        if (mr_pow_is_near_f32(a, b))
            assert_int_equal(mr_bits_f32(mr_pow_near_f32(a, b, mr_pow_exponent_of_f32(a, b))),
                             mr_bits_f32(mr_pow_f32(a, b)));
        double c = random_f64();
        if (mr_pow_is_near_f64(c, 3))
            assert_true(
                same_f64(mr_pow_near_f64(c, 3, mr_pow_exponent_of_f64(c, 3)), mr_cube_f64(c)));
        assert_true(same_f64(mr_pow(c, 3.0), mr_cube_f64(c)) &&
                    same_f32(mr_pow(a, 3.0f), mr_cube_f32(a)));
        if (mr_is_near(a)) assert_true(mr_sin_near(a) == mr_sin(a) && mr_cos_near(a) == mr_cos(a));
    }
}

/* The reduction of sin and cos of f32, and of tan of f64, next to multiples of pi / 2, where most digits cancel, up to
 * where they may. */
static void multiples_of_a_right_angle(void **state) {
    (void)state;
    for (int64_t k = 1; k < 333772; k += 1 + k / 30000) { /* 2^19 / (pi / 2) */
        double x = (double)k * 1.57079632679489661923;
        for (int step = 0; step < 3; step++, x = nextafter(x, step & 1 ? INFINITY : -INFINITY)) {
            assert_true(ulps_f64(mr_tan(x), tanl((long double)x)) < 1);
            assert_true(same_f64(mr_tan(-x), -mr_tan(x)));
        }
    }
    for (int64_t k = 1; k < 83443; k += 1 + k / 30000) { /* 2^17 / (pi / 2) */
        float x = (float)((double)k * 1.57079632679489661923);
        for (int step = 0; step < 3; step++, x = nextafterf(x, step & 1 ? INFINITY : -INFINITY)) {
            assert_true(ulps_f32(mr_sin(x), sin((double)x)) < 1.5 &&
                        ulps_f32(mr_cos(x), cos((double)x)) < 1.5);
            assert_true(mr_sin(-x) == -mr_sin(x) && mr_cos(-x) == mr_cos(x));
        }
    }
}

static void atan2_is_close(void **state) {
    (void)state;
    double worst = 0, at_a = 0, at_b = 0;
    for (int i = 0; i < ROUNDS; i++) {
        float a = random_f32(), b = random_f32();
        if (i < SPECIALS * SPECIALS)
            a = (float)specials[i / SPECIALS], b = (float)specials[i % SPECIALS];
        double exact = atan2((double)a, (double)b), off = ulps_f32(mr_atan2(a, b), exact);
        if (!isnan(exact) && !signbit(exact) != !signbit(mr_atan2(a, b))) off = 1e9;
        if (off > worst) worst = off, at_a = (double)a, at_b = (double)b;
    }
    print_message("atan2 %.2f ulp in f32\n", worst);
    if (worst > 0.6)
        fail_msg("atan2(%.9g, %.9g) is %.9g", at_a, at_b,
                 (double)mr_atan2((float)at_a, (float)at_b));
}

static void zeros_keep_their_sign(void **state) {
    (void)state;
    assert_true(signbit(mr_sin(-0.0f)) && signbit(mr_sin(-0.0)) && signbit(mr_tanh(-0.0f)) &&
                signbit(mr_tanh(-0.0)));
    assert_true(signbit(mr_pow(-0.0f, 3.0f)) && !signbit(mr_pow(-0.0f, 2.0f)) &&
                mr_pow(-0.0f, -3.0f) == -INFINITY);
    assert_true(signbit(mr_erf_f32(-0.0f)));
    assert_true(signbit(mr_expm1(-0.0f)) && signbit(mr_log1p(-0.0f)) && signbit(mr_sinh(-0.0f)));
    assert_true(signbit(mr_tan(-0.0f)) && signbit(mr_asin(-0.0f)) && signbit(mr_atan(-0.0f)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp_is_close),
        cmocka_unit_test(log_is_close),
        cmocka_unit_test(sin_is_close),
        cmocka_unit_test(cos_is_close),
        cmocka_unit_test(tanh_is_close),
        cmocka_unit_test(erf_is_close),
        cmocka_unit_test(sigmoid_and_silu_are_close),
        cmocka_unit_test(divisions_are_exact),
        cmocka_unit_test(pow_is_close),
        cmocka_unit_test(pow_of_f64_is_close),
        cmocka_unit_test(zeros_keep_their_sign),
        cmocka_unit_test(gelu_is_close),
        cmocka_unit_test(pow_has_all_special_cases),
        cmocka_unit_test(quick_ways_have_the_same_bits),
        cmocka_unit_test(multiples_of_a_right_angle),
        cmocka_unit_test(atan2_is_close),
        cmocka_unit_test(exp2_is_close),
        cmocka_unit_test(expm1_is_close),
        cmocka_unit_test(log2_is_close),
        cmocka_unit_test(log10_is_close),
        cmocka_unit_test(log1p_is_close),
        cmocka_unit_test(tan_is_close),
        cmocka_unit_test(asin_is_close),
        cmocka_unit_test(acos_is_close),
        cmocka_unit_test(atan_is_close),
        cmocka_unit_test(sinh_is_close),
        cmocka_unit_test(cosh_is_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
