/* Every row of the unary, binary, compare and ternary families, for every dtype, layout and pair of layouts, against
 * plain functions. On the device they run in random slices, which must give the host's bits. */
#include "fake_backend.h"

#include "ops/expr.h"
#include "ops/ids.h"

typedef double (*real_function)(double a, double b, double c);
/* Wide enough for any result before it wraps. */
typedef __int128 wide;
typedef wide (*integer_function)(wide a, wide b, wide c);

static double r_sign(double a, double b, double c) {
    (void)b, (void)c;
    return (a > 0) - (a < 0);
}
static double r_neg(double a, double b, double c) {
    (void)b, (void)c;
    return -a;
}
static double r_abs(double a, double b, double c) {
    (void)b, (void)c;
    return fabs(a);
}
static double r_exp(double a, double b, double c) {
    (void)b, (void)c;
    return exp(a);
}
static double r_log(double a, double b, double c) {
    (void)b, (void)c;
    return log(a);
}
static double r_sqrt(double a, double b, double c) {
    (void)b, (void)c;
    return sqrt(a);
}
static double r_rsqrt(double a, double b, double c) {
    (void)b, (void)c;
    return 1 / sqrt(a);
}
static double r_sin(double a, double b, double c) {
    (void)b, (void)c;
    return sin(a);
}
static double r_cos(double a, double b, double c) {
    (void)b, (void)c;
    return cos(a);
}
static double r_tanh(double a, double b, double c) {
    (void)b, (void)c;
    return tanh(a);
}
static double r_sigmoid(double a, double b, double c) {
    (void)b, (void)c;
    return 1 / (1 + exp(-a));
}
static double r_relu(double a, double b, double c) {
    (void)b, (void)c;
    return a < 0 ? 0 : a;
}
static double r_gelu(double a, double b, double c) {
    (void)b, (void)c;
    return 0.5 * a * erfc(a * -0.70710678118654752440);
}
static double r_floor(double a, double b, double c) {
    (void)b, (void)c;
    return floor(a);
}
static double r_ceil(double a, double b, double c) {
    (void)b, (void)c;
    return ceil(a);
}
static double r_round(double a, double b, double c) {
    (void)b, (void)c;
    return rint(a);
}
static double r_reciprocal(double a, double b, double c) {
    (void)b, (void)c;
    return 1 / a;
}
static double r_square(double a, double b, double c) {
    (void)b, (void)c;
    return a * a;
}
static double r_not(double a, double b, double c) {
    (void)b, (void)c;
    return a == 0;
}
static double r_add(double a, double b, double c) {
    (void)c;
    return a + b;
}
static double r_sub(double a, double b, double c) {
    (void)c;
    return a - b;
}
static double r_mul(double a, double b, double c) {
    (void)c;
    return a * b;
}
static double r_div(double a, double b, double c) {
    (void)c;
    return a / b;
}
static double r_pow(double a, double b, double c) {
    (void)c;
    return pow(a, b);
}
static double r_max(double a, double b, double c) {
    (void)c;
    return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
}
static double r_min(double a, double b, double c) {
    (void)c;
    return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
}
static double r_rem(double a, double b, double c) {
    (void)c;
    double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static double r_relu_backward(double a, double b, double c) {
    (void)c;
    return b <= 0 ? 0 : a;
}
static double r_tanh_backward(double a, double b, double c) {
    (void)c;
    return (double)(a * ((1 - (long double)b) * (1 + (long double)b)));
}
static double r_sigmoid_backward(double a, double b, double c) {
    (void)c;
    return (double)((long double)a * b * (1 - (long double)b));
}
static double r_eq(double a, double b, double c) {
    (void)c;
    return a == b;
}
static double r_ne(double a, double b, double c) {
    (void)c;
    return a != b;
}
static double r_lt(double a, double b, double c) {
    (void)c;
    return a < b;
}
static double r_le(double a, double b, double c) {
    (void)c;
    return a <= b;
}
static double r_gt(double a, double b, double c) {
    (void)c;
    return a > b;
}
static double r_ge(double a, double b, double c) {
    (void)c;
    return a >= b;
}
static double r_where(double a, double b, double c) {
    return a != 0 ? b : c;
}
static double r_clamp(double a, double b, double c) {
    return r_min(r_max(a, b, 0), c, 0);
}
static double r_lerp(double a, double b, double c) {
    return c < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c);
}

