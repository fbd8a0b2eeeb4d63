/* The operation table: one row for each operation. The CPU loops of every dtype, the entry of mr_ops[],
 * the Lua method with its in-place and out= forms, and the reference page are made from the row.
 *
 * A row of the elementwise families:
 *
 *     X(name, dtypes, result, flops, expression, help)
 *
 * dtypes      the types that loops are made for: FLOATS (f32 f64), NUMBERS (and u8 i32 i64), ALL (and
 *             bool, whose results are made 0 or 1); INTEGERS (u8 i32 i64), WHOLE (and bool)
 * result      SAME: as computed; FLOAT: other types are first made f32; BOOL
 * flops       an element, for the cost model
 * expression  of a (b, c): the inputs, all of type T. It is compiled as C here and as CUDA for a GPU: the
 *             mr_... functions that it calls are those of expr.h, which exist there with the same names.
 *
 * A new operation of these families is a row here and nothing else. */
#ifndef MR_OPS_TABLE_H
#define MR_OPS_TABLE_H

// clang-format off
#define MR_UNARY_TABLE(X) \
    X(neg,         NUMBERS, SAME,  1, mr_neg(a),              "The negative of each element.") \
    X(abs,         ALL,     SAME,  1, mr_abs(a),              "The absolute value of each element.") \
    X(sign,        ALL,     SAME,  2, (a > 0) - mr_below_zero(a),"The sign of each element: -1, 0 or 1 (0 for NaN).") \
    X(exp,         FLOATS,  FLOAT, 8, mr_exp(a),              "e to the power of each element.") \
    X(log,         FLOATS,  FLOAT, 8, mr_log(a),              "The natural logarithm of each element: NaN below 0, -inf at 0.") \
    X(sqrt,        FLOATS,  FLOAT, 4, mr_sqrt(a),             "The square root of each element: NaN below 0.") \
    X(rsqrt,       FLOATS,  FLOAT, 8, 1 / mr_sqrt(a),         "1 divided by the square root of each element.") \
    X(tanh,        FLOATS,  FLOAT, 8, mr_tanh(a),             "The hyperbolic tangent of each element.") \
    X(sigmoid,     FLOATS,  FLOAT, 8, mr_sigmoid(a),          "1 / (1 + exp(-x)) of each element x.") \
    X(relu,        NUMBERS, SAME,  1, mr_below_zero(a) ? 0 : a,"Each element, or 0 if it is negative.") \
    X(gelu,        FLOATS,  FLOAT, 12, mr_gelu(a),             "x times the standard normal distribution function of x: the erf form, PyTorch's default.") \
    X(floor,       NUMBERS, SAME,  1, mr_floor(a),            "The greatest integer that is less than or equal to each element.") \
    X(ceil,        NUMBERS, SAME,  1, mr_ceil(a),             "The least integer that is greater than or equal to each element.") \
    X(round,       NUMBERS, SAME,  1, mr_round(a),            "The integer nearest to each element. If two are equally near, the even one.") \
    X(reciprocal,  FLOATS,  FLOAT, 4, 1 / a,                  "1 divided by each element.") \
    X(square,      ALL,     SAME,  1, mr_mul(a, a),           "Each element times itself.") \
    X(logical_not, ALL,     BOOL,  1, a == 0,                 "True where an element is 0.") \
    X(exp2,        FLOATS,  FLOAT, 8, mr_exp2(a),             "2 to the power of each element.") \
    X(expm1,       FLOATS,  FLOAT, 8, mr_expm1(a),            "exp(x) - 1 of each element x, exact also near 0.") \
    X(log2,        FLOATS,  FLOAT, 8, mr_log2(a),             "The logarithm to base 2 of each element: NaN below 0, -inf at 0.") \
    X(log10,       FLOATS,  FLOAT, 8, mr_log10(a),            "The logarithm to base 10 of each element: NaN below 0, -inf at 0.") \
    X(log1p,       FLOATS,  FLOAT, 8, mr_log1p(a),            "log(1 + x) of each element x, exact also near 0.") \
    X(asin,        FLOATS,  FLOAT, 8, mr_asin(a),             "The arc sine of each element, in radians: NaN outside -1 to 1.") \
    X(acos,        FLOATS,  FLOAT, 8, mr_acos(a),             "The arc cosine of each element, in radians: NaN outside -1 to 1.") \
    X(atan,        FLOATS,  FLOAT, 8, mr_atan(a),             "The arc tangent of each element, in radians.") \
    X(sinh,        FLOATS,  FLOAT, 8, mr_sinh(a),             "The hyperbolic sine of each element.") \
    X(cosh,        FLOATS,  FLOAT, 8, mr_cosh(a),             "The hyperbolic cosine of each element.") \
    X(erf,         FLOATS,  FLOAT, 8, mr_erf(a),              "The error function of each element.") \
    X(trunc,       NUMBERS, SAME,  1, mr_trunc(a),            "Each element without its fraction: rounded towards 0.") \
    X(frac,        FLOATS,  SAME,  2, a - mr_trunc(a),        "The fraction of each element, with its sign: x - trunc(x).") \
    X(silu,        FLOATS,  FLOAT, 9, mr_silu(a),             "x * sigmoid(x) of each element x.") \
    X(softplus,    FLOATS,  FLOAT, 16, a > 20 ? a : mr_log1p(mr_exp(a)), "log(1 + exp(x)) of each element x; above 20, x itself.") \
    X(isnan,       ALL,     BOOL,  1, mr_is_nan(a),           "True where an element is NaN.") \
    X(isinf,       ALL,     BOOL,  1, mr_is_inf(a),           "True where an element is inf or -inf.") \
    X(isfinite,    ALL,     BOOL,  1, !mr_is_nan(a - a),      "True where an element is neither NaN nor inf nor -inf.") \
    X(bitwise_not, WHOLE,   SAME,  1, ~a,                     "Each bit inverted; for bools, the other value. Also ~x.")

