/* The entry point of the operation table: what it refuses, with which message, and that a refused call has
 * done nothing; how an accepted one is written down. */
#include "fake_backend.h"
#include "ops/ids.h"

#define T(t) ((mr_value){.tensor = (t)})
#define N(v) ((mr_value){.scalar = (v)})

static void name(mr_tensor *t, const char *text) {
    assert_null(mr_tensor_set_name(t, text));
}

static void refusals_say_why(void **state) {
    (void)state;
    mr_tensor *a = make(MR_F32, SHAPE(3, 2)), *b = make(MR_F32, SHAPE(4, 2)),
              *d = make_device(MR_F32, SHAPE(3, 2)), *i = make(MR_I32, SHAPE(3, 2)),
              *e = make_on(MR_MEMORY_DEVICE, 1, MR_F32, SHAPE(3, 2)),
              *flags = make(MR_BOOL, SHAPE(3, 2)), *longer = make(MR_F32, SHAPE(4, 3, 2));
    name(a, "a"), name(d, "d"), name(e, "e"), name(i, "i");
    int live = fake.live, ops = fake.ops;
    mr_call call = {.in = {T(a), T(b)}, .in_count = 2};
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
                 "add: cannot broadcast 3x2 with 4x2: dimension 1 is 3 against 4");
    call.in[1] = T(d);
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
                 "add: `a` is on the cpu, but `d` on device 0");
    call.in[0] = T(e);
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
                 "`e` is on device 1, but `d` on device 0");
    call.in[0] = T(d), call.in[1] = T(d), call.stream = machine->devices[1]->current;
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT, "belongs to device 1");
    call = (mr_call){.in = {T(i), N(real(1.5))}, .in_count = 2, .out = i, .in_place = true};
    expect_error(
        try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
        "add_: the result is f32 and cannot be written to `i`, which is i32; use x:to(\"f32\")");
    call = (mr_call){.in = {T(a), T(longer)}, .in_count = 2, .out = a, .in_place = true};
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
                 "add_: the result is 4x3x2, but `a` is 3x2");
    call = (mr_call){.in = {T(a), T(a)}, .in_count = 2, .out = b};
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT, "add: the result is 3x2, but");
    call = (mr_call){.in = {N(real(1)), N(real(2))}, .in_count = 2};
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT,
                 "none of the inputs is a tensor");
    call = (mr_call){.in = {T(flags)}, .in_count = 1};
    expect_error(try_call("neg", &call), MR_CODE_INVALID_ARGUMENT,
                 "neg: bool tensors have no neg; convert with x:to(\"i32\")");
    call = (mr_call){.in = {T(a), T(a), T(a)}, .in_count = 3};
    expect_error(try_call("where", &call), MR_CODE_INVALID_ARGUMENT,
                 "the condition must be a bool tensor, not f32");
    call = (mr_call){.in = {T(a)}, .in_count = 1};
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT, "takes 2 inputs, not 1");
    expect_error(try_call("memset", &call), MR_CODE_NOT_SUPPORTED, "not called this way");
    assert_int_equal(fake.live, live);
    assert_int_equal(fake.ops, ops);
    drop(a), drop(b), drop(d), drop(i), drop(e), drop(flags), drop(longer);
}

static void memory_that_is_written_and_read(void **state) {
    (void)state;
    mr_tensor *t = make(MR_F32, SHAPE(4, 6)), *left, *right, *row, *wide;
    for (int64_t i = 0; i < 24; i++) set(t, i, real((double)i));
    expect_ok(mr_tensor_narrow(&caller, t, 1, 0, 3, 2, &left)); /* columns 1, 3, 5 */
    expect_ok(mr_tensor_narrow(&caller, t, 1, 1, 3, 2,
                               &right)); /* columns 2, 4, 6: no element in common */
    mr_call call = {.in = {T(left), T(right)}, .in_count = 2, .out = left, .in_place = true};
    run_call("add", &call);
    assert_true(f64_at(t, 0) == 0 + 1 && f64_at(t, 22) == 22 + 23 && f64_at(t, 23) == 23);
    drop(right);
    expect_ok(mr_tensor_narrow(&caller, t, 1, 1, 3, 1, &right));
    call.in[1] = T(right);
    expect_error(try_call("add", &call), MR_CODE_INVALID_ARGUMENT, "share memory");
    expect_ok(mr_tensor_select(&caller, t, 0, 0, &row));
    call = (mr_call){.in = {T(t), T(row)}, .in_count = 2, .out = t, .in_place = true};
    expect_error(try_call("sub", &call), MR_CODE_INVALID_ARGUMENT, "share memory");
    expect_ok(mr_tensor_expand(&caller, row, SHAPE(2, 6), &wide));
    call = (mr_call){.in = {T(wide)}, .in_count = 1, .out = wide, .in_place = true};
    expect_error(try_call("neg", &call), MR_CODE_INVALID_ARGUMENT, "it was expanded");
    drop(t), drop(left), drop(right), drop(row), drop(wide);
}

static void commands_are_short(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(5)), *b = make_device(MR_F32, SHAPE(5));
    mr_call call = {.in = {T(a), T(b)}, .in_count = 2, .out = a, .in_place = true};
    run_call("add", &call);
    assert_string_equal(fake.last_name, "add_");
    assert_int_equal(fake.last_operands, 2);
    assert_int_equal(fake.last_access, MR_READ | MR_WRITE);
    call.in[1] = T(a);
    run_call("mul", &call);
    assert_int_equal(fake.last_operands, 1);
    call = (mr_call){.in = {T(a), T(b)}, .in_count = 2};
    int allocs = fake.allocs;
    mr_tensor *c = run_call("add", &call);
    assert_int_equal(fake.allocs, allocs + 1);
    assert_int_equal(fake.last_operands, 3);
    assert_int_equal(fake.last_access, MR_WRITE);
    assert_string_equal(fake.last_name, "add");
    assert_int_equal(c->refs, 1);
    assert_int_equal(c->storage->handles, 1);
    drop(c), drop(a), drop(b);
}

