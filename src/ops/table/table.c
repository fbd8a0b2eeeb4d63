/* mr_ops[] and mr_families[]: the rows of table.h as structs, and their common data. */
#include "ops/body/fold.h"
#include "ops/help.h"
#include "ops/ids.h"
#include "ops/index.h"
#include "ops/kernel.h"
#include "ops/body/loops.h"
#include "ops/move.h"
#include "ops/body/optimisers.h"
#include "ops/body/scan.h"
#include "ops/table.h"

#include <string.h>

enum {
    TAKES_FLOATS = MR_TAKES_FLOAT,
    TAKES_NUMBERS = MR_TAKES_INTEGER | MR_TAKES_FLOAT,
    TAKES_INTEGERS = MR_TAKES_INTEGER,
    TAKES_WHOLE = MR_TAKES_BOOL | MR_TAKES_INTEGER,
    TAKES_ALL = MR_TAKES_ALL,
    FORMS_NONE = 0,
    FORMS_INPLACE = MR_FORM_INPLACE,
    FORMS_FUNCTION = MR_FORM_FUNCTION,
    FORMS_RESULT = MR_FORM_METHOD | MR_FORM_FUNCTION,
    FORMS_EVERY = MR_FORM_METHOD | MR_FORM_INPLACE | MR_FORM_FUNCTION,
};

/* A result in floats means that other types are converted first, so none is refused. */
#define TAKES(dtypes, result_)                                                                     \
    (MR_RESULT_##result_ == MR_RESULT_FLOAT ? MR_TAKES_ALL : TAKES_##dtypes)

MR_UNARY_TABLE(MR_DECLARE_LOOPS)
MR_RANGED_TABLE(MR_DECLARE_LOOPS)
MR_BINARY_TABLE(MR_DECLARE_LOOPS)
MR_DIVISION_TABLE(MR_DECLARE_LOOPS)
MR_POWER_TABLE(MR_DECLARE_LOOPS)
MR_ACTIVATION_TABLE(MR_DECLARE_LOOPS)
MR_COMPARE_TABLE(MR_DECLARE_LOOPS)
MR_TERNARY_TABLE(MR_DECLARE_LOOPS)
MR_SELECT_TABLE(MR_DECLARE_LOOPS)
MR_MASKED_TABLE(MR_DECLARE_LOOPS)

#define ELEMENTWISE(name_, family_, inputs_, dtypes_, result_, forms_, flops_, expression_,        \
                    usage_, ...)                                                                   \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_ "_",                                                \
                       .family = &mr_families[MR_FAMILY_##family_],                                \
                       .inputs = inputs_,                                                          \
                       .dtypes = TAKES(dtypes_, result_),                                          \
                       .result = MR_RESULT_##result_,                                              \
                       .forms = forms_,                                                            \
                       .flops = flops_,                                                            \
                       .usage = usage_,                                                            \
                       .expression = expression_,                                                  \
                       .items = mr_elementwise_items,                                              \
                       .run = mr_elementwise_run,                                                  \
                       .cost = mr_elementwise_cost,                                                \
                       .body = &mr_loops_##name_,                                                  \
                       .help = MR_HELP_##name_,                                                    \
                       __VA_ARGS__},

