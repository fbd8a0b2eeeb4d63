/* The math functions of clang's kernels, run by the PTX interpreter, beside the same text compiled for the host. The
 * bits are the same, so test_compile_math.c measures the errors of kernels, too. */
#include "ptx_fixture.h"

#include <math.h>

#define MR_FUNCTION static inline __attribute__((unused))
#define MR_TABLE    static const
#include "compile/device/clang/millrace/functions.h"

#include "compile/compile.h"

#define COUNT 1024

/* name in CUDA, value for the host; `x` and `y` are the arguments */
#define DOUBLE_LIST(X)                                                                             \
    X(exp(x), mr_exp(x))                                                                           \
    X(exp2(x), mr_exp2(x))                                                                         \
    X(exp10(x), mr_exp10(x))                                                                       \
    X(expm1(x), mr_expm1(x))                                                                       \
    X(sinh(x), mr_sinh(x))                                                                         \
    X(cosh(x), mr_cosh(x))                                                                         \
    X(tanh(x), mr_tanh(x))                                                                         \
    X(log(x), mr_log(x))                                                                           \
    X(log2(x), mr_log2(x))                                                                         \
    X(log10(x), mr_log10(x))                                                                       \
    X(log1p(x), mr_log1p(x))                                                                       \
    X(asinh(x), mr_asinh(x))                                                                       \
    X(acosh(x), mr_acosh(x))                                                                       \
    X(cbrt(x), mr_cbrt(x))                                                                         \
    X(sin(x), mr_sin(x))                                                                           \
    X(cos(x), mr_cos(x))                                                                           \
    X(tan(x), mr_tan(x))                                                                           \
    X(sinpi(x), mr_sinpi(x))                                                                       \
    X(cospi(x), mr_cospi(x))                                                                       \
    X(atan(x), mr_atan(x))                                                                         \
    X(asin(x), mr_asin(x))                                                                         \
    X(acos(x), mr_acos(x))                                                                         \
    X(erf(x), mr_erf(x))                                                                           \
    X(erfc(x), mr_erfc(x))                                                                         \
    X(normcdf(x), mr_normcdf(x))                                                                   \
    X(lgamma(x), mr_lgamma(x))                                                                     \
    X(tgamma(x), mr_tgamma(x))                                                                     \
    X(pow(fabs(x), y), mr_pow(fabs(x), y))                                                         \
    X(atan2(x, y), mr_atan2(x, y))                                                                 \
    X(fmod(x, y), mr_fmod(x, y))                                                                   \
    X(hypot(x, y), mr_norm(x, y, 0, 0, 0))                                                         \
    X(floor(x) + round(y), floor(x) + round(y))

#define FLOAT_LIST(X)                                                                              \
    X(expf(x), mr_expf(x))                                                                         \
    X(exp2f(x), mr_exp2f(x))                                                                       \
    X(logf(x), mr_logf(x))                                                                         \
    X(log2f(x), mr_log2f(x))                                                                       \
    X(sinf(x), mr_sinf(x))                                                                         \
    X(cosf(x), mr_cosf(x))                                                                         \
    X(tanf(x), mr_tanf(x))                                                                         \
    X(powf(fabsf(x), y), mr_powf(fabsf(x), y))                                                     \
    X(erff(x), (float)mr_erf((double)x))                                                           \
    X(fmodf(x, y), (float)mr_fmod((double)x, (double)y))                                           \
    X(sqrtf(fabsf(x)) + x / y, sqrtf(fabsf(x)) + x / y)

#define X(device, host) 1 +
enum { DOUBLES = DOUBLE_LIST(X) 0, FLOATS = FLOAT_LIST(X) 0 };
#undef X

static const char kernels[] =
    "extern \"C\" __global__ void doubles(double *out, const double *in, const double *other) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;\n"
    "    double x = in[i], y = other[i];\n"
    "    const int all = gridDim.x * blockDim.x;\n"
#define X(device, host) "    out[k++ * all + i] = " #device ";\n"
    DOUBLE_LIST(X)
#undef X
        "}\n"
        "extern \"C\" __global__ void floats(float *out, const float *in, const float *other) {\n"
        "    int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;\n"
        "    float x = in[i], y = other[i];\n"
        "    const int all = gridDim.x * blockDim.x;\n"
#define X(device, host) "    out[k++ * all + i] = " #device ";\n"
    FLOAT_LIST(X)
#undef X
        "}\n";

static const char *const double_names[] = {
#define X(device, host) #device,
    DOUBLE_LIST(X)};
static const char *const float_names[] = {FLOAT_LIST(X)
#undef X
};

static void doubles_on_host(double x, double y, double *out) {
    int k = 0;
#define X(device, host) out[k++] = host;
    DOUBLE_LIST(X)
#undef X
}
static void floats_on_host(float x, float y, float *out) {
    int k = 0;
#define X(device, host) out[k++] = host;
    FLOAT_LIST(X)
#undef X
}

