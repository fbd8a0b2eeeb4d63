/* The operation table: one row for each operation. The CPU loops of every dtype, the entry of mr_ops[],
 * the Lua method with its in-place and out= forms, and the reference page are made from the row.
 *
 * A row of the elementwise families:
 *
 *     X(name, dtypes, result, flops, expression)
 *
 * dtypes      the types that loops are made for: FLOATS (f32 f64), NUMBERS (and u8 i32 i64), ALL (and
 *             bool, whose results are made 0 or 1); INTEGERS (u8 i32 i64), WHOLE (and bool)
 * result      SAME: as computed; FLOAT: other types are first made f32; BOOL
 * flops       an element, for the cost model
 * expression  of a (b, c): the inputs, all of type T. It is compiled as C here and as CUDA for a GPU: the
 *             mr_... functions that it calls are those of expr.h, which exist there with the same names.
 *
 * A new operation of these families is a row here, its name in ids.h and its text in help.h. */
#ifndef MR_OPS_TABLE_H
#define MR_OPS_TABLE_H

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

#define MR_BINARY_TABLE(X) \
    X(add,         ALL,     SAME,  1, mr_add(a, b)) \
    X(sub,         NUMBERS, SAME,  1, mr_sub(a, b)) \
    X(mul,         ALL,     SAME,  1, mr_mul(a, b)) \
    X(div,         FLOATS,  FLOAT, 4, a / b) \
    X(maximum,     ALL,     SAME,  1, mr_maximum(a, b)) \
    X(minimum,     ALL,     SAME,  1, mr_minimum(a, b)) \
    X(relu_backward,    FLOATS, FLOAT, 1, b <= 0 ? 0 : a) \
    X(tanh_backward,    FLOATS, FLOAT, 4, a * (1 - mr_abs(b)) * (1 + mr_abs(b))) \
    X(sigmoid_backward, FLOATS, FLOAT, 3, a * (b < (T)0.5 ? b : 1 - b) * (b < (T)0.5 ? 1 - b : b)) \
    X(atan2,       FLOATS,  FLOAT, 16, mr_atan2(a, b)) \
    X(bitwise_and, WHOLE,   SAME,  1, a & b) \
    X(bitwise_or,  WHOLE,   SAME,  1, a | b) \
    X(bitwise_xor, WHOLE,   SAME,  1, a ^ b) \
    X(bitwise_left_shift, INTEGERS, SAME, 1, mr_shift_left(a, b)) \
    X(bitwise_right_shift, INTEGERS, SAME, 1, mr_shift_right(a, b))

/* As binary. The second input is a parameter: a number or a tensor, which may be left out. Its name and its default
 * come last. */
#define MR_ACTIVATION_TABLE(X) \
    X(leaky_relu,  FLOATS,  FLOAT, 2, a > 0 ? a : a * b,      "slope", 0.01) \
    X(elu,         FLOATS,  FLOAT, 10, a > 0 ? a : b * mr_expm1(a), "alpha", 1)

/* Like binary; floats have loops of their own in binary.c. */
#define MR_POWER_TABLE(X) \
    X(pow,         NUMBERS, SAME,  16, mr_pow(a, b))

/* Like binary. For floats there is a second expression that the compiler can vectorize; it gives the same value where
 * mr_quotient_is_near(a, b). */
#define MR_DIVISION_TABLE(X) \
    X(remainder,   NUMBERS, SAME,  8, mr_remainder(a, b), mr_remainder_near(a, b)) \
    X(fmod,        NUMBERS, SAME,  8, mr_fmod(a, b), mr_fmod_near(a, b)) \
    X(floor_divide, NUMBERS, SAME, 8, mr_floor_divide(a, b), mr_floor_divide_near(a, b))

#define MR_COMPARE_TABLE(X) \
    X(eq,          ALL,     BOOL,  1, a == b) \
    X(ne,          ALL,     BOOL,  1, a != b) \
    X(lt,          ALL,     BOOL,  1, a < b) \
    X(le,          ALL,     BOOL,  1, a <= b) \
    X(gt,          ALL,     BOOL,  1, a > b) \
    X(ge,          ALL,     BOOL,  1, a >= b) \
    X(logical_and, ALL,     BOOL,  1, (a != 0) & (b != 0)) \
    X(logical_or,  ALL,     BOOL,  1, (a != 0) | (b != 0)) \
    X(logical_xor, ALL,     BOOL,  1, (a != 0) ^ (b != 0))