#define UNARY_ROW(name, dtypes, result, flops, expression)                                         \
    ELEMENTWISE(name, UNARY, 1, dtypes, result, FORMS_EVERY, flops, #expression,                   \
                "x:" #name "([{out=}]) -> tensor")
#define RANGED_ROW(name, dtypes, result, flops, expression, near, condition)                       \
    ELEMENTWISE(name, UNARY, 1, dtypes, result, FORMS_EVERY, flops, #expression,                   \
                "x:" #name "([{out=}]) -> tensor")
#define BINARY_ROW(name, dtypes, result, flops, expression)                                        \
    ELEMENTWISE(name, BINARY, 2, dtypes, result, FORMS_EVERY, flops, #expression,                  \
                "x:" #name "(y [, {out=}]) -> tensor")
#define ACTIVATION_ROW(name, dtypes, result, flops, expression, parameter, otherwise)              \
    ELEMENTWISE(name, BINARY, 2, dtypes, result, FORMS_EVERY, flops, #expression,                  \
                "x:" #name "([" parameter "] [, {out=}]) -> tensor",                               \
                .numbers = {0, 1, {otherwise}})
#define COMPARE_ROW(name, dtypes, result, flops, expression)                                       \
    ELEMENTWISE(name, COMPARE, 2, dtypes, result, FORMS_RESULT, flops, #expression,                \
                "x:" #name "(y [, {out=}]) -> tensor")
#define DIVISION_ROW(name, dtypes, result, flops, expression, near)                                \
    BINARY_ROW(name, dtypes, result, flops, expression)
#define TERNARY_ROW(name, dtypes, result, flops, expression, inputs, second_, third_)              \
    ELEMENTWISE(name, TERNARY, 3, dtypes, result, FORMS_EVERY, flops, #expression,                 \
                "x:" #name "(" inputs " [, {out=}]) -> tensor",                                    \
                .variants = {MR_OP_##second_, MR_OP_##third_})
#define SELECT_ROW(name, dtypes, result, flops, expression, inputs)                                \
    ELEMENTWISE(name, TERNARY, 3, dtypes, result, FORMS_RESULT, flops, #expression,                \
                "condition:" #name "(" inputs " [, {out=}]) -> tensor")

#define MASKED_ROW(name, dtypes, result, flops, expression, usage)                                 \
    ELEMENTWISE(name, TERNARY, 3, dtypes, result, FORMS_EVERY, flops, #expression, usage,          \
                .rules = MR_RULE_MASK)

#define NUMBERS_GIVEN(required_, optional_, ...)                                                   \
    {                                                                                              \
        required_, optional_, {                                                                    \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define GENERATOR(name_, family_, dtypes_, forms_, numbers_, flops_, generator_, usage_)           \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_ "_",                                                \
                       .family = &mr_families[MR_FAMILY_##family_],                                \
                       .dtypes = TAKES_##dtypes_,                                                  \
                       .result = MR_RESULT_SAME,                                                   \
                       .forms = FORMS_##forms_,                                                    \
                       .numbers = NUMBERS_GIVEN numbers_,                                          \
                       .flops = flops_,                                                            \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_elementwise_items,                                              \
                       .run = mr_generator_run,                                                    \
                       .cost = mr_elementwise_cost,                                                \
                       .body = &generator_},
#define FILL_ROW(name, dtypes, forms, numbers, flops, generator, usage)                            \
    GENERATOR(name, FILL, dtypes, forms, numbers, flops, generator, usage)
#define RANDOM_ROW(name, dtypes, forms, numbers, flops, generator, usage)                          \
    GENERATOR(name, RANDOM, dtypes, forms, numbers, flops, generator, usage)

#define REDUCE_ROW(name_, dtypes_, result_, flops_, rules_, positions_, of_two_, options_)         \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .family = &mr_families[MR_FAMILY_REDUCE],                                   \
                       .inputs = 1,                                                                \
                       .dtypes = TAKES(dtypes_, result_),                                          \
                       .result = MR_RESULT_##result_,                                              \
                       .forms = FORMS_RESULT,                                                      \
                       .rules = rules_,                                                            \
                       .variants = {MR_OP_##positions_, MR_OP_##of_two_},                          \
                       .flops = flops_,                                                            \
                       .usage = "x:" #name_ "([dim [, keepdim]] [, {" options_ "}]) -> tensor",    \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_reduce_items,                                                   \
                       .run = mr_reduce_run,                                                       \
                       .state_bytes = mr_reduce_state_bytes,                                       \
                       .finish = mr_reduce_finish,                                                 \
                       .cost = mr_reduce_cost,                                                     \
                       .body = &mr_reduction_##name_},

#define SOFTMAX_ROW(name_, flops_, kept_, norm_, result_)                                          \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .family = &mr_families[MR_FAMILY_SOFTMAX],                                  \
                       .inputs = 1,                                                                \
                       .dtypes = MR_TAKES_ALL,                                                     \
                       .result = MR_RESULT_FLOAT,                                                  \
                       .forms = FORMS_RESULT,                                                      \
                       .flops = flops_,                                                            \
                       .usage = "x:" #name_ "(dim [, {out=}]) -> tensor",                          \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_softmax_items,                                                  \
                       .run = mr_softmax_run,                                                      \
                       .state_bytes = mr_softmax_state_bytes,                                      \
                       .finish = mr_softmax_finish,                                                \
                       .cost = mr_elementwise_cost,                                                \
                       .body = &mr_softmax_##name_},

#define INDEX_ROW(name_, inputs_, forms_, items_, run_, state_bytes_, usage_)                      \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_ "_",                                                \
                       .family = &mr_families[MR_FAMILY_INDEX],                                    \
                       .inputs = inputs_,                                                          \
                       .dtypes = MR_TAKES_ALL,                                                     \
                       .result = MR_RESULT_SAME,                                                   \
                       .forms = FORMS_##forms_,                                                    \
                       .flops = 0,                                                                 \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = items_,                                                            \
                       .run = run_,                                                                \
                       .state_bytes = state_bytes_,                                                \
                       .cost = mr_index_cost,                                                      \
                       .body = &mr_index_##name_},

#define PLAIN_ROW(name_, family_, inputs_, result_, flops_, usage_)                                \
    .id = MR_OP_##name_, .name = #name_, .name_in_place = #name_ "_",                              \
    .family = &mr_families[MR_FAMILY_##family_], .inputs = inputs_, .dtypes = MR_TAKES_ALL,        \
    .result = MR_RESULT_##result_, .forms = FORMS_RESULT, .flops = flops_, .usage = usage_,        \
    .help = MR_HELP_##name_
#define SCAN_ROW(name_, flops_)                                                                    \
    [MR_OP_##name_] = {                                                                            \
        PLAIN_ROW(name_, SCAN, 1, SUM, flops_, "x:" #name_ "(dim [, {out=}]) -> tensor"),          \
        .items = mr_scan_items, .run = mr_scan_run, .cost = mr_elementwise_cost,                   \
        .body = &mr_scan_##name_},
#define SORT_ROW(name_, usage_)                                                                    \
    [MR_OP_##name_] = {PLAIN_ROW(name_, SORT, 1, SAME, 0, usage_), .items = mr_sort_items,         \
                       .run = mr_sort_run, .cost = mr_sort_cost},
#define MOVE_ROW(name_, usage_)                                                                    \
    [MR_OP_##name_] = {PLAIN_ROW(name_, MOVE, 1, SAME, 0, usage_), .items = mr_elementwise_items,  \
                       .run = mr_move_run, .cost = mr_move_cost, .body = &mr_move_##name_},
#define COMPACT_ROW(name_, inputs_, usage_)                                                        \
    [MR_OP_##name_] = {PLAIN_ROW(name_, COMPACT, inputs_, SAME, 0, usage_),                        \
                       .items = mr_compact_items, .run = mr_##name_##_run,                         \
                       .cost = mr_compact_cost},

#define MATMUL_ROW(name_, rules_)                                                                  \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .family = &mr_families[MR_FAMILY_MATMUL],                                   \
                       .inputs = 2,                                                                \
                       .dtypes = TAKES_NUMBERS,                                                    \
                       .result = MR_RESULT_SAME,                                                   \
                       .forms = FORMS_RESULT,                                                      \
                       .rules = rules_,                                                            \
                       .flops = 2,                                                                 \
                       .usage = "x:" #name_ "(y [, {out=}]) -> tensor",                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_matmul_items,                                                   \
                       .run = mr_matmul_run,                                                       \
                       .cost = mr_matmul_cost},

#define OTHER_ROW(name_, family_, inputs_, dtypes_, flops_, items_, run_, state_bytes_, cost_,     \
                  usage_)                                                                          \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_ "_",                                                \
                       .family = &mr_families[MR_FAMILY_##family_],                                \
                       .inputs = inputs_,                                                          \
                       .dtypes = TAKES_##dtypes_,                                                  \
                       .flops = flops_,                                                            \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = items_,                                                            \
                       .run = run_,                                                                \
                       .state_bytes = state_bytes_,                                                \
                       .cost = cost_},

#define NETWORK_ROW(name_, family_, inputs_, forms_, items_, run_, cost_, usage_)                  \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .family = &mr_families[MR_FAMILY_##family_],                                \
                       .inputs = inputs_,                                                          \
                       .dtypes = TAKES_FLOATS,                                                     \
                       .result = MR_RESULT_SAME,                                                   \
                       .forms = FORMS_##forms_,                                                    \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = items_,                                                            \
                       .run = run_,                                                                \
                       .cost = cost_},

#define OPTIMISE_ROW(name_, states_, flops_, usage_)                                               \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_,                                                    \
                       .family = &mr_families[MR_FAMILY_OPTIMISE],                                 \
                       .inputs = 2 + (states_),                                                    \
                       .dtypes = TAKES_FLOATS,                                                     \
                       .flops = flops_,                                                            \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_optimise_items,                                                 \
                       .run = mr_optimise_run,                                                     \
                       .cost = mr_optimise_cost,                                                   \
                       .body = &mr_optimiser_##name_},

#define KERNEL_ROW(name_, usage_)                                                                  \
    [MR_OP_##name_] = {.id = MR_OP_##name_,                                                        \
                       .name = #name_,                                                             \
                       .name_in_place = #name_,                                                    \
                       .family = &mr_families[MR_FAMILY_KERNEL],                                   \
                       .dtypes = MR_TAKES_ALL,                                                     \
                       .usage = usage_,                                                            \
                       .help = MR_HELP_##name_,                                                    \
                       .items = mr_kernel_items,                                                   \
                       .run = mr_kernel_run,                                                       \
                       .state_bytes = mr_kernel_state_bytes,                                       \
                       .begin = mr_kernel_begin,                                                   \
                       .finish = mr_kernel_finish,                                                 \
                       .fail = mr_kernel_fail,                                                     \
                       .cost = mr_kernel_cost,                                                     \
                       .arguments_retain = mr_kernel_arguments_retain,                             \
                       .arguments_release = mr_kernel_arguments_release},

const mr_op_family mr_families[] = {
    [MR_FAMILY_UNARY] = {.id = MR_FAMILY_UNARY, .name = "unary"},
    [MR_FAMILY_BINARY] = {.id = MR_FAMILY_BINARY, .name = "binary"},
    [MR_FAMILY_COMPARE] = {.id = MR_FAMILY_COMPARE, .name = "compare", .widens = true},
    [MR_FAMILY_TERNARY] = {.id = MR_FAMILY_TERNARY, .name = "ternary"},
    [MR_FAMILY_FILL] = {.id = MR_FAMILY_FILL, .name = "fill"},
    [MR_FAMILY_RANDOM] = {.id = MR_FAMILY_RANDOM, .name = "random", .draws = true},
    [MR_FAMILY_REDUCE] = {.id = MR_FAMILY_REDUCE, .name = "reduce"},
    [MR_FAMILY_SOFTMAX] = {.id = MR_FAMILY_SOFTMAX, .name = "softmax"},
    [MR_FAMILY_MATMUL] = {.id = MR_FAMILY_MATMUL,
                          .name = "matmul",
                          .portion = 8e9,
                          .brings_threads = mr_matmul_brings_threads,
                          .by_library = mr_matmul_by_library},
    [MR_FAMILY_COPY] = {.id = MR_FAMILY_COPY, .name = "copy", .copies = true},
    [MR_FAMILY_BYTES] = {.id = MR_FAMILY_BYTES, .name = "bytes"},
    [MR_FAMILY_ABSTRACT] = {.id = MR_FAMILY_ABSTRACT, .name = "abstract"},
    [MR_FAMILY_CONV] = {.id = MR_FAMILY_CONV, .name = "conv", .portion = 8e9},
    [MR_FAMILY_POOL] = {.id = MR_FAMILY_POOL, .name = "pool"},
    [MR_FAMILY_LOSS] = {.id = MR_FAMILY_LOSS, .name = "loss", .may_fail = true},
    [MR_FAMILY_OPTIMISE] = {.id = MR_FAMILY_OPTIMISE, .name = "optimise"},
    [MR_FAMILY_INDEX] = {.id = MR_FAMILY_INDEX, .name = "index", .may_fail = true},
    [MR_FAMILY_SCAN] = {.id = MR_FAMILY_SCAN, .name = "scan"},
    [MR_FAMILY_SORT] = {.id = MR_FAMILY_SORT, .name = "sort"},
    [MR_FAMILY_MOVE] = {.id = MR_FAMILY_MOVE, .name = "move"},
    [MR_FAMILY_COMPACT] = {.id = MR_FAMILY_COMPACT, .name = "compact"},
    [MR_FAMILY_KERNEL] = {.id = MR_FAMILY_KERNEL,
                          .name = "kernel",
                          .brings_threads = mr_kernel_runs_alone},
    [MR_FAMILY_COLLECTIVE] = {.id = MR_FAMILY_COLLECTIVE, .name = "collective"},
};

const mr_op mr_ops[MR_OP_COUNT] = {
    // clang-format off
    MR_UNARY_TABLE(UNARY_ROW)
    MR_RANGED_TABLE(RANGED_ROW)
    MR_BINARY_TABLE(BINARY_ROW)
    MR_DIVISION_TABLE(DIVISION_ROW)
    MR_POWER_TABLE(BINARY_ROW)
    MR_ACTIVATION_TABLE(ACTIVATION_ROW)
    MR_COMPARE_TABLE(COMPARE_ROW)
    MR_TERNARY_TABLE(TERNARY_ROW)
    MR_SELECT_TABLE(SELECT_ROW)
    MR_MASKED_TABLE(MASKED_ROW)
    MR_FILL_TABLE(FILL_ROW)
    MR_RANDOM_TABLE(RANDOM_ROW)
    MR_REDUCE_TABLE(REDUCE_ROW)
    MR_SOFTMAX_TABLE(SOFTMAX_ROW)
    MR_INDEX_TABLE(INDEX_ROW)
    MR_SCAN_TABLE(SCAN_ROW)
    MR_SORT_TABLE(SORT_ROW)
    MR_MOVE_TABLE(MOVE_ROW)
    MR_COMPACT_TABLE(COMPACT_ROW)
    MR_MATMUL_TABLE(MATMUL_ROW)
    MR_OTHER_TABLE(OTHER_ROW)
    MR_NETWORK_TABLE(NETWORK_ROW)
    MR_OPTIMISE_TABLE(OPTIMISE_ROW)
    MR_KERNEL_TABLE(KERNEL_ROW)
    // clang-format on
};

#define X(name, ...) +1
_Static_assert(MR_OP_TABLE(X) == MR_OP_COUNT - MR_OP_FIRST,
               "each name of ids.h has a row in table.h");
#undef X

const mr_op *mr_op_find(const char *name) {
    for (int id = MR_OP_FIRST; id < MR_OP_COUNT; id++)
        if (strcmp(mr_ops[id].name, name) == 0) return &mr_ops[id];
    return NULL;
}