static double r_exp2(double a, double b, double c) {
    (void)b, (void)c;
    return exp2(a);
}
static double r_expm1(double a, double b, double c) {
    (void)b, (void)c;
    return expm1(a);
}
static double r_log2(double a, double b, double c) {
    (void)b, (void)c;
    return log2(a);
}
static double r_log10(double a, double b, double c) {
    (void)b, (void)c;
    return log10(a);
}
static double r_log1p(double a, double b, double c) {
    (void)b, (void)c;
    return log1p(a);
}
static double r_asin(double a, double b, double c) {
    (void)b, (void)c;
    return asin(a);
}
static double r_acos(double a, double b, double c) {
    (void)b, (void)c;
    return acos(a);
}
static double r_atan(double a, double b, double c) {
    (void)b, (void)c;
    return atan(a);
}
static double r_sinh(double a, double b, double c) {
    (void)b, (void)c;
    return sinh(a);
}
static double r_cosh(double a, double b, double c) {
    (void)b, (void)c;
    return cosh(a);
}
static double r_erf(double a, double b, double c) {
    (void)b, (void)c;
    return erf(a);
}
static double r_trunc(double a, double b, double c) {
    (void)b, (void)c;
    return trunc(a);
}
static double r_frac(double a, double b, double c) {
    (void)b, (void)c;
    return a - trunc(a);
}
static double r_silu(double a, double b, double c) {
    (void)b, (void)c;
    return a / (1 + exp(-a));
}
static double r_softplus(double a, double b, double c) {
    (void)b, (void)c;
    return a > 20 ? a : log1p(exp(a));
}
static double r_isnan(double a, double b, double c) {
    (void)b, (void)c;
    return isnan(a) != 0;
}
static double r_isinf(double a, double b, double c) {
    (void)b, (void)c;
    return isinf(a) != 0;
}
static double r_isfinite(double a, double b, double c) {
    (void)b, (void)c;
    return isfinite(a) != 0;
}
static double r_tan(double a, double b, double c) {
    (void)b, (void)c;
    return tan(a);
}
static double r_fmod(double a, double b, double c) {
    (void)c;
    return fmod(a, b);
}
static double r_atan2(double a, double b, double c) {
    (void)c;
    return atan2(a, b);
}
static double r_and(double a, double b, double c) {
    (void)c;
    return (a != 0) && (b != 0);
}
static double r_or(double a, double b, double c) {
    (void)c;
    return (a != 0) || (b != 0);
}
static double r_xor(double a, double b, double c) {
    (void)c;
    return (a != 0) != (b != 0);
}
static double r_leaky(double a, double b, double c) {
    (void)c;
    return a > 0 ? a : a * b;
}
static double r_elu(double a, double b, double c) {
    (void)c;
    return a > 0 ? a : b * expm1(a);
}
/* In more digits than the row has, so that the quotient is not rounded up to an integer. */
static double r_floor_divide(double a, double b, double c) {
    (void)c;
    if (b == 0 || isinf(a) || isnan(a) || isnan(b)) return b == 0 ? a / b : NAN;
    if (isinf(b)) return a == 0 ? a / b : (a < 0) != (b < 0) ? -1 : 0;
    return (double)floorl((long double)a / b);
}