static void nothing_to_do(void **state) {
    (void)state;
    mr_tensor *e = make_device(MR_F32, SHAPE(0, 3)), *row = make_device(MR_F32, SHAPE(3));
    int ops = fake.ops;
    mr_call call = {.in = {T(e), T(row)}, .in_count = 2};
    mr_tensor *out = run_call("add", &call);
    assert_int_equal(out->numel, 0);
    assert_int_equal(out->ndim, 2);
    assert_int_equal(fake.ops, ops);
    drop(out);
    call = (mr_call){.in = {T(e)}, .in_count = 1};
    out = run_call("sum", &call);
    assert_true(f64_at(out, 0) == 0);
    drop(out), drop(e), drop(row);
}

static void freed_tensors(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(3)), *b = make_device(MR_F32, SHAPE(3));
    name(a, "a");
    expect_ok(mr_storage_free(&caller, a->storage, MR_FREE_OWN_STREAM, NULL));
    mr_call call = {.in = {T(b), T(a)}, .in_count = 2};
    expect_error(try_call("add", &call), MR_CODE_INVALID_HANDLE, "`a`");
    expect_error(mr_copy(&caller, b, a, NULL, false), MR_CODE_INVALID_HANDLE, "`a`");
    mr_scalar v;
    expect_error(mr_item(&caller, a, &v), MR_CODE_INVALID_HANDLE, "`a`");
    drop(a), drop(b);
}

/* No memory for the result, or a refused command: an error, and nothing is kept. */
static void failures_leave_nothing_behind(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(64, 64)), *v;
    int live = fake.live;
    static const char *const ops[] = {"neg", "sum", "matmul"};
    for (int k = 0; k < 3; k++) {
        mr_call call = {.in = {T(a), T(a)},
                        .in_count = k == 2 ? 2 : 1,
                        .dims_given = true,
                        .dims = {0},
                        .dim_count = 1};
        for (int at = 1; at <= 2; at++) {
            fake.refuse = at;
            expect_error(try_call(ops[k], &call), MR_CODE_UNKNOWN, "refused");
            fake.refuse = 0;
            assert_int_equal(fake.live, live);
            assert_int_equal(a->storage->handles, 1);
        }
        fake.limit = 100;
        expect_error(try_call(ops[k], &call), MR_CODE_OUT_OF_MEMORY, "out of memory");
        fake.limit = (uint64_t)1 << 33;
        assert_int_equal(fake.live, live);
    }
    mr_tensor *one = make_device(MR_U8, SHAPE(1));
    expect_ok(mr_tensor_expand(&caller, one, SHAPE((int64_t)1 << 47), &v));
    mr_call huge = {.in = {T(v)}, .in_count = 1};
    expect_error(try_call("neg", &huge), MR_CODE_OUT_OF_MEMORY, "");
    expect_error(try_call("exp", &huge), MR_CODE_OUT_OF_MEMORY, "");
    drop(a), drop(v), drop(one);
}

static void every_family_is_described(void **state) {
    (void)state;
    for (int i = 0; i < MR_FAMILY_COUNT; i++) {
        assert_int_equal(mr_families[i].id, i);
        assert_true(strlen(mr_families[i].name) > 2);
    }
    mr_tensor *t = make(MR_F32, SHAPE(3));
    mr_call call = {.in = {T(t)}, .in_count = 1};
    expect_error(try_call("spin", &call), MR_CODE_NOT_SUPPORTED, "family `abstract`");
    drop(t);
}

static void every_row_is_documented(void **state) {
    (void)state;
    for (int i = MR_OP_FIRST; i < MR_OP_COUNT; i++) {
        const mr_op *op = &mr_ops[i];
        assert_int_equal(op->id, i);
        assert_true(strlen(op->usage) > 5 && strlen(op->help) > 5);
        assert_true(op->items && op->run && op->cost);
        assert_true(op->family->id > MR_FAMILY_TERNARY || strlen(op->expression) > 0);
        assert_ptr_equal(mr_op_find(op->name), op);
        for (int j = MR_OP_FIRST; j < i; j++) assert_string_not_equal(op->name, mr_ops[j].name);
    }
    assert_null(mr_op_find("no such operation"));
}

static void new_tensors(void **state) {
    (void)state;
    mr_tensor *t;
    mr_placement placement = {.kind = MR_MEMORY_DEVICE, .device = machine->devices[1]};
    expect_ok(mr_create_empty(&caller, &placement, MR_I64, SHAPE(2, 2), &t));
    assert_ptr_equal(t->storage->stream, machine->devices[1]->current);
    drop(t);
    placement.stream = machine->devices[0]->current;
    expect_error(mr_create_empty(&caller, &placement, MR_I64, SHAPE(2, 2), &t),
                 MR_CODE_INVALID_ARGUMENT, "is made on device 1");
    expect_error(
        mr_create_empty(&caller, &(mr_placement){.kind = MR_MEMORY_PINNED}, MR_I64, SHAPE(-2), &t),
        MR_CODE_INVALID_ARGUMENT, "negative");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_say_why),
        cmocka_unit_test(memory_that_is_written_and_read),
        cmocka_unit_test(commands_are_short),
        cmocka_unit_test(nothing_to_do),
        cmocka_unit_test(freed_tensors),
        cmocka_unit_test(failures_leave_nothing_behind),
        cmocka_unit_test(every_family_is_described),
        cmocka_unit_test(every_row_is_documented),
        cmocka_unit_test(new_tensors),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
