/* mr.op: its values are finite, depend on everything that it read, on its name and on the order of
 * operations, and not on how it is sliced. */
#include "fake_backend.h"

static void abstract(const char *name, mr_tensor **reads, int read_count, mr_tensor **writes,
                     int write_count) {
    mr_abstract op = {.name = name,
                      .reads = reads,
                      .writes = writes,
                      .read_count = read_count,
                      .write_count = write_count};
    expect_ok(mr_abstract_op(&caller, &op));
}
#define LIST(...)                                                                                  \
    ((mr_tensor *[]){__VA_ARGS__}),                                                                \
        (int)(sizeof((mr_tensor *[]){__VA_ARGS__}) / sizeof(mr_tensor *))

static void zero(mr_tensor *t) {
    mr_call call = {.out = t, .in_place = true};
    run_call("zero", &call);
}

static void values_are_finite_and_vary(void **state) {
    (void)state;
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        for (int how = DENSE; how < EXPANDED; how++) {
            mr_tensor *t = make_laid_out(MR_MEMORY_DEVICE, (mr_dtype)d, SHAPE(20, 30), (layout)how);
            abstract("k", NULL, 0, LIST(t));
            int64_t distinct = 0;
            for (int64_t i = 0; i < t->numel; i++) {
                assert_true(isfinite(get(t, i).f) && get(t, i).f >= 0);
                if (i > 0) distinct += get(t, i).f != get(t, i - 1).f;
            }
            assert_true(distinct > (d == MR_BOOL ? 200 : 500));
            drop(t);
        }
    }
}

static void different_orders_give_different_values(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(50)), *b = make_device(MR_F32, SHAPE(50));
    for (int round = 0; round < 2; round++) {
        mr_tensor *t = round ? b : a;
        zero(t);
        abstract(round ? "k2" : "k1", LIST(t), LIST(t));
        abstract(round ? "k1" : "k2", LIST(t), LIST(t));
    }
    for (int64_t i = 0; i < 50; i++) assert_true(f64_at(a, i) != f64_at(b, i));
    drop(a), drop(b);
}

static void each_part_of_a_read_matters(void **state) {
    (void)state;
    static const int64_t sizes[] = {1, 7, 100, 1000};
    for (int k = 0; k < 4; k++) {
        mr_tensor *in = make_device(MR_I32, SHAPE(sizes[k])),
                  *out = make_device(MR_F64, SHAPE(100)), *before = make(MR_F64, SHAPE(100));
        zero(in);
        abstract("k", LIST(in), LIST(out));
        expect_ok(mr_copy(&caller, before, out, NULL, false));
        /* Its first half changes, as if it had been read half-written: the first half of the output does. */
        for (int64_t i = 0; i < (sizes[k] + 1) / 2; i++) set(in, i, whole(5));
        abstract("k", LIST(in), LIST(out));
        for (int64_t i = 0; i < 100; i++) {
            bool changed = f64_at(out, i) != f64_at(before, i);
            assert_int_equal(changed, i * sizes[k] / 100 < (sizes[k] + 1) / 2);
        }
        drop(in), drop(out), drop(before);
    }
}

/* Tensors with an element for each item, one behind the other, take a way of their own. */
static void layouts_cannot_be_seen(void **state) {
    (void)state;
    for (int d = 0; d < MR_DTYPE_COUNT; d++) {
        mr_tensor *dense[2], *laid_out[2];
        for (int i = 0; i < 2; i++) {
            dense[i] = make_device((mr_dtype)d, SHAPE(20, 30));
            laid_out[i] = make_laid_out(MR_MEMORY_DEVICE, (mr_dtype)d, SHAPE(20, 30), TRANSPOSED);
            zero(dense[i]), zero(laid_out[i]);
        }
        for (int i = 0; i < 2; i++) {
            mr_tensor **t = i ? laid_out : dense;
            abstract("first", NULL, 0, LIST(t[0], t[1]));
            abstract("second", LIST(t[0]), LIST(t[1]));
            abstract("third", LIST(t[0], t[1]), LIST(t[0]));
        }
        for (int i = 0; i < 2; i++) {
            assert_true(dense[i]->contiguous && !laid_out[i]->contiguous);
            for (int64_t k = 0; k < dense[i]->numel; k++)
                assert_true(f64_at(dense[i], k) == f64_at(laid_out[i], k));
            drop(dense[i]), drop(laid_out[i]);
        }
    }
}

static void slices_cannot_be_seen(void **state) {
    (void)state;
    for (int round = 0; round < 200; round++) {
        mr_tensor *in[3], *all[6];
        for (int i = 0; i < 3; i++) {
            int64_t n = random_below(3) ? 60 : 1 + random_below(90);
            in[i] = make_on(random_below(2) ? MR_MEMORY_DEVICE : MR_MEMORY_PINNED, 0,
                            (mr_dtype)(1 + random_below(5)), SHAPE(n));
        }
        for (int again = 0; again < 2; again++) {
            for (int i = 0; i < 3; i++) {
                all[again * 3 + i] = copy_in(in[i], in[i]->storage->kind);
                zero(all[again * 3 + i]);
            }
            mr_tensor **t = &all[again * 3];
            abstract("first", LIST(t[0]), LIST(t[0], t[1]));
            abstract("second", LIST(t[0], t[1], t[2]), LIST(t[1], t[2]));
        }
        for (int i = 0; i < 3; i++) {
            assert_true(same_bits(all[i], all[3 + i]));
            drop(all[i]), drop(all[3 + i]), drop(in[i]);
        }
    }
}

static void operands_and_misuse(void **state) {
    (void)state;
    mr_tensor *a = make_device(MR_F32, SHAPE(5)), *host = make(MR_F32, SHAPE(5)),
              *other = make_on(MR_MEMORY_DEVICE, 1, MR_F32, SHAPE(5)), *wide;
    abstract("k", LIST(a), LIST(a));
    assert_int_equal(fake.last_operands, 1);
    assert_int_equal(fake.last_access, MR_READ | MR_WRITE);
    assert_string_equal(fake.last_name, "k");
    abstract("reader", LIST(a), NULL, 0);
    assert_int_equal(fake.last_access, MR_READ);
    abstract("nothing", NULL, 0, NULL, 0);
    mr_abstract op = {.name = "k", .reads = &host, .read_count = 1};
    expect_error(mr_abstract_op(&caller, &op), MR_CODE_INVALID_ARGUMENT, "pageable");
    abstract("peer", LIST(other),
             LIST(a)); /* whether it can be reached is found out on the device (R59) */
    expect_ok(mr_tensor_expand(&caller, a, SHAPE(2, 5), &wide));
    op = (mr_abstract){.name = "k", .writes = &wide, .write_count = 1};
    expect_error(mr_abstract_op(&caller, &op), MR_CODE_INVALID_ARGUMENT,
                 "share one memory location");
    expect_ok(mr_spin(&caller, NULL, 1000));
    assert_string_equal(fake.last_name, "spin");
    drop(a), drop(host), drop(other), drop(wide);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_finite_and_vary),
        cmocka_unit_test(different_orders_give_different_values),
        cmocka_unit_test(each_part_of_a_read_matters),
        cmocka_unit_test(layouts_cannot_be_seen),
        cmocka_unit_test(slices_cannot_be_seen),
        cmocka_unit_test(operands_and_misuse),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