static wide i_sign(wide a, wide b, wide c) {
    (void)b, (void)c;
    return (a > 0) - (a < 0);
}
static wide i_neg(wide a, wide b, wide c) {
    (void)b, (void)c;
    return -a;
}
static wide i_abs(wide a, wide b, wide c) {
    (void)b, (void)c;
    return a < 0 ? -a : a;
}
static wide i_same(wide a, wide b, wide c) {
    (void)b, (void)c;
    return a;
}
static wide i_relu(wide a, wide b, wide c) {
    (void)b, (void)c;
    return a < 0 ? 0 : a;
}
static wide i_square(wide a, wide b, wide c) {
    (void)b, (void)c;
    return a * a;
}
static wide i_not(wide a, wide b, wide c) {
    (void)b, (void)c;
    return a == 0;
}
static wide i_add(wide a, wide b, wide c) {
    (void)c;
    return a + b;
}
static wide i_sub(wide a, wide b, wide c) {
    (void)c;
    return a - b;
}
static wide i_mul(wide a, wide b, wide c) {
    (void)c;
    return a * b;
}
static wide i_max(wide a, wide b, wide c) {
    (void)c;
    return a > b ? a : b;
}
static wide i_min(wide a, wide b, wide c) {
    (void)c;
    return a < b ? a : b;
}
static wide i_rem(wide a, wide b, wide c) {
    (void)c;
    if (b == 0) return 0;
    wide r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static wide i_pow(wide a, wide b, wide c) {
    (void)c;
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    unsigned __int128 result = 1, base = (unsigned __int128)a; /* by the schoolbook, modulo 2^128 */
    for (; b > 0; b /= 2, base *= base)
        if (b % 2) result *= base;
    return (wide)result;
}
static wide i_eq(wide a, wide b, wide c) {
    (void)c;
    return a == b;
}
static wide i_ne(wide a, wide b, wide c) {
    (void)c;
    return a != b;
}
static wide i_lt(wide a, wide b, wide c) {
    (void)c;
    return a < b;
}
static wide i_le(wide a, wide b, wide c) {
    (void)c;
    return a <= b;
}
static wide i_gt(wide a, wide b, wide c) {
    (void)c;
    return a > b;
}
static wide i_ge(wide a, wide b, wide c) {
    (void)c;
    return a >= b;
}
static wide i_where(wide a, wide b, wide c) {
    return a ? b : c;
}
static wide i_clamp(wide a, wide b, wide c) {
    return i_min(i_max(a, b, 0), c, 0);
}

static wide i_never(wide a, wide b, wide c) {
    (void)b, (void)c;
    return (void)a, 0;
}
static wide i_always(wide a, wide b, wide c) {
    (void)b, (void)c;
    return (void)a, 1;
}
static wide i_invert(wide a, wide b, wide c) {
    (void)b, (void)c;
    return ~a;
}
static wide i_fmod(wide a, wide b, wide c) {
    (void)c;
    return b == 0 ? 0 : a % b;
}
static wide i_and(wide a, wide b, wide c) {
    (void)c;
    return a && b;
}
static wide i_or(wide a, wide b, wide c) {
    (void)c;
    return a || b;
}
static wide i_xor(wide a, wide b, wide c) {
    (void)c;
    return !a != !b;
}
static wide i_bits_and(wide a, wide b, wide c) {
    (void)c;
    return a & b;
}
static wide i_bits_or(wide a, wide b, wide c) {
    (void)c;
    return a | b;
}
static wide i_bits_xor(wide a, wide b, wide c) {
    (void)c;
    return a ^ b;
}
static wide i_floor_divide(wide a, wide b, wide c) {
    (void)c;
    return b == 0 ? 0 : (a - i_rem(a, b, 0)) / b;
}
/* Bit by bit. The test cuts off the bits that are shifted out at the top. */
static wide i_shift_left(wide a, wide b, wide c) {
    (void)c;
    if (b < 0 || b > 64) return 0;
    for (; b > 0; b--) a *= 2;
    return a;
}
static wide i_shift_right(wide a, wide b, wide c) {
    (void)c;
    if (b < 0 || b > 64) b = 64;
    for (; b > 0; b--) a = (a - (a & 1)) / 2;
    return a;
}

/* name, functions, units in the last place that a float may be off */
static const struct {
    const char *name;
    real_function real;
    integer_function integer; /* NULL: integers become f32 */
    double ulps;
} references[] = {
    {"neg", r_neg, i_neg, 0},
    {"abs", r_abs, i_abs, 0},
    {"sign", r_sign, i_sign, 0},
    {"exp", r_exp, NULL, 2},
    {"log", r_log, NULL, 2},
    {"sqrt", r_sqrt, NULL, 0.5},
    {"rsqrt", r_rsqrt, NULL, 2},
    {"sin", r_sin, NULL, 2},
    {"cos", r_cos, NULL, 2},
    {"tanh", r_tanh, NULL, 4},
    {"sigmoid", r_sigmoid, NULL, 4},
    {"relu", r_relu, i_relu, 0},
    {"gelu", r_gelu, NULL, 8},
    {"floor", r_floor, i_same, 0},
    {"ceil", r_ceil, i_same, 0},
    {"round", r_round, i_same, 0},
    {"reciprocal", r_reciprocal, NULL, 1},
    {"square", r_square, i_square, 1},
    {"logical_not", r_not, i_not, 0},
    {"add", r_add, i_add, 1},
    {"sub", r_sub, i_sub, 1},
    {"mul", r_mul, i_mul, 1},
    {"div", r_div, NULL, 1},
    {"pow", r_pow, i_pow, 2},
    {"maximum", r_max, i_max, 0},
    {"minimum", r_min, i_min, 0},
    {"remainder", r_rem, i_rem, 1},
    {"relu_backward", r_relu_backward, NULL, 0},
    {"tanh_backward", r_tanh_backward, NULL, 4},
    {"sigmoid_backward", r_sigmoid_backward, NULL, 4},
    {"eq", r_eq, i_eq, 0},
    {"ne", r_ne, i_ne, 0},
    {"lt", r_lt, i_lt, 0},
    {"le", r_le, i_le, 0},
    {"gt", r_gt, i_gt, 0},
    {"ge", r_ge, i_ge, 0},
    {"where", r_where, i_where, 0},
    {"clamp", r_clamp, i_clamp, 0},
    {"lerp", r_lerp, NULL, 4},
    {"exp2", r_exp2, NULL, 1},
    {"expm1", r_expm1, NULL, 1},
    {"log2", r_log2, NULL, 1},
    {"log10", r_log10, NULL, 1},
    {"log1p", r_log1p, NULL, 1},
    {"asin", r_asin, NULL, 1},
    {"acos", r_acos, NULL, 1},
    {"atan", r_atan, NULL, 1},
    {"sinh", r_sinh, NULL, 1},
    {"cosh", r_cosh, NULL, 1},
    {"erf", r_erf, NULL, 2},
    {"silu", r_silu, NULL, 4},
    {"softplus", r_softplus, NULL, 4},
    {"tan", r_tan, NULL, 1},
    {"trunc", r_trunc, i_same, 0},
    {"frac", r_frac, NULL, 0},
    {"isnan", r_isnan, i_never, 0},
    {"isinf", r_isinf, i_never, 0},
    {"isfinite", r_isfinite, i_always, 0},
    {"fmod", r_fmod, i_fmod, 0},
    {"floor_divide", r_floor_divide, i_floor_divide, 1},
    {"atan2", r_atan2, NULL, 1},
    {"logical_and", r_and, i_and, 0},
    {"logical_or", r_or, i_or, 0},
    {"logical_xor", r_xor, i_xor, 0},
    {"bitwise_and", NULL, i_bits_and, 0},
    {"bitwise_or", NULL, i_bits_or, 0},
    {"bitwise_xor", NULL, i_bits_xor, 0},
    {"bitwise_not", NULL, i_invert, 0},
    {"bitwise_left_shift", NULL, i_shift_left, 0},
    {"bitwise_right_shift", NULL, i_shift_right, 0},
    {"leaky_relu", r_leaky, NULL, 1},
    {"elu", r_elu, NULL, 2},
    {"masked_fill", r_where, i_where, 0},
};
enum { REFERENCES = sizeof references / sizeof *references };

static bool takes(const mr_op *op, mr_dtype dtype) {
    static const uint8_t bit[] = {MR_TAKES_BOOL, MR_TAKES_INTEGER, MR_TAKES_FLOAT};
    return op->dtypes & bit[mr_dtype_category(dtype)];
}

static bool selects(const mr_op *op) {
    return strcmp(op->name, "where") == 0 || strcmp(op->name, "masked_fill") == 0;
}

static bool is_elementwise(const mr_op *op) {
    return op->family->id <= MR_FAMILY_TERNARY;
}

static void every_row_has_a_reference(void **state) {
    (void)state;
    for (int i = MR_OP_FIRST; i < MR_OP_COUNT; i++) {
        if (!is_elementwise(&mr_ops[i])) continue;
        bool found = false;
        for (int k = 0; k < REFERENCES; k++)
            found |= strcmp(references[k].name, mr_ops[i].name) == 0;
        if (!found) fail_msg("the row `%s` has no reference", mr_ops[i].name);
    }
}

/* Halves: the result of f32, which may be off by `ulps` of f32 and by `slack`, is rounded once. */
static void check_half(const char *name, mr_dtype dtype, double expected, double got, double ulps,
                       double slack, const mr_scalar *in) {
    float size = fabsf((float)expected);
    slack += isfinite(size) ? ulps * (double)(nextafterf(size, INFINITY) - size) : 0;
    if (isinf(expected) || is_rounded(dtype, expected, slack, got)) {
        /* An infinity of the reference is one of f32 also where only the computation on the way overflows. */
        if (!isinf(expected) || fabs(got) > 3.38e38 || (dtype == MR_F16 && isinf(got))) return;
    }
    fail_msg("%s(%g, %g, %g) in %s is %.9g, not %.9g", name, in[0].f, in[1].f, in[2].f,
             mr_dtype_text(dtype), got, naive_rounded(dtype, expected));
}

static void check_float(const char *name, mr_dtype dtype, double expected, double got, double ulps,
                        const mr_scalar *in) {
    if (dtype == MR_F32) expected = (double)(float)expected;
    if (isnan(expected) && isnan(got)) return;
    if (expected == got) return;
    double unit = dtype == MR_F32
                      ? nextafterf(fabsf((float)expected), INFINITY) - fabsf((float)expected)
                      : nextafter(fabs(expected), INFINITY) - fabs(expected);
    /* A value at the end of the range may fall on either side of it. */
    if (isinf(expected) && fabs(got) > (dtype == MR_F32 ? 3.4e38 : 1.79e308)) return;
    if (fabs(expected - got) <= ulps * unit) return;
    /* What underflows may be flushed to 0. */
    if (ulps > 0 && fabs(expected - got) < (dtype == MR_F32 ? 0x1p-126 : 0x1p-1022)) return;
    fail_msg("%s(%g, %g, %g) in %s is %.9g, not %.9g", name, in[0].f, in[1].f, in[2].f,
             mr_dtype_text(dtype), got, expected);
}

static void check_result(int k, const mr_op *op, mr_dtype computed, const mr_tensor *const *inputs,
                         int count, const mr_tensor *out) {
    for (int64_t i = 0; i < out->numel; i++) {
        mr_scalar in[3] = {{0}};
        for (int j = 0; j < count; j++) in[j] = get(inputs[j], i);
        mr_scalar got = get(out, i);
        if (mr_dtype_category(computed) == 2) {
            double v[3];
            for (int j = 0; j < 3; j++)
                v[j] = computed != MR_F64 ? (double)(float)in[j].f : in[j].f;
            double expected = references[k].real(v[0], v[1], v[2]);
            /* The cancelled terms of lerp and the like are as large as the operands. */
            double ulps = references[k].ulps, slack = 0;
            if (strcmp(op->name, "lerp") == 0) {
                double size = fmax(fabs(v[0]), fabs(v[1])) * (1 + fabs(v[2]));
                slack = size * (computed != MR_F64 ? 1e-6 : 1e-14);
                if (!isfinite(size) || size > (computed != MR_F64 ? 1e38 : 1e307)) continue;
            }
            if (mr_dtype_is_half(computed) && op->result != MR_RESULT_BOOL)
                check_half(op->name, computed, expected, got.f, ulps, slack, in);
            else if (!(fabs(expected - got.f) <= slack))
                check_float(op->name, computed, expected, got.f, ulps, in);
        } else {
            wide expected = references[k].integer(in[0].i, in[1].i, in[2].i);
            uint8_t bytes[8];
            /* Wraps to the type; for bool, not 0. */
            mr_scalar wrapped = {.is_integer = true,
                                 .i = (int64_t)(uint64_t)(unsigned __int128)expected};
            if (computed == MR_BOOL)
                wrapped.i = strcmp(op->name, "bitwise_not") == 0 ? !in[0].i : expected != 0;
            mr_dtype_store((mr_dtype)out->dtype, bytes, wrapped);
            int64_t want = mr_dtype_load((mr_dtype)out->dtype, bytes).i;
            if (want != got.i)
                fail_msg("%s(%lld, %lld, %lld) in %s is %lld, not %lld", op->name,
                         (long long)in[0].i, (long long)in[1].i, (long long)in[2].i,
                         mr_dtype_text(computed), (long long)got.i, (long long)want);
        }
    }
}

/* One operation on these inputs: on the host, then on the device in slices, then in place. */
static void check_call(int k, const mr_op *op, mr_dtype computed, mr_tensor **inputs, int count) {
    mr_call call = {.in_count = count};
    for (int j = 0; j < count; j++) call.in[j].tensor = inputs[j];
    mr_tensor *host = run_call(op->name, &call);
    const mr_tensor *shown[3];
    for (int j = 0; j < count; j++) shown[j] = inputs[j];
    check_result(k, op, computed, shown, count, host);

    mr_tensor *device_inputs[3];
    for (int j = 0; j < count; j++) {
        device_inputs[j] = copy_in(inputs[j], MR_MEMORY_DEVICE);
        call.in[j].tensor = device_inputs[j];
    }
    mr_tensor *device = run_call(op->name, &call);
    if (!same_bits(host, device))
        fail_msg("%s in %s: slices change the result", op->name, mr_dtype_text(computed));

    if (host->dtype == inputs[0]->dtype && !mr_tensor_self_overlaps(device_inputs[0])) {
        call.out = device_inputs[0];
        call.in_place = true;
        mr_tensor *same = run_call(op->name, &call);
        assert_ptr_equal(same, device_inputs[0]);
        if (!same_bits(host, same))
            fail_msg("%s_ in %s: in place it gives another result", op->name,
                     mr_dtype_text(computed));
    }
    for (int j = 0; j < count; j++) drop(device_inputs[j]);
    drop(device);
    drop(host);
}

static const struct {
    int ndim;
    int64_t shape[4];
} shapes[] = {{0, {0}},      {1, {1}},      {1, {0}},       {1, {1300}},
              {2, {37, 41}}, {2, {5, 200}}, {3, {4, 0, 3}}, {4, {2, 3, 5, 7}}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void rows_agree_with_their_references(void **state) {
    (void)state;
    for (int k = 0; k < REFERENCES; k++) {
        const mr_op *op = mr_op_find(references[k].name);
        for (int d = 0; d < MR_DTYPE_COUNT; d++) {
            if (!takes(op, (mr_dtype)d)) continue;
            mr_dtype computed = op->result == MR_RESULT_FLOAT && mr_dtype_category((mr_dtype)d) < 2
                                    ? MR_F32
                                    : (mr_dtype)d;
            for (int s = 0; s < SHAPES; s++) {
                for (int how = 0; how < LAYOUTS; how++) {
                    mr_tensor *in[3];
                    for (int j = 0; j < op->inputs; j++) {
                        mr_dtype own = selects(op) && j == 0 ? MR_BOOL : (mr_dtype)d;
                        layout one = (layout)(j == 0 ? how : (int)random_below(LAYOUTS));
                        in[j] = make_laid_out(MR_MEMORY_PAGEABLE, own, shapes[s].ndim,
                                              shapes[s].shape, one);
                        fill_random(in[j]);
                    }
                    check_call(k, op, computed, in, op->inputs);
                    for (int j = 0; j < op->inputs; j++) drop(in[j]);
                }
            }
        }
    }
}

static void shapes_broadcast(void **state) {
    (void)state;
    static const struct {
        int na, nb, n;
        int64_t a[4], b[4], out[4];
    } cases[] = {
        {2, 1, 2, {3, 4}, {4}, {3, 4}},
        {2, 2, 2, {3, 1}, {1, 4}, {3, 4}},
        {0, 2, 2, {0}, {2, 3}, {2, 3}},
        {1, 3, 3, {5}, {2, 1, 1}, {2, 1, 5}},
        {2, 2, 2, {300, 200}, {1, 200}, {300, 200}},
        {2, 2, 2, {300, 200}, {300, 1}, {300, 200}},
        {3, 2, 3, {2, 1, 3}, {0, 3}, {2, 0, 3}},
        {1, 1, 1, {1}, {700}, {700}},
    };
    const mr_op *sub = mr_op_find("sub");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_tensor *a = make(MR_F32, cases[i].na, cases[i].a),
                  *b = make(MR_F32, cases[i].nb, cases[i].b);
        fill_random(a);
        fill_random(b);
        mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = 2};
        mr_tensor *out = run_call(sub->name, &call);
        assert_int_equal(out->ndim, cases[i].n);
        for (int d = 0; d < out->ndim; d++) assert_int_equal(out->shape[d], cases[i].out[d]);
        mr_tensor *wide_a, *wide_b;
        expect_ok(mr_tensor_expand(&caller, a, out->ndim, out->shape, &wide_a));
        expect_ok(mr_tensor_expand(&caller, b, out->ndim, out->shape, &wide_b));
        for (int64_t j = 0; j < out->numel; j++) {
            float expected = (float)f64_at(wide_a, j) - (float)f64_at(wide_b, j),
                  got = (float)f64_at(out, j);
            assert_true(expected == got || (isnan(expected) && isnan(got)));
        }
        drop(wide_a);
        drop(wide_b);
        drop(out);
        drop(a);
        drop(b);
    }
}