/* Like unary, with a second expression that the compiler can vectorize. It gives the same value where the
 * condition after it holds. */
#define MR_RANGED_TABLE(X) \
    X(sin,         FLOATS,  FLOAT, 8, mr_sin(a), mr_sin_near(a), mr_is_near(a), "The sine of each element, in radians.") \
    X(cos,         FLOATS,  FLOAT, 8, mr_cos(a), mr_cos_near(a), mr_is_near(a), "The cosine of each element, in radians.") \
    X(tan,         FLOATS,  FLOAT, 8, mr_tan(a), mr_tan_near(a), mr_is_near(a), "The tangent of each element, in radians.")

#define MR_BINARY_TABLE(X) \
    X(add,         ALL,     SAME,  1, mr_add(a, b),           "The sum. For bools: whether at least one is true. Integers wrap.") \
    X(sub,         NUMBERS, SAME,  1, mr_sub(a, b),           "The difference. Integers wrap.") \
    X(mul,         ALL,     SAME,  1, mr_mul(a, b),           "The product. For bools: whether both are true. Integers wrap.") \
    X(div,         FLOATS,  FLOAT, 4, a / b,                  "The quotient. Integers are converted to f32 first.") \
    X(maximum,     ALL,     SAME,  1, mr_maximum(a, b),       "The greater of two elements. NaN if one of them is NaN.") \
    X(minimum,     ALL,     SAME,  1, mr_minimum(a, b),       "The lesser of two elements. NaN if one of them is NaN.") \
    X(relu_backward,    FLOATS, FLOAT, 1, b <= 0 ? 0 : a,          "The gradient of relu: 0 where its result y is 0, x elsewhere, also where y is NaN. x is the gradient of the result.") \
    X(tanh_backward,    FLOATS, FLOAT, 4, a * (1 - mr_abs(b)) * (1 + mr_abs(b)), "The gradient of tanh, x * (1 - y * y), where y is its result and x the gradient of the result.") \
    X(sigmoid_backward, FLOATS, FLOAT, 3, a * (b < (T)0.5 ? b : 1 - b) * (b < (T)0.5 ? 1 - b : b), "The gradient of sigmoid, x * y * (1 - y), where y is its result and x the gradient of the result.") \
    X(atan2,       FLOATS,  FLOAT, 16, mr_atan2(a, b),        "The angle of the point with height x and abscissa y, in radians from -pi to pi.") \
    X(bitwise_and, WHOLE,   SAME,  1, a & b,                  "The bits that both have. Also x & y.") \
    X(bitwise_or,  WHOLE,   SAME,  1, a | b,                  "The bits that at least one has. Also x | y.") \
    X(bitwise_xor, WHOLE,   SAME,  1, a ^ b,                  "The bits that exactly one has. Also x ~ y.") \
    X(bitwise_left_shift, INTEGERS, SAME, 1, mr_shift_left(a, b), "x shifted to the left by y bits. All bits go if y is below 0 or not below their number. Also x << y.") \
    X(bitwise_right_shift, INTEGERS, SAME, 1, mr_shift_right(a, b), "x shifted to the right by y bits, keeping its sign, as in PyTorch and unlike Lua's >> on numbers. All bits go if y is below 0 or not below their number. Also x >> y.")