/* The PTX; skips the test without clang. The option keeps the sums of the test itself apart, as the host has them. */
static mr_compiled compile_kernels(void) {
    mr_compiled compiled;
    static const char *const options[] = {"--fmad=false"};
    const mr_compile_source source = {.text = kernels,
                                      .size = sizeof kernels - 1,
                                      .compute_major = 9,
                                      .options = options,
                                      .option_count = 1};
    setenv("MILLRACE_COMPILER", "clang", 1);
    setenv("MILLRACE_CACHE", "off", 1);
    mr_status status = mr_compile(&source, &compiled);
    if (status && status->code == MR_CODE_NOT_SUPPORTED) {
        printf("without clang: %s\n", status->message);
        mr_error_destroy(status);
        skip();
    }
    expect_none(status);
    return compiled;
}

static uint64_t state = 88172645463325252u;
static double next_number(int i) {
    static const double edges[] = {0.0,    -0.0,     1,         -1,  0.5, 2,   1e300, -1e300,
                                   1e-310, INFINITY, -INFINITY, NAN, 1e6, 3e9, 1e22};
    if (i < 15 * 15) return edges[i % 15];
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double part = (double)(state >> 11) * 0x1p-53;
    return i % 3 ? (part - 0.5) * 40 : exp((part - 0.5) * 200);
}

static void doubles_have_the_bits_of_the_host(void **unused) {
    (void)unused;
    device d;
    char *out, *in, *other;
    double right[DOUBLES];
    mr_compiled compiled = compile_kernels();
    load_ptx(&d, compiled.ptx);
    uint64_t to = give(&d, "out", sizeof(double) * DOUBLES * COUNT, 0, &out);
    uint64_t from = give(&d, "in", sizeof(double) * COUNT, 0, &in),
             others = give(&d, "other", sizeof(double) * COUNT, 0, &other);
    for (int i = 0; i < COUNT; i++) {
        ((double *)(void *)in)[i] = next_number(i);
        ((double *)(void *)other)[i] = next_number(i < 15 * 15 ? i / 15 : i);
    }
    begin(&d, "doubles", COUNT / 64, 64);
    PASS(&d, uint64_t, to);
    PASS(&d, uint64_t, from);
    PASS(&d, uint64_t, others);
    run(&d);
    for (int i = 0; i < COUNT; i++) {
        double x = ((double *)(void *)in)[i], y = ((double *)(void *)other)[i];
        doubles_on_host(x, y, right);
        for (int k = 0; k < DOUBLES; k++) {
            double got = ((double *)(void *)out)[k * COUNT + i];
            if (memcmp(&got, &right[k], sizeof got) != 0 && !(isnan(got) && isnan(right[k])))
                fail_msg("%s at %.17g, %.17g is %.17g, on the host %.17g", double_names[k], x, y,
                         got, right[k]);
        }
    }
    unload(&d);
    mr_compiled_free(&compiled);
}

static void floats_have_the_bits_of_the_host(void **unused) {
    (void)unused;
    device d;
    char *out, *in, *other;
    float right[FLOATS];
    mr_compiled compiled = compile_kernels();
    load_ptx(&d, compiled.ptx);
    uint64_t to = give(&d, "out", sizeof(float) * FLOATS * COUNT, 0, &out);
    uint64_t from = give(&d, "in", sizeof(float) * COUNT, 0, &in),
             others = give(&d, "other", sizeof(float) * COUNT, 0, &other);
    for (int i = 0; i < COUNT; i++) {
        ((float *)(void *)in)[i] = (float)next_number(i);
        ((float *)(void *)other)[i] = (float)next_number(i < 15 * 15 ? i / 15 : i);
    }
    begin(&d, "floats", COUNT / 64, 64);
    PASS(&d, uint64_t, to);
    PASS(&d, uint64_t, from);
    PASS(&d, uint64_t, others);
    run(&d);
    for (int i = 0; i < COUNT; i++) {
        float x = ((float *)(void *)in)[i], y = ((float *)(void *)other)[i];
        floats_on_host(x, y, right);
        for (int k = 0; k < FLOATS; k++) {
            float got = ((float *)(void *)out)[k * COUNT + i];
            if (memcmp(&got, &right[k], sizeof got) != 0 && !(isnan(got) && isnan(right[k])))
                fail_msg("%s at %.9g, %.9g is %.9g, on the host %.9g", float_names[k], x, y, got,
                         right[k]);
        }
    }
    unload(&d);
    mr_compiled_free(&compiled);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(doubles_have_the_bits_of_the_host),
                                       cmocka_unit_test(floats_have_the_bits_of_the_host)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