static void dtypes_promote(void **state) {
    (void)state;
    for (int da = 0; da < MR_DTYPE_COUNT; da++) {
        for (int db = 0; db < MR_DTYPE_COUNT; db++) {
            mr_tensor *a = make(da, SHAPE(40)),
                      *b = make_laid_out(MR_MEMORY_PAGEABLE, db, SHAPE(40), STEPPED);
            fill_random(a);
            fill_random(b);
            mr_call call = {.in = {{.tensor = a}, {.tensor = b}}, .in_count = 2};
            mr_tensor *out = run_call("maximum", &call);
            mr_dtype common = mr_dtype_promote(da, db);
            assert_int_equal(out->dtype, common);
            for (int64_t i = 0; i < 40; i++) {
                uint8_t bytes[8];
                mr_dtype_store(common, bytes, get(a, i));
                mr_scalar x = mr_dtype_load(common, bytes);
                mr_dtype_store(common, bytes, get(b, i));
                mr_scalar y = mr_dtype_load(common, bytes), got = get(out, i);
                if (mr_dtype_category(common) == 2)
                    assert_true(got.f == r_max(x.f, y.f, 0) ||
                                (isnan(got.f) && isnan(r_max(x.f, y.f, 0))));
                else assert_true(got.i == (x.i > y.i ? x.i : y.i));
            }
            drop(out);
            drop(a);
            drop(b);
        }
    }
}

