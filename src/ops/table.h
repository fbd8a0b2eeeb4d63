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
 * A new operation of these families is a row in the header of its family, its name in ids.h and its text in help.h.
 * The file that compiles the loops of some rows includes their header only. So a changed row compiles no others. */
#ifndef MR_OPS_TABLE_H
#define MR_OPS_TABLE_H

#include "ops/table_binary.h"
#include "ops/table_compare.h"
#include "ops/table_reduce.h"
#include "ops/table_ternary.h"
#include "ops/table_unary.h"

// clang-format off
/* X(name, dtypes of the output, forms, numbers, flops, generator, usage). numbers: those that a call of the
 * in-place form gives, as (how many are required, how many are optional, the defaults of these). */
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

/* X(name, inputs, forms, items, run, state_bytes, usage): index.c describes them. Indices count from 1. */
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

/* X(name, states, flops, usage): steps of optimisers, see optimise.h. step.h has their formulas for an element.
 * gather_grads has their form: its parameters are views of a bucket, which get the values of the gradients. */
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