/* These rows also have the names of the inputs after the first, for the usage line. The last two fields are the rows
 * that run when only the second or only the third input is given (NONE: both must be). */
#define MR_TERNARY_TABLE(X) \
    X(clamp,       NUMBERS, SAME,  2, mr_minimum(mr_maximum(a, b), c), "least, greatest", maximum, minimum) \
    X(lerp,        FLOATS,  FLOAT, 4, c < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c), "y, w", NONE, NONE)

/* Ternary with a bool `a`. */
#define MR_SELECT_TABLE(X) \
    X(where,       ALL,     SAME,  1, a ? b : c,              "y, z")

/* Like select; the third input is the tensor that is written in place. */
#define MR_MASKED_TABLE(X) \
    X(masked_fill, ALL,     SAME,  1, a ? b : c,              "x:masked_fill(mask, value [, {out=}]) -> tensor")

/* X(name, dtypes of the output, forms, numbers, flops, generator, usage). numbers: those that a call of the
 * in-place form gives, as (how many it must give, how many it may give, what the latter are otherwise). */
#define MR_FILL_TABLE(X) \
    X(fill,        ALL,     INPLACE, (1, 0, 0),    0, mr_gen_fill,     "x:fill_(value) -> x") \
    X(zero,        ALL,     INPLACE, (0, 0, 0),    0, mr_gen_zero,     "x:zero_() -> x") \
    X(arange,      ALL,     NONE,    (0, 0, 0),    1, mr_gen_arange,   "mr.arange([start,] stop [, step [, options]]) -> tensor") \
    X(linspace,    ALL,     NONE,    (0, 0, 0),    2, mr_gen_linspace, "mr.linspace(first, last, count [, options]) -> tensor") \
    X(eye,         ALL,     NONE,    (0, 0, 0),    1, mr_gen_eye,      "mr.eye(rows [, columns [, options]]) -> tensor")

#define MR_RANDOM_TABLE(X) \
    X(uniform,     FLOATS,  INPLACE, (0, 2, 0, 1), 12, mr_gen_uniform,   "x:uniform_([low, high]) -> x") \
    X(normal,      FLOATS,  INPLACE, (0, 2, 0, 1), 24, mr_gen_normal,    "x:normal_([mean, std]) -> x") \
    X(bernoulli,   ALL,     INPLACE, (0, 1, 0.5),  12, mr_gen_bernoulli, "x:bernoulli_([p]) -> x") \
    X(randint,     ALL,     NONE,    (0, 0, 0),    12, mr_gen_randint,   "mr.randint([low,] high, shape [, options]) -> tensor")

/* X(name, dtypes taken, result, flops, rules, positions, of two, options). fold.c has the code that combines the
 * elements. positions: the row of the second result, which says where the first one was found. of two: the row that
 * runs when two tensors are given. NONE: there is none. */
#define MR_REDUCE_TABLE(X) \
    X(sum,         ALL,     SUM,   1, 0,               NONE, NONE, "out=") \
    X(mean,        ALL,     FLOAT, 1, 0,               NONE, NONE, "out=") \
    X(prod,        ALL,     SUM,   1, 0,               NONE, NONE, "out=") \
    X(max,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmax, maximum, "out=") \
    X(min,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmin, minimum, "out=") \
    X(any,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=") \
    X(all,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=") \
    X(argmax,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=") \
    X(argmin,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=") \
    X(norm,        ALL,     FLOAT, 2, 0,               NONE, NONE, "p=2, out=") \
    X(var,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=") \
    X(std,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=")

/* X(name, flops, kept, norm, result), along one dim, in f32 or f64. For an element x, d is x -
 * max and e is exp(d); one of these is kept as k. s is the sum of all e, in double, and n the
 * norm. The result is made of k and n. Subtracting the greatest element changes nothing and lets
 * nothing overflow. */
#define MR_SOFTMAX_TABLE(X) \
    X(softmax,     12, e, 1 / s,     k * n) \
    X(log_softmax, 12, d, mr_log(s), k - n)