static mr_scalar first_of(const char *op, mr_value x, mr_value y, mr_dtype expected) {
    mr_call call = {.in = {x, y}, .in_count = 2};
    mr_tensor *out = run_call(op, &call);
    assert_int_equal(out->dtype, expected);
    mr_scalar v = get(out, 0);
    drop(out);
    return v;
}
#define T(t) ((mr_value){.tensor = (t)})
#define N(v) ((mr_value){.scalar = (v)})

static void numbers_beside_tensors(void **state) {
    (void)state;
    mr_tensor *u = make(MR_U8, SHAPE(2)), *i = make(MR_I32, SHAPE(2)), *f = make(MR_F32, SHAPE(2)),
              *b = make(MR_BOOL, SHAPE(2));
    set(u, 0, whole(200)), set(i, 0, whole(7)), set(f, 0, real(0.25)), set(b, 0, whole(1));
    set(u, 1, whole(1)), set(i, 1, whole(1)), set(f, 1, real(1)), set(b, 1, whole(0));
    assert_int_equal(first_of("add", T(u), N(whole(300)), MR_U8).i, (200 + 300) & 255);
    assert_true(first_of("add", T(i), N(real(1.5)), MR_F32).f == 8.5);
    assert_true(first_of("sub", N(whole(2)), T(f), MR_F32).f == 1.75);
    assert_true(first_of("div", T(i), N(whole(2)), MR_F32).f == 3.5);
    assert_int_equal(first_of("add", T(b), N(whole(5)), MR_I64).i, 6);
    assert_int_equal(first_of("pow", T(i), N(whole(2)), MR_I32).i, 49);
    assert_int_equal(first_of("pow", N(whole(2)), T(i), MR_I32).i, 128);
    assert_int_equal(first_of("lt", T(u), N(whole(300)), MR_BOOL).i, 1);
    assert_int_equal(first_of("gt", T(u), N(whole(-1)), MR_BOOL).i, 1);
    mr_call call = {.in = {T(i), N(whole(-2))}, .in_count = 2};
    expect_error(try_call("pow", &call), MR_CODE_INVALID_ARGUMENT, "negative power");
    mr_call clamp = {.in = {T(u), N(whole(10)), N(whole(100))}, .in_count = 3};
    mr_tensor *out = run_call("clamp", &clamp);
    assert_int_equal(get(out, 0).i, 100);
    assert_int_equal(get(out, 1).i, 10);
    drop(out);
    mr_call where = {.in = {T(b), N(whole(1)), N(real(0.5))}, .in_count = 3};
    out = run_call("where", &where);
    assert_int_equal(out->dtype, MR_F32);
    assert_true(f64_at(out, 0) == 1 && f64_at(out, 1) == 0.5);
    drop(out);
    drop(u), drop(i), drop(f), drop(b);
}