/* As binary. The second input is a parameter: a number or a tensor, which may be left out. Before the help stand its
 * name and what it is then. */
#define MR_ACTIVATION_TABLE(X) \
    X(leaky_relu,  FLOATS,  FLOAT, 2, a > 0 ? a : a * b,      "slope", 0.01, "Each element, times `slope` if it is negative (default: 0.01).") \
    X(elu,         FLOATS,  FLOAT, 10, a > 0 ? a : b * mr_expm1(a), "alpha", 1, "Each element x, or alpha * (exp(x) - 1) if it is negative (default: alpha is 1).")

/* Like binary; floats have loops of their own in binary.c. */
#define MR_POWER_TABLE(X) \
    X(pow,         NUMBERS, SAME,  16, mr_pow(a, b),          "x to the power of y. Integers stay integers and wrap. A negative power of an integer from a tensor is truncated to 0.")

/* Like binary. For floats there is a second expression that the compiler can vectorize; it gives the same value where
 * mr_quotient_is_near(a, b). */
#define MR_DIVISION_TABLE(X) \
    X(remainder,   NUMBERS, SAME,  8, mr_remainder(a, b), mr_remainder_near(a, b), "The remainder of x divided by y, with the sign of y, like Lua's %. For integers, the remainder modulo 0 is 0.") \
    X(fmod,        NUMBERS, SAME,  8, mr_fmod(a, b), mr_fmod_near(a, b), "The remainder of x divided by y, with the sign of x, like C's fmod. For integers, the remainder modulo 0 is 0.") \
    X(floor_divide, NUMBERS, SAME, 8, mr_floor_divide(a, b), mr_floor_divide_near(a, b), "The greatest integer that is not above the quotient, like Lua's //. For integers, a division by 0 gives 0.")

#define MR_COMPARE_TABLE(X) \
    X(eq,          ALL,     BOOL,  1, a == b,                 "True where two elements are equal.") \
    X(ne,          ALL,     BOOL,  1, a != b,                 "True where two elements differ. NaN differs from everything.") \
    X(lt,          ALL,     BOOL,  1, a < b,                  "True where x is less than y.") \
    X(le,          ALL,     BOOL,  1, a <= b,                 "True where x is less than y or equal.") \
    X(gt,          ALL,     BOOL,  1, a > b,                  "True where x is greater than y.") \
    X(ge,          ALL,     BOOL,  1, a >= b,                 "True where x is greater than y or equal.") \
    X(logical_and, ALL,     BOOL,  1, (a != 0) & (b != 0),    "True where neither element is 0.") \
    X(logical_or,  ALL,     BOOL,  1, (a != 0) | (b != 0),    "True where at least one element is not 0.") \
    X(logical_xor, ALL,     BOOL,  1, (a != 0) ^ (b != 0),    "True where exactly one element is not 0.")

/* These rows also have the names of the inputs after the first, for the usage line; and the rows that run when only
 * the second or only the third input is given (NONE: both must be). */
#define MR_TERNARY_TABLE(X) \
    X(clamp,       NUMBERS, SAME,  2, mr_minimum(mr_maximum(a, b), c), "least, greatest", maximum, minimum, "Each element, limited to the range from least to greatest. The bounds are numbers or tensors.") \
    X(lerp,        FLOATS,  FLOAT, 4, c < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c), "y, w", NONE, NONE, "The point between x and y at weight w: x + w * (y - x).")

/* Ternary with a bool `a`. */
#define MR_SELECT_TABLE(X) \
    X(where,       ALL,     SAME,  1, a ? b : c,              "y, z", "The element of y where the condition is true, and of z elsewhere.")