/* X(name, inputs, forms, items, run, state_bytes, usage): index.c has what they do. Indices count from 1. */
#define MR_INDEX_TABLE(X) \
    X(index_select, 2, RESULT,  mr_elementwise_items, mr_pick_run, NULL,  "x:index_select(dim, index [, {out=}]) -> tensor") \
    X(gather,       2, RESULT,  mr_elementwise_items, mr_pick_run, NULL,  "x:gather(dim, index [, {out=}]) -> tensor") \
    X(embedding,    2, FUNCTION, mr_elementwise_items, mr_pick_run, NULL, "mr.embedding(index, table [, {out=}]) -> tensor") \
    X(scatter,      3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:scatter_(dim, index, source) -> x") \
    X(scatter_add,  3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:scatter_add_(dim, index, source) -> x") \
    X(index_add,    3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:index_add_(dim, index, source) -> x")

/* X(name, flops), along one dim. */
#define MR_SCAN_TABLE(X) \
    X(cumsum,  1) \
    X(cumprod, 1)

/* X(name, usage) */
#define MR_SORT_TABLE(X) \
    X(sort,    "x:sort([dim [, descending]] [, {dim=, descending=}]) -> values, positions") \
    X(argsort, "x:argsort([dim [, descending]] [, {dim=, descending=}]) -> positions") \
    X(topk,    "x:topk(k [, dim [, largest]] [, {dim=, largest=}]) -> values, positions")

/* X(name, usage) */
#define MR_MOVE_TABLE(X) \
    X(flip, "x:flip(dims... [, {out=}]) -> tensor") \
    X(roll, "x:roll(shifts [, dims]) -> tensor") \
    X(tril, "x:tril([k] [, {out=}]) -> tensor") \
    X(triu, "x:triu([k] [, {out=}]) -> tensor")

/* X(name, inputs, usage) */
#define MR_COMPACT_TABLE(X) \
    X(nonzero,       1, "x:nonzero() -> positions") \
    X(masked_select, 2, "x:masked_select(mask) -> tensor")

/* X(name, rules) */
#define MR_MATMUL_TABLE(X) \
    X(matmul,      0) \
    X(mm,          MR_RANKS(2, 2)) \
    X(mv,          MR_RANKS(2, 1)) \
    X(dot,         MR_RANKS(1, 1)) \
    X(bmm,         MR_RANKS(3, 3))

/* X(name, family, inputs, dtypes, flops, items, run, state_bytes, cost, usage): rows with bodies of their own. */
#define MR_OTHER_TABLE(X) \
    X(randperm, RANDOM,   0, NUMBERS, 64, mr_randperm_items,    mr_randperm_run, mr_randperm_state_bytes, mr_elementwise_cost, "mr.randperm(n [, options]) -> tensor") \
    X(copy,     COPY,     1, ALL,     0,  mr_elementwise_items, mr_copy_run,     NULL,                    mr_elementwise_cost, "x:copy_(y [, {non_blocking=}]) -> x") \
    X(memset,   BYTES,    0, ALL,     0,  mr_bytes_items,       mr_bytes_run,    NULL,                    mr_elementwise_cost, "mr.memset(x, byte)") \
    X(op,       ABSTRACT, 0, ALL,     0,  mr_abstract_items,    mr_abstract_run, NULL,                    mr_abstract_cost,    "mr.op{name=, reads=, writes=, ms=, stream=, blocks=}") \
    X(spin,     ABSTRACT, 0, ALL,     0,  mr_spin_items,        mr_spin_run,     NULL,                    mr_abstract_cost,    "mr.spin{ms=, stream=}")

/* X(name, family, inputs, forms, items, run, cost, usage): operations of neural networks, in floats. */
#define MR_NETWORK_TABLE(X) \
    X(conv2d,        CONV, 2, RESULT,   mr_conv_items,        mr_conv_run,        mr_conv_cost,        "x:conv2d(w [, bias] [, {bias=, stride=, padding=, dilation=, groups=}]) -> tensor") \
    X(conv2d_input,  CONV, 2, FUNCTION, mr_conv_items,        mr_conv_run,        mr_conv_cost,        "mr.conv2d_input(input_shape, w, gradient [, {stride=, padding=, dilation=, groups=}]) -> tensor") \
    X(conv2d_weight, CONV, 2, FUNCTION, mr_conv_weight_items, mr_conv_weight_run, mr_conv_weight_cost, "mr.conv2d_weight(x, weight_shape, gradient [, {stride=, padding=, dilation=, groups=}]) -> tensor") \
    X(max_pool2d,          POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:max_pool2d(size [, {stride=size, padding=, dilation=, ceil_mode=, return_indices=}]) -> tensor [, positions]") \
    X(max_pool2d_backward, POOL, 2, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.max_pool2d_backward(input_shape, gradient, positions, size [, {stride=size, padding=, dilation=, ceil_mode=}]) -> tensor") \
    X(avg_pool2d,          POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:avg_pool2d(size [, {stride=size, padding=, ceil_mode=, count_include_pad=true, divisor_override=}]) -> tensor") \
    X(avg_pool2d_backward, POOL, 1, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.avg_pool2d_backward(input_shape, gradient, size [, {stride=size, padding=, ceil_mode=, count_include_pad=true, divisor_override=}]) -> tensor") \
    X(adaptive_avg_pool2d, POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:adaptive_avg_pool2d(size) -> tensor") \
    X(adaptive_avg_pool2d_backward, POOL, 1, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.adaptive_avg_pool2d_backward(input_shape, gradient) -> tensor") \
    X(nll_loss,            LOSS, 2, RESULT,   mr_loss_items, mr_loss_run, mr_loss_cost, "x:nll_loss(target [, {weight=, ignore_index=-100, reduction=\"mean\", return_total_weight=}]) -> tensor") \
    X(nll_loss_backward,   LOSS, 2, FUNCTION, mr_loss_items, mr_loss_run, mr_loss_cost, "mr.nll_loss_backward(input_shape, gradient, target [, {weight=, ignore_index=-100, reduction=\"mean\", total_weight=}]) -> tensor")

/* X(name, states, flops, usage): steps of optimisers, see optimise.h. step.h has what they do to an element. gather_grads
 * has their form: its parameters are views of a bucket, which get the values of the gradients. */
#define MR_OPTIMISE_TABLE(X) \
    X(sgd_step,      0, 4, "optimiser:step()") \
    X(momentum_step, 1, 8, "optimiser:step()") \
    X(adam_step,     2, 18, "optimiser:step()") \
    X(rmsprop_step,  1, 12, "optimiser:step()") \
    X(rmsprop_momentum_step, 2, 14, "optimiser:step()") \
    X(gather_grads,  0, 0, "mr.nn.parallel.DistributedDataParallel(net)")

/* name, usage */
#define MR_KERNEL_TABLE(X) \
    X(kernel, "k[{grid, block, shared, stream}](...)")
// clang-format on

/* All rows, for macros that need only the name: X(name, ...). */
#define MR_OP_TABLE(X)                                                                             \
    MR_UNARY_TABLE(X)                                                                              \
    MR_RANGED_TABLE(X)                                                                             \
    MR_BINARY_TABLE(X)                                                                             \
    MR_DIVISION_TABLE(X)                                                                           \
    MR_POWER_TABLE(X)                                                                              \
    MR_ACTIVATION_TABLE(X)                                                                         \
    MR_COMPARE_TABLE(X)                                                                            \
    MR_TERNARY_TABLE(X)                                                                            \
    MR_SELECT_TABLE(X)                                                                             \
    MR_MASKED_TABLE(X)                                                                             \
    MR_FILL_TABLE(X)                                                                               \
    MR_RANDOM_TABLE(X)                                                                             \
    MR_REDUCE_TABLE(X)                                                                             \
    MR_SOFTMAX_TABLE(X)                                                                            \
    MR_INDEX_TABLE(X)                                                                              \
    MR_SCAN_TABLE(X)                                                                               \
    MR_SORT_TABLE(X)                                                                               \
    MR_MOVE_TABLE(X)                                                                               \
    MR_COMPACT_TABLE(X)                                                                            \
    MR_MATMUL_TABLE(X)                                                                             \
    MR_OTHER_TABLE(X)                                                                              \
    MR_NETWORK_TABLE(X)                                                                            \
    MR_OPTIMISE_TABLE(X)                                                                           \
    MR_KERNEL_TABLE(X)

#endif