static void out_is_written_in_its_own_dtype_and_layout(void **state) {
    (void)state;
    mr_tensor *a = make(MR_F32, SHAPE(30, 50)), *b = make(MR_F32, SHAPE(30, 50));
    fill_random(a);
    fill_random(b);
    for (int how = DENSE; how < EXPANDED; how++) {
        mr_tensor *out = make_laid_out(MR_MEMORY_PAGEABLE, MR_F64, SHAPE(30, 50), (layout)how);
        mr_call call = {.in = {T(a), T(b)}, .in_count = 2, .out = out};
        run_call("add", &call);
        for (int64_t i = 0; i < out->numel; i++) {
            float want = (float)f64_at(a, i) + (float)f64_at(b, i);
            assert_true(f64_at(out, i) == (double)want || isnan(want));
        }
        drop(out);
    }
    drop(a);
    drop(b);
}

static bool same_value(double a, double b) { /* and the same zero */
    return (a == b && signbit(a) == signbit(b)) || (isnan(a) && isnan(b));
}

/* Larger than the tiles in which such operands are transposed, and not a multiple of them. Two matrices, so that a row
 * of the one is followed by a row of the next. */
static void transposed_operands_of_all_sizes(void **state) {
    (void)state;
    static const mr_dtype dtypes[] = {MR_U8, MR_F16, MR_F32, MR_F64};
    for (int round = 0; round < 24; round++) {
        mr_dtype dtype = dtypes[round % 4];
        int64_t m = 1 + random_below(90),
                n = round % 3 ? 64 + random_below(100) : 1 + random_below(70);
        mr_tensor *base = make_on(MR_MEMORY_DEVICE, 0, dtype, SHAPE(2, n, m)), *x;
        mr_tensor *y = make_on(MR_MEMORY_DEVICE, 0, dtype, SHAPE(2, m, n));
        mr_tensor *copied = make_on(MR_MEMORY_DEVICE, 0, dtype, SHAPE(2, m, n));
        fill_random(base);
        fill_random(y);
        expect_ok(
            mr_tensor_view(&caller, base, dtype, SHAPE(2, m, n), (int64_t[]){m * n, 1, m}, 0, &x));
        mr_call call = {.in = {T(x), T(y)}, .in_count = 2};
        mr_tensor *larger = run_call("maximum", &call);
        expect_ok(mr_copy(&caller, copied, x, NULL, false));
        for (int64_t i = 0; i < y->numel; i++) {
            int64_t from = i / (m * n) * m * n + i % n * m + i / n % m;
            double a = f64_at(base, from), b = f64_at(y, i), got = f64_at(larger, i);
            assert_true(same_value(f64_at(copied, i), a));
            assert_true(same_value(got, r_max(a, b, 0)));
        }
        drop(base), drop(x), drop(y), drop(larger), drop(copied);
    }
}