/* Like select; the third input is the tensor that is written in place. */
#define MR_MASKED_TABLE(X) \
    X(masked_fill, ALL,     SAME,  1, a ? b : c,              "x:masked_fill(mask, value [, {out=}]) -> tensor", "`value`, a number or a tensor without dims, where `mask` is true, and the element of x elsewhere. The dtype is that of x.")

/* X(name, dtypes of the output, forms, numbers, flops, generator, usage, help). numbers: those that a call of the
 * in-place form gives, as (how many it must give, how many it may give, what the latter are otherwise). */
#define MR_FILL_TABLE(X) \
    X(fill,        ALL,     INPLACE, (1, 0, 0),    0, mr_gen_fill,     "x:fill_(value) -> x",           "Sets every element to `value`.") \
    X(zero,        ALL,     INPLACE, (0, 0, 0),    0, mr_gen_zero,     "x:zero_() -> x",                "Sets every element to 0.") \
    X(arange,      ALL,     NONE,    (0, 0, 0),    1, mr_gen_arange,   "mr.arange([start,] stop [, step [, options]]) -> tensor", "The numbers from `start` (default: 0) up to, but not including, `stop`.") \
    X(linspace,    ALL,     NONE,    (0, 0, 0),    2, mr_gen_linspace, "mr.linspace(first, last, count [, options]) -> tensor", "`count` numbers at equal distances, including `first` and `last`.") \
    X(eye,         ALL,     NONE,    (0, 0, 0),    1, mr_gen_eye,      "mr.eye(rows [, columns [, options]]) -> tensor", "Ones on the diagonal, zeros elsewhere.")

#define MR_RANDOM_TABLE(X) \
    X(uniform,     FLOATS,  INPLACE, (0, 2, 0, 1), 12, mr_gen_uniform,   "x:uniform_([low, high]) -> x", "Sets each element to a uniform random number from `low` (default: 0) up to, but not including, `high` (default: 1).") \
    X(normal,      FLOATS,  INPLACE, (0, 2, 0, 1), 24, mr_gen_normal,    "x:normal_([mean, std]) -> x", "Sets each element to a random number from the normal distribution with this mean (default: 0) and standard deviation (default: 1).") \
    X(bernoulli,   ALL,     INPLACE, (0, 1, 0.5),  12, mr_gen_bernoulli, "x:bernoulli_([p]) -> x", "Sets each element to 1 with probability `p` (default: 0.5), otherwise to 0.") \
    X(randint,     ALL,     NONE,    (0, 0, 0),    12, mr_gen_randint,   "mr.randint([low,] high, shape [, options]) -> tensor", "Random integers from `low` (default: 0) up to, but not including, `high`.")

/* X(name, dtypes taken, result, flops, rules, positions, of two, options, help). fold.c has the code that combines the elements.
 * positions, of two: the row of the second result, which says where the first one was found, and the row that runs when
 * two tensors are given; NONE: there is none. */
