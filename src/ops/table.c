/* mr_ops[]: the rows of table.h as structs. */
#include "ops/fold.h"
#include "ops/loops.h"

#include <string.h>

enum {
    TAKES_FLOATS = MR_TAKES_FLOAT,
    TAKES_NUMBERS = MR_TAKES_INTEGER | MR_TAKES_FLOAT,
    TAKES_ALL = MR_TAKES_ALL,
    FORMS_NONE = 0,
    FORMS_INPLACE = MR_FORM_INPLACE,
    FORMS_RESULT = MR_FORM_METHOD | MR_FORM_FUNCTION,
    FORMS_EVERY = MR_FORM_METHOD | MR_FORM_INPLACE | MR_FORM_FUNCTION,
};

/* A result in floats means that other types are converted first, so none is refused. */
#define TAKES(dtypes, result_)                                                                     \
    (MR_RESULT_##result_ == MR_RESULT_FLOAT ? MR_TAKES_ALL : TAKES_##dtypes)

#define ELEMENTWISE(name_, family_, inputs_, dtypes_, result_, forms_, flops_, expression_,        \
                    usage_, help_)                                                                 \
    {.name = #name_,                                                                               \
     .name_in_place = #name_ "_",                                                                  \
     .family = MR_FAMILY_##family_,                                                                \
     .inputs = inputs_,                                                                            \
     .dtypes = TAKES(dtypes_, result_),                                                            \
     .result = MR_RESULT_##result_,                                                                \
     .forms = forms_,                                                                              \
     .flops = flops_,                                                                              \
     .usage = usage_,                                                                              \
     .help = help_,                                                                                \
     .expression = expression_,                                                                    \
     .items = mr_elementwise_items,                                                                \
     .run = mr_elementwise_run,                                                                    \
     .cost = mr_elementwise_cost,                                                                  \
     .body = &mr_loops_##name_},

#define UNARY_ROW(name, dtypes, result, flops, expression, help)                                   \
    ELEMENTWISE(name, UNARY, 1, dtypes, result, FORMS_EVERY, flops, #expression,                   \
                "x:" #name "([{out=}]) -> tensor", help)
#define RANGED_ROW(name, dtypes, result, flops, expression, near, condition, help)                 \
    ELEMENTWISE(name, UNARY, 1, dtypes, result, FORMS_EVERY, flops, #expression,                   \
                "x:" #name "([{out=}]) -> tensor", help)
#define BINARY_ROW(name, dtypes, result, flops, expression, help)                                  \
    ELEMENTWISE(name, BINARY, 2, dtypes, result, FORMS_EVERY, flops, #expression,                  \
                "x:" #name "(y [, {out=}]) -> tensor", help)
#define COMPARE_ROW(name, dtypes, result, flops, expression, help)                                 \
    ELEMENTWISE(name, COMPARE, 2, dtypes, result, FORMS_RESULT, flops, #expression,                \
                "x:" #name "(y [, {out=}]) -> tensor", help)
#define TERNARY_ROW(name, dtypes, result, flops, expression, inputs, help)                         \
    ELEMENTWISE(name, TERNARY, 3, dtypes, result, FORMS_EVERY, flops, #expression,                 \
                "x:" #name "(" inputs " [, {out=}]) -> tensor", help)
#define SELECT_ROW(name, dtypes, result, flops, expression, inputs, help)                          \
    ELEMENTWISE(name, TERNARY, 3, dtypes, result, FORMS_RESULT, flops, #expression,                \
                "condition:" #name "(" inputs " [, {out=}]) -> tensor", help)

#define GENERATOR(name_, family_, dtypes_, forms_, flops_, generator_, usage_, help_)              \
    {.name = #name_,                                                                               \
     .name_in_place = #name_ "_",                                                                  \
     .family = MR_FAMILY_##family_,                                                                \
     .dtypes = TAKES_##dtypes_,                                                                    \
     .result = MR_RESULT_SAME,                                                                     \
     .forms = FORMS_##forms_,                                                                      \
     .flops = flops_,                                                                              \
     .usage = usage_,                                                                              \
     .help = help_,                                                                                \
     .items = mr_elementwise_items,                                                                \
     .run = mr_generator_run,                                                                      \
     .cost = mr_elementwise_cost,                                                                  \
     .body = &generator_},
#define FILL_ROW(name, dtypes, forms, flops, generator, usage, help)                               \
    GENERATOR(name, FILL, dtypes, forms, flops, generator, usage, help)
#define RANDOM_ROW(name, dtypes, forms, flops, generator, usage, help)                             \
    GENERATOR(name, RANDOM, dtypes, forms, flops, generator, usage, help)

#define REDUCE_ROW(name_, dtypes_, result_, flops_, rules_, help_)                                 \
    {.name = #name_,                                                                               \
     .family = MR_FAMILY_REDUCE,                                                                   \
     .inputs = 1,                                                                                  \
     .dtypes = TAKES(dtypes_, result_),                                                            \
     .result = MR_RESULT_##result_,                                                                \
     .forms = FORMS_RESULT,                                                                        \
     .rules = rules_,                                                                              \
     .flops = flops_,                                                                              \
     .usage = "x:" #name_ "([dim [, keepdim]] [, {out=}]) -> tensor",                              \
     .help = help_,                                                                                \
     .items = mr_reduce_items,                                                                     \
     .run = mr_reduce_run,                                                                         \
     .begin = mr_reduce_begin,                                                                     \
     .finish = mr_reduce_finish,                                                                   \
     .cost = mr_reduce_cost,                                                                       \
     .body = &mr_reduction_##name_},

#define SOFTMAX_ROW(name_, flops_, kept_, norm_, result_, help_)                                   \
    {.name = #name_,                                                                               \
     .family = MR_FAMILY_SOFTMAX,                                                                  \
     .inputs = 1,                                                                                  \
     .dtypes = MR_TAKES_ALL,                                                                       \
     .result = MR_RESULT_FLOAT,                                                                    \
     .forms = FORMS_RESULT,                                                                        \
     .flops = flops_,                                                                              \
     .usage = "x:" #name_ "(dim [, {out=}]) -> tensor",                                            \
     .help = help_,                                                                                \
     .items = mr_softmax_items,                                                                    \
     .run = mr_softmax_run,                                                                        \
     .begin = mr_softmax_begin,                                                                    \
     .finish = mr_softmax_finish,                                                                  \
     .cost = mr_elementwise_cost,                                                                  \
     .body = &mr_softmax_##name_},

#define MATMUL_ROW(name_, rules_, help_)                                                           \
    {.name = #name_,                                                                               \
     .family = MR_FAMILY_MATMUL,                                                                   \
     .inputs = 2,                                                                                  \
     .dtypes = TAKES_NUMBERS,                                                                      \
     .result = MR_RESULT_SAME,                                                                     \
     .forms = FORMS_RESULT,                                                                        \
     .rules = rules_,                                                                              \
     .flops = 2,                                                                                   \
     .usage = "x:" #name_ "(y [, {out=}]) -> tensor",                                              \
     .help = help_,                                                                                \
     .items = mr_matmul_items,                                                                     \
     .run = mr_matmul_run,                                                                         \
     .cost = mr_matmul_cost},

static int64_t no_items(const mr_action *action) {
    (void)action;
    return 0;
}

static void run_nothing(const mr_action *action, void *state, int64_t first, int64_t end) {
    (void)action, (void)state, (void)first, (void)end;
}

const mr_op mr_ops[] = {
    // clang-format off
    MR_UNARY_TABLE(UNARY_ROW)
    MR_RANGED_TABLE(RANGED_ROW)
    MR_BINARY_TABLE(BINARY_ROW)
    MR_COMPARE_TABLE(COMPARE_ROW)
    MR_TERNARY_TABLE(TERNARY_ROW)
    MR_SELECT_TABLE(SELECT_ROW)
    MR_FILL_TABLE(FILL_ROW)
    MR_RANDOM_TABLE(RANDOM_ROW)
    // clang-format on
    {.name = "randperm",
     .family = MR_FAMILY_RANDOM,
     .dtypes = TAKES_NUMBERS,
     .flops = 64,
     .usage = "mr.randperm(n [, options]) -> tensor",
     .help = "The numbers from 1 to n in random order.",
     .items = mr_randperm_items,
     .begin = mr_randperm_begin,
     .run = mr_randperm_run,
     .finish = mr_randperm_finish,
     .cost = mr_elementwise_cost},
    // clang-format off
    MR_REDUCE_TABLE(REDUCE_ROW)
    MR_SOFTMAX_TABLE(SOFTMAX_ROW)
    MR_MATMUL_TABLE(MATMUL_ROW)
    // clang-format on
    {.name = "copy",
     .name_in_place = "copy_",
     .family = MR_FAMILY_COPY,
     .inputs = 1,
     .dtypes = TAKES_ALL,
     .usage = "x:copy_(y [, {non_blocking=}]) -> x",
     .help = "Makes the elements those of `y`, which is broadcast and converted.",
     .items = mr_elementwise_items,
     .run = mr_copy_run,
     .cost = mr_elementwise_cost},
    {.name = "memset",
     .family = MR_FAMILY_BYTES,
     .dtypes = TAKES_ALL,
     .usage = "mr.memset(x, byte)",
     .help = "Sets all bytes of a dense tensor.",
     .items = mr_bytes_items,
     .run = mr_bytes_run,
     .cost = mr_elementwise_cost},
    {.name = "op",
     .family = MR_FAMILY_ABSTRACT,
     .dtypes = TAKES_ALL,
     .usage = "mr.op{name=, reads=, writes=, ms=, stream=, blocks=}",
     .help = "An abstract operation with these accesses and this duration.",
     .items = mr_abstract_items,
     .run = mr_abstract_run,
     .cost = mr_abstract_cost},
    {.name = "spin",
     .family = MR_FAMILY_ABSTRACT,
     .dtypes = TAKES_ALL,
     .usage = "mr.spin{ms=, stream=}",
     .help = "A delay on the device.",
     .items = no_items,
     .run = run_nothing,
     .cost = mr_abstract_cost},
};

const int mr_op_count = sizeof mr_ops / sizeof *mr_ops;

const mr_op *mr_op_find(const char *name) {
    for (int i = 0; i < mr_op_count; i++)
        if (strcmp(mr_ops[i].name, name) == 0) return &mr_ops[i];
    return NULL;
}
