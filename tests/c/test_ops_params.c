/* Arguments by value: each member of a family counts when two sets are compared, and nothing else does. */
#include "fake_backend.h"

#include "ops/params.h"

typedef struct {
    const char *op;
    size_t offset, size; /* of a member of the row's family */
    bool is_number;
} member;

#define MEMBER(op, path, number)                                                                   \
    { op, offsetof(mr_params, path), sizeof(((mr_params *)NULL)->path), number }

static const member members[] = {
    MEMBER("exp", elementwise.number[0].i, true),
    MEMBER("add", elementwise.number[0].f, true),
    MEMBER("eq", elementwise.number[0].is_integer, true),
    MEMBER("eq", elementwise.number[0].is_bool, true),
    MEMBER("where", elementwise.number[1].i, true),
    MEMBER("where", elementwise.number[1].f, true),
    MEMBER("where", elementwise.number[1].is_integer, true),
    MEMBER("where", elementwise.number[1].is_bool, true),
    MEMBER("copy", elementwise.inputs, true),
    MEMBER("copy", elementwise.dtype, true),
    MEMBER("fill", fill.value.f, true),
    MEMBER("fill", fill.value.i, true),
    MEMBER("arange", fill.arange.start.i, true),
    MEMBER("arange", fill.arange.step.i, true),
    MEMBER("linspace", fill.linspace.first, true),
    MEMBER("linspace", fill.linspace.last, true),
    MEMBER("uniform", random.uniform.low, true),
    MEMBER("uniform", random.uniform.high, true),
    MEMBER("normal", random.normal.mean, true),
    MEMBER("normal", random.normal.deviation, true),
    MEMBER("bernoulli", random.bernoulli.probability, true),
    MEMBER("randint", random.randint.low, true),
    MEMBER("randint", random.randint.high, true),
    MEMBER("var", reduce.correction, true),
    MEMBER("sum", reduce.dims, true),
    MEMBER("softmax", along.dim, true),
    MEMBER("cumsum", along.dim, true),
    MEMBER("scatter", index.number.f, true),
    MEMBER("gather", index.dim, true),
    MEMBER("sort", sort.dim, true),
    MEMBER("sort", sort.descending, true),
    MEMBER("flip", move.flipped, true),
    MEMBER("roll", move.dim, true),
    MEMBER("roll", move.shift, true),
    MEMBER("tril", move.diagonal, true),
    MEMBER("mm", matmul.tf32, false),
    MEMBER("conv2d", conv.tf32, false),
    MEMBER("conv2d", conv.window.size, false),
    MEMBER("conv2d", conv.window.stride, false),
    MEMBER("conv2d", conv.window.padding, false),
    MEMBER("conv2d", conv.window.dilation, false),
    MEMBER("conv2d", conv.window.groups, false),
    MEMBER("max_pool2d", pool.window.size, false),
    MEMBER("max_pool2d", pool.window.stride, false),
    MEMBER("max_pool2d", pool.window.padding, false),
    MEMBER("max_pool2d", pool.window.dilation, false),
    MEMBER("avg_pool2d", pool.include_padding, true),
    MEMBER("avg_pool2d", pool.divisor, true),
    MEMBER("nll_loss", loss.ignored, true),
    MEMBER("nll_loss", loss.reduction, true),
    MEMBER("nll_loss", loss.weighted, true),
    MEMBER("memset", memset.byte, true),
    MEMBER("op", abstract.duration_ns, true),
    MEMBER("op", abstract.mix, false),
    MEMBER("op", abstract.blocks, false),
};

enum { MEMBERS = sizeof members / sizeof *members };

/* The first and the last byte: of one that is wider than it is read, the upper half would be lost. */
static void each_member_counts(void **state) {
    (void)state;
    for (int i = 0; i < MEMBERS; i++) {
        const member *m = &members[i];
        const mr_op *row = mr_op_find(m->op);
        for (int end = 0; end < 2; end++) {
            mr_params was = {0}, is = {0};
            mr_params_difference d;
            is.bytes[m->offset + (end ? m->size - 1 : 0)] = 1;
            if (!mr_params_differ(row, &was, &is, &d))
                fail_msg("%s: byte %zu is not compared", m->op, m->offset);
            assert_int_equal(d.is_number, m->is_number);
            assert_false(mr_params_differ(row, &is, &is, &d));
        }
    }
}

/* Padding, what belongs to other families, and which random numbers are drawn. */
static void nothing_else_counts(void **state) {
    (void)state;
    static const char *const rows[] = {"sum",      "softmax", "sort",   "mm",     "nll_loss",
                                       "randperm", "op",      "memset", "uniform"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const mr_op *row = mr_op_find(rows[r]);
        bool counts[MR_PARAMS_BYTES] = {false};
        for (int i = 0; i < MEMBERS; i++)
            if (mr_op_find(members[i].op)->family == row->family &&
                (!row->family->draws || strcmp(members[i].op, rows[r]) == 0))
                memset(counts + members[i].offset, true, members[i].size);
        for (size_t at = 0; at < MR_PARAMS_BYTES; at++) {
            mr_params was = {0}, is = {0};
            mr_params_difference d;
            is.bytes[at] = 1;
            if (mr_params_differ(row, &was, &is, &d) != counts[at])
                fail_msg("%s: byte %zu", rows[r], at);
        }
    }
}

static void numbers_are_told(void **state) {
    (void)state;
    mr_params was = {0}, is = {0};
    mr_params_difference d;
    was.reduce = (mr_reduce_params){.correction = 1, .dims = 2};
    is.reduce = (mr_reduce_params){.correction = 1, .dims = -3};
    assert_true(mr_params_differ(mr_op_find("sum"), &was, &is, &d));
    assert_true(d.is_number && d.was == 2 && d.is == -3);
    was.elementwise.number[0] = real(0.5), is.elementwise.number[0] = whole(7);
    assert_true(mr_params_differ(mr_op_find("add"), &was, &is, &d));
    assert_true(d.was == 0.5 && d.is == 7);
    mr_params one = {.pool = {.divisor = INT64_MIN}}, other = {0};
    assert_true(mr_params_differ(mr_op_find("avg_pool2d"), &one, &other, &d));
    assert_true(d.was == -0x1p63 && d.is == 0);
    mr_params nan = {.reduce = {.correction = NAN}}, minus = {.reduce = {.correction = -0.0}};
    assert_false(mr_params_differ(mr_op_find("var"), &nan, &nan, &d));
    assert_true(mr_params_differ(mr_op_find("var"), &minus, &other, &d));
}

static void draws_are_compared_apart(void **state) {
    (void)state;
    mr_params was = {0}, is = {0};
    is.random.seed = 1;
    assert_true(mr_params_draw_differently(mr_op_find("normal"), &was, &is));
    assert_false(mr_params_draw_differently(mr_op_find("fill"), &was, &is)); /* other bytes there */
    is.random.seed = 0, is.random.offset = 1;
    assert_true(mr_params_draw_differently(mr_op_find("randperm"), &was, &is));
    assert_false(mr_params_draw_differently(mr_op_find("randperm"), &is, &is));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_member_counts),
        cmocka_unit_test(nothing_else_counts),
        cmocka_unit_test(numbers_are_told),
        cmocka_unit_test(draws_are_compared_apart),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
