/* Rows of the unary operations: see table.h. */
#ifndef MR_OPS_TABLE_UNARY_H
#define MR_OPS_TABLE_UNARY_H

// clang-format off
#define MR_UNARY_TABLE(X) \
    X(neg,         NUMBERS, SAME,  1, mr_neg(a)) \
    X(abs,         ALL,     SAME,  1, mr_abs(a)) \
    X(sign,        ALL,     SAME,  2, (a > 0) - mr_below_zero(a)) \
    X(exp,         FLOATS,  FLOAT, 8, mr_exp(a)) \
    X(log,         FLOATS,  FLOAT, 8, mr_log(a)) \
    X(sqrt,        FLOATS,  FLOAT, 4, mr_sqrt(a)) \
    X(rsqrt,       FLOATS,  FLOAT, 8, 1 / mr_sqrt(a)) \
    X(tanh,        FLOATS,  FLOAT, 8, mr_tanh(a)) \
    X(sigmoid,     FLOATS,  FLOAT, 8, mr_sigmoid(a)) \
    X(relu,        NUMBERS, SAME,  1, mr_below_zero(a) ? 0 : a) \
    X(gelu,        FLOATS,  FLOAT, 12, mr_gelu(a)) \
    X(floor,       NUMBERS, SAME,  1, mr_floor(a)) \
    X(ceil,        NUMBERS, SAME,  1, mr_ceil(a)) \
    X(round,       NUMBERS, SAME,  1, mr_round(a)) \
    X(reciprocal,  FLOATS,  FLOAT, 4, 1 / a) \
    X(square,      ALL,     SAME,  1, mr_mul(a, a)) \
    X(logical_not, ALL,     BOOL,  1, a == 0) \
    X(exp2,        FLOATS,  FLOAT, 8, mr_exp2(a)) \
    X(expm1,       FLOATS,  FLOAT, 8, mr_expm1(a)) \
    X(log2,        FLOATS,  FLOAT, 8, mr_log2(a)) \
    X(log10,       FLOATS,  FLOAT, 8, mr_log10(a)) \
    X(log1p,       FLOATS,  FLOAT, 8, mr_log1p(a)) \
    X(asin,        FLOATS,  FLOAT, 8, mr_asin(a)) \
    X(acos,        FLOATS,  FLOAT, 8, mr_acos(a)) \
    X(atan,        FLOATS,  FLOAT, 8, mr_atan(a)) \
    X(sinh,        FLOATS,  FLOAT, 8, mr_sinh(a)) \
    X(cosh,        FLOATS,  FLOAT, 8, mr_cosh(a)) \
    X(erf,         FLOATS,  FLOAT, 8, mr_erf(a)) \
    X(trunc,       NUMBERS, SAME,  1, mr_trunc(a)) \
    X(frac,        FLOATS,  SAME,  2, a - mr_trunc(a)) \
    X(silu,        FLOATS,  FLOAT, 9, mr_silu(a)) \
    X(softplus,    FLOATS,  FLOAT, 16, a > 20 ? a : mr_log1p(mr_exp(a))) \
    X(isnan,       ALL,     BOOL,  1, mr_is_nan(a)) \
    X(isinf,       ALL,     BOOL,  1, mr_is_inf(a)) \
    X(isfinite,    ALL,     BOOL,  1, !mr_is_nan(a - a)) \
    X(bitwise_not, WHOLE,   SAME,  1, ~a)

/* Like unary, with a second expression that the compiler can vectorize. It gives the same value where the
 * condition after it holds. */
#define MR_RANGED_TABLE(X) \
    X(sin,         FLOATS,  FLOAT, 8, mr_sin(a), mr_sin_near(a), mr_is_near(a)) \
    X(cos,         FLOATS,  FLOAT, 8, mr_cos(a), mr_cos_near(a), mr_is_near(a)) \
    X(tan,         FLOATS,  FLOAT, 8, mr_tan(a), mr_tan_near(a), mr_is_near(a))
// clang-format on

#endif