#define MR_REDUCE_TABLE(X) \
    X(sum,         ALL,     SUM,   1, 0,               NONE, NONE, "out=", "The sum. For integers and bools it is i64. Floats are added in double precision.") \
    X(mean,        ALL,     FLOAT, 1, 0,               NONE, NONE, "out=", "The mean.") \
    X(prod,        ALL,     SUM,   1, 0,               NONE, NONE, "out=", "The product. For integers and bools it is i64.") \
    X(max,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmax, maximum, "out=", "The greatest element. NaN if any element is NaN. With one dim, the positions (from 1) are the second result, as from argmax.") \
    X(min,         ALL,     SAME,  1, MR_RULE_NEEDS_ELEMENT, argmin, minimum, "out=", "The least element. NaN if any element is NaN. With one dim, the positions (from 1) are the second result, as from argmin.") \
    X(any,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=", "Whether at least one element is not 0.") \
    X(all,         ALL,     BOOL,  1, 0,               NONE, NONE, "out=", "Whether all elements are not 0.") \
    X(argmax,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=", "The position (from 1) of the first greatest element: in the dim, or in row-major order over all elements. NaN counts as greatest.") \
    X(argmin,      ALL,     INDEX, 1, MR_RULE_NEEDS_ELEMENT | MR_RULE_ONE_DIM, NONE, NONE, "out=", "The position (from 1) of the first least element: in the dim, or in row-major order over all elements. NaN counts as least.") \
    X(norm,        ALL,     FLOAT, 2, 0,               NONE, NONE, "p=2, out=", "The square root of the sum of squares. The number in parentheses is a dim, as in sum: x:norm(2) has one norm for each index of the other dims. The option p asks for another norm: {p=1} for the sum of absolute values, {p=math.huge} for the greatest of them.") \
    X(var,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=", "The variance of a sample. With {correction=0}: of the whole population.") \
    X(std,         ALL,     FLOAT, 4, MR_RULE_CORRECTION,               NONE, NONE, "correction=1, out=", "The standard deviation. {correction=} as in var.")

/* X(name, flops, kept, norm, result, help), along one dim, in f32 or f64. Of an element x: d is x - max and e is
 * exp(d), either of which is kept as k; of all of them: s is the sum of e, in double, and n the norm; the
 * result is made of k and n. Subtracting the greatest element changes nothing and lets nothing overflow. */
#define MR_SOFTMAX_TABLE(X) \
    X(softmax,     12, e, 1 / s,     k * n, "exp(x) of each element x, divided by the sum of exp over the dim.") \
    X(log_softmax, 12, d, mr_log(s), k - n, "The logarithm of softmax. It is exact also where softmax itself underflows to 0.")

/* X(name, inputs, forms, items, run, state_bytes, usage, help): index.c has what they do. Indices count from 1. */
#define MR_INDEX_TABLE(X) \
    X(index_select, 2, RESULT,  mr_elementwise_items, mr_pick_run, NULL,  "x:index_select(dim, index [, {out=}]) -> tensor", "The slices of x along `dim` at the positions in `index`, an i64 or i32 tensor with at most one dim; the result has one for each of them. On a device, an index out of range is an error that is noticed later, and after which the device must be reset (R50).") \
    X(gather,       2, RESULT,  mr_elementwise_items, mr_pick_run, NULL,  "x:gather(dim, index [, {out=}]) -> tensor", "For each element of `index` the element of x at the same place, but at that position in `dim`. `index` has as many dims as x, and the result has its shape. An index out of range is an error as in index_select.") \
    X(embedding,    2, FUNCTION, mr_elementwise_items, mr_pick_run, NULL, "mr.embedding(index, table [, {out=}]) -> tensor", "The rows of the matrix `table` at the positions in `index`. The result has the shape of `index`, with the columns as one dim more. An index out of range is an error as in index_select.") \
    X(scatter,      3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:scatter_(dim, index, source) -> x", "For each element of `index`, sets the element of x at the same place, but at that position in `dim`, to the element of `source` there, or to the number `source`. If several are set to one place, the last one along `dim` stays. An index out of range is an error as in index_select.") \
    X(scatter_add,  3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:scatter_add_(dim, index, source) -> x", "Like scatter_, but adds. Sums are made in the order of the index along `dim`, so they are the same in each run and on each backend. On a GPU this costs a sort of the index, and of all that is added to one element a chain of additions.") \
    X(index_add,    3, INPLACE, mr_place_items, mr_place_run, mr_place_state_bytes, "x:index_add_(dim, index, source) -> x", "Adds the slices of `source` along `dim` to those of x at the positions in `index`, which has at most one dim. Sums are made in the order of the index, as by scatter_add_. An index out of range is an error as in index_select.")

/* X(name, flops, help), along one dim. */
#define MR_SCAN_TABLE(X) \
    X(cumsum,  1, "The sums of the elements up to each one along the dim. For integers and bools they are i64. Floats are added in double precision.") \
    X(cumprod, 1, "The products of the elements up to each one along the dim. For integers and bools they are i64. Floats are multiplied in double precision.")

/* X(name, usage, help) */
#define MR_SORT_TABLE(X) \
    X(sort,    "x:sort([dim [, descending]] [, {dim=, descending=}]) -> values, positions", "The elements along the dim (default: the last) in order, and their positions (from 1). Equal elements stay in their order. NaN is greater than all others.") \
    X(argsort, "x:argsort([dim [, descending]] [, {dim=, descending=}]) -> positions", "The positions that sort gives.") \
    X(topk,    "x:topk(k [, dim [, largest]] [, {dim=, largest=}]) -> values, positions", "The k greatest elements along the dim (default: the last), the greatest first, and their positions (from 1); with largest=false, the k least. Of equal elements the first come first. On a GPU it costs as much as sort.")

/* X(name, usage, help) */
#define MR_MOVE_TABLE(X) \
    X(flip, "x:flip(dims... [, {out=}]) -> tensor", "The elements in reverse order along these dims: a copy.") \
    X(roll, "x:roll(shifts [, dims]) -> tensor", "Moves the elements along a dim by a number of places, around the end: a negative one moves them towards the front. Both can be lists of the same length. Without dims, the elements move as if all dims were one.") \
    X(tril, "x:tril([k] [, {out=}]) -> tensor", "The lower triangle of a matrix or of each matrix of a batch: elements above diagonal k are 0 (default: k is 0, the main diagonal; 1 is the one above it).") \
    X(triu, "x:triu([k] [, {out=}]) -> tensor", "The upper triangle of a matrix or of each matrix of a batch: elements below diagonal k are 0 (default: k is 0, the main diagonal; 1 is the one above it).")

/* X(name, inputs, usage, help) */
#define MR_COMPACT_TABLE(X) \
    X(nonzero,       1, "x:nonzero() -> positions", "The positions (from 1) of the elements that are not 0, in row-major order: an i64 tensor with a row for each of them and a column for each dim. The host waits for their number; mr.sync_debug shows that.") \
    X(masked_select, 2, "x:masked_select(mask) -> tensor", "The elements of x where the bool tensor `mask` is true, in row-major order, as a vector. Both broadcast. The host waits for their number; mr.sync_debug shows that.")

/* X(name, rules, help) */
#define MR_MATMUL_TABLE(X) \
    X(matmul,      0,              "The matrix product. Dims before the last two are batch dims, and broadcast. A vector counts as a row on the left and as a column on the right.") \
    X(mm,          MR_RANKS(2, 2), "The product of two matrices.") \
    X(mv,          MR_RANKS(2, 1), "The product of a matrix and a vector.") \
    X(dot,         MR_RANKS(1, 1), "The dot product of two vectors.") \
    X(bmm,         MR_RANKS(3, 3), "The matrix products of two batches of matrices.")

/* X(name, family, inputs, dtypes, flops, items, run, state_bytes, cost, usage, help): rows with bodies of their own. */
#define MR_OTHER_TABLE(X) \
    X(randperm, RANDOM,   0, NUMBERS, 64, mr_randperm_items,    mr_randperm_run, mr_randperm_state_bytes, mr_elementwise_cost, "mr.randperm(n [, options]) -> tensor", "The numbers from 1 to n in random order.") \
    X(copy,     COPY,     1, ALL,     0,  mr_elementwise_items, mr_copy_run,     NULL,                    mr_elementwise_cost, "x:copy_(y [, {non_blocking=}]) -> x",  "Copies the elements of `y`, with broadcasting and conversion.") \
    X(memset,   BYTES,    0, ALL,     0,  mr_bytes_items,       mr_bytes_run,    NULL,                    mr_elementwise_cost, "mr.memset(x, byte)",                   "Sets all bytes of a contiguous tensor.") \
    X(op,       ABSTRACT, 0, ALL,     0,  mr_abstract_items,    mr_abstract_run, NULL,                    mr_abstract_cost,    "mr.op{name=, reads=, writes=, ms=, stream=, blocks=}", "An abstract operation with these accesses and this duration.") \
    X(spin,     ABSTRACT, 0, ALL,     0,  mr_spin_items,        mr_spin_run,     NULL,                    mr_abstract_cost,    "mr.spin{ms=, stream=}",                "A delay on the device.")

/* X(name, family, inputs, forms, items, run, cost, usage, help): operations of neural networks, in floats. */
#define MR_NETWORK_TABLE(X) \
    X(conv2d,        CONV, 2, RESULT,   mr_conv_items,        mr_conv_run,        mr_conv_cost,        "x:conv2d(w [, bias] [, {bias=, stride=, padding=, dilation=, groups=}]) -> tensor", "The convolution of images (images, channels, rows, columns) with weights (outputs, channels / groups, rows, columns); `bias` is added to each output channel. Options are a number or {rows, columns}. With padding=\"same\" the result has as many rows and columns as x; \"valid\" is no padding.") \
    X(conv2d_input,  CONV, 2, FUNCTION, mr_conv_items,        mr_conv_run,        mr_conv_cost,        "mr.conv2d_input(input_shape, w, gradient [, {stride=, padding=, dilation=, groups=}]) -> tensor", "The gradient of conv2d with respect to its input, from that of its result.") \
    X(conv2d_weight, CONV, 2, FUNCTION, mr_conv_weight_items, mr_conv_weight_run, mr_conv_weight_cost, "mr.conv2d_weight(x, weight_shape, gradient [, {stride=, padding=, dilation=, groups=}]) -> tensor", "The gradient of conv2d with respect to its weights, from that of its result. The positions are added in an order that depends on the shapes alone.") \
    X(max_pool2d,          POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:max_pool2d(size [, {stride=size, padding=, dilation=, ceil_mode=, return_indices=}]) -> tensor [, positions]", "The greatest element of each window of images (images, channels, rows, columns); NaN if one is NaN. With return_indices also its position in the rows and columns of its channel, from 1.") \
    X(max_pool2d_backward, POOL, 2, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.max_pool2d_backward(input_shape, gradient, positions, size [, {stride=size, padding=, dilation=, ceil_mode=}]) -> tensor", "The gradient of max_pool2d, from that of its result and the positions that it returned.") \
    X(avg_pool2d,          POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:avg_pool2d(size [, {stride=size, padding=, ceil_mode=, count_include_pad=true, divisor_override=}]) -> tensor", "The mean of each window of images (images, channels, rows, columns).") \
    X(avg_pool2d_backward, POOL, 1, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.avg_pool2d_backward(input_shape, gradient, size [, {stride=size, padding=, ceil_mode=, count_include_pad=true, divisor_override=}]) -> tensor", "The gradient of avg_pool2d, from that of its result.") \
    X(adaptive_avg_pool2d, POOL, 1, RESULT,   mr_pool_items, mr_pool_run, mr_elementwise_cost, "x:adaptive_avg_pool2d(size) -> tensor", "The means of as many rows and columns of windows, of about equal size, as `size` says.") \
    X(adaptive_avg_pool2d_backward, POOL, 1, FUNCTION, mr_pool_items, mr_pool_run, mr_elementwise_cost, "mr.adaptive_avg_pool2d_backward(input_shape, gradient) -> tensor", "The gradient of adaptive_avg_pool2d, from that of its result.") \
    X(nll_loss,            LOSS, 2, RESULT,   mr_loss_items, mr_loss_run, mr_loss_cost, "x:nll_loss(target [, {weight=, ignore_index=-100, reduction=\"mean\", return_total_weight=}]) -> tensor", "The negative of x (items, classes, ...) at each target, which counts from 1: the loss of log-probabilities. Reductions: none, mean, sum; the mean divides by the sum of the targets' weights.") \
    X(nll_loss_backward,   LOSS, 2, FUNCTION, mr_loss_items, mr_loss_run, mr_loss_cost, "mr.nll_loss_backward(input_shape, gradient, target [, {weight=, ignore_index=-100, reduction=\"mean\", total_weight=}]) -> tensor", "The gradient of nll_loss, from that of its result, and, with a reduction, its total weight.")

/* X(name, states, flops, help): steps of optimisers, see optimise.h. step.h has what they do to an element. */
#define MR_OPTIMISE_TABLE(X) \
    X(sgd_step,      0, 4,  "A step of mr.optim.SGD without momentum, for a list of parameters.") \
    X(momentum_step, 1, 8,  "A step of mr.optim.SGD with momentum, for a list of parameters and their momenta.") \
    X(adam_step,     2, 18, "A step of mr.optim.Adam or AdamW, for a list of parameters and the averages of their gradients and of their squares.") \
    X(rmsprop_step,  1, 12, "A step of mr.optim.RMSprop without momentum, for a list of parameters and the averages of the squares of their gradients.") \
    X(rmsprop_momentum_step, 2, 14, "A step of mr.optim.RMSprop with momentum, for a list of parameters, the averages of the squares of their gradients, and their momenta.")

/* name, usage, help */
#define MR_KERNEL_TABLE(X) \
    X(kernel, "k[{grid, block, shared, stream}](...)", "A launch of a kernel of the user's.")
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