/* Blocks of powers without a special case have a loop of their own: the values are those of one element. */
static void powers_do_not_depend_on_their_neighbours(void **state) {
    (void)state;
    static const float specials[] = {0, -0.0f, INFINITY,  -INFINITY, NAN,
                                     1, -1,    0x1p-149f, 0x1p22f,   0x1p24f};
    enum { N = 1400, SPECIALS = sizeof specials / sizeof *specials };
    for (int round = 0; round < 12; round++) {
        mr_tensor *x = make(MR_F32, SHAPE(N)), *y = make(MR_F32, SHAPE(N));
        for (int64_t i = 0; i < N; i++) {
            set(x, i, real(ldexp((double)(random_below(2001) - 1000), (int)random_below(40) - 30)));
            set(y, i, real((double)(random_below(41) - 20) * (round % 2 ? 0.5 : 1)));
        }
        for (int k = 0; k < round; k++) { /* the first blocks may be left without */
            set(x, N - 1 - random_below(N * (round + 1) / 12),
                real(specials[random_below(SPECIALS)]));
            set(y, N - 1 - random_below(N * (round + 1) / 12),
                real(specials[random_below(SPECIALS)]));
        }
        mr_call both = {.in = {T(x), T(y)}, .in_count = 2};
        mr_tensor *power = run_call("pow", &both);
        for (int64_t i = 0; i < N; i++) {
            float a = (float)f64_at(x, i), b = (float)f64_at(y, i);
            assert_true(same_value(f64_at(power, i), (double)mr_pow_f32(a, b)));
        }
        drop(power);
        double numbers[] = {2, 3, -1, 0.5, 2.5, NAN};
        for (int k = 0; k < 6; k++) {
            mr_call fixed = {.in = {T(x), N(real(numbers[k]))}, .in_count = 2};
            power = run_call("pow", &fixed);
            for (int64_t i = 0; i < N; i++)
                assert_true(same_value(f64_at(power, i),
                                       (double)mr_pow_f32((float)f64_at(x, i), (float)numbers[k])));
            drop(power);
        }
        drop(x), drop(y);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_a_reference),
        cmocka_unit_test(rows_agree_with_their_references),
        cmocka_unit_test(shapes_broadcast),
        cmocka_unit_test(dtypes_promote),
        cmocka_unit_test(numbers_beside_tensors),
        cmocka_unit_test(out_is_written_in_its_own_dtype_and_layout),
        cmocka_unit_test(transposed_operands_of_all_sizes),
        cmocka_unit_test(powers_do_not_depend_on_their_neighbours),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
