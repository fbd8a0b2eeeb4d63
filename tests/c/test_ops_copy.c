/* Copies between all memories, layouts and dtypes; what each becomes (one engine command, or a detour),
 * and when the host waits. */
#include "fake_backend.h"

static const mr_memory_kind kinds[] = {MR_MEMORY_DEVICE, MR_MEMORY_PINNED, MR_MEMORY_PAGEABLE};

static void every_memory_layout_and_dtype(void **state) {
    (void)state;
    for (int from = 0; from < 3; from++) {
        for (int to = 0; to < 3; to++) {
            for (int how = 0; how < LAYOUTS * EXPANDED; how++) {
                mr_dtype a_dtype = (mr_dtype)(1 + random_below(5)),
                         b_dtype = random_below(2) ? a_dtype : (mr_dtype)(1 + random_below(5));
                mr_tensor *a =
                    make_laid_out(kinds[from], a_dtype, SHAPE(6, 11), (layout)(how / EXPANDED));
                mr_tensor *b =
                    make_laid_out(kinds[to], b_dtype, SHAPE(6, 11), (layout)(how % EXPANDED));
                for (int64_t i = 0; i < 66; i++) set(a, i, whole(random_below(100)));
                expect_ok(mr_copy(&caller, b, a, NULL, random_below(2)));
                for (int64_t i = 0; i < 66; i++) assert_true(get(b, i).f == get(a, i).f);
                drop(a), drop(b);
            }
        }
    }
}

static void source_is_broadcast(void **state) {
    (void)state;
    mr_tensor *row = make(MR_F32, SHAPE(3)), *device = make_device(MR_F64, SHAPE(2, 3));
    for (int64_t i = 0; i < 3; i++) set(row, i, real((double)i));
    expect_ok(mr_copy(&caller, device, row, NULL, false));
    for (int64_t i = 0; i < 6; i++) assert_true(f64_at(device, i) == (double)(i % 3));
    expect_error(mr_copy(&caller, row, device, NULL, false), MR_CODE_INVALID_ARGUMENT,
                 "copy_: shape 2x3 does not broadcast");
    drop(row), drop(device);
}

static void simple_copies_are_one_command(void **state) {
    (void)state;
    mr_tensor *host = make_on(MR_MEMORY_PINNED, 0, MR_F32, SHAPE(8)),
              *a = make_device(MR_F32, SHAPE(8)), *b = make_device(MR_F32, SHAPE(8));
    int copies = fake.copies, ops = fake.ops, allocs = fake.allocs, waits = fake.synchronizes;
    expect_ok(mr_copy(&caller, a, host, NULL, true));
    assert_int_equal(fake.last_direction, MR_COPY_H2D);
    assert_int_equal(fake.synchronizes, waits);
    expect_ok(mr_copy(&caller, a, host, NULL, false));
    assert_int_equal(fake.synchronizes, waits + 1);
    expect_ok(mr_copy(&caller, b, a, NULL, false));
    assert_int_equal(fake.last_direction, MR_COPY_D2D);
    assert_int_equal(fake.synchronizes, waits + 1); /* no host side: nothing to wait for */
    expect_ok(mr_copy(&caller, host, b, NULL, false));
    assert_int_equal(fake.last_direction, MR_COPY_D2H);
    assert_int_equal(fake.synchronizes, waits + 2);
    assert_int_equal(fake.copies, copies + 4);
    assert_int_equal(fake.ops, ops);
    assert_int_equal(fake.allocs, allocs);
    expect_ok(mr_copy(&caller, a, a, NULL, false));
    assert_int_equal(fake.copies, copies + 4);
    drop(host), drop(a), drop(b);
}

/* The host itself spreads what was transferred over a strided destination, so it has to wait first. */
static void strided_destination_on_the_host_waits(void **state) {
    (void)state;
    mr_tensor *device = make_device(MR_F32, SHAPE(8)),
              *host = make_laid_out(MR_MEMORY_PINNED, MR_F32, SHAPE(8), STEPPED);
    int waits = fake.synchronizes;
    expect_ok(mr_copy(&caller, host, device, NULL, true));
    assert_int_equal(fake.synchronizes, waits + 1);
    drop(device), drop(host);
}

static void between_devices(void **state) {
    (void)state;
    mr_tensor *a = make_on(MR_MEMORY_DEVICE, 0, MR_F32, SHAPE(40)),
              *b = make_on(MR_MEMORY_DEVICE, 1, MR_F64, SHAPE(40));
    for (int64_t i = 0; i < 40; i++) set(a, i, real((double)i));
    int waits = fake.waits;
    expect_ok(mr_copy(&caller, b, a, NULL, false));
    assert_int_equal(fake.last_direction, MR_COPY_PEER);
    assert_int_equal(fake.waits, waits + 2); /* the destination's stream before, and after */
    for (int64_t i = 0; i < 40; i++) assert_true(f64_at(b, i) == (double)i);
    drop(a), drop(b);
}

static void overlap_is_refused(void **state) {
    (void)state;
    mr_tensor *t = make(MR_F32, SHAPE(8)), *a, *b, *wide;
    expect_ok(mr_tensor_narrow(&caller, t, 0, 0, 7, 1, &a));
    expect_ok(mr_tensor_narrow(&caller, t, 0, 1, 7, 1, &b));
    expect_error(mr_copy(&caller, a, b, NULL, false), MR_CODE_INVALID_ARGUMENT, "share memory");
    expect_ok(mr_tensor_expand(&caller, t, SHAPE(2, 8), &wide));
    expect_error(mr_copy(&caller, wide, a, NULL, false), MR_CODE_INVALID_ARGUMENT,
                 "cannot broadcast");
    mr_tensor *other = make(MR_F32, SHAPE(8));
    expect_error(mr_copy(&caller, wide, other, NULL, false), MR_CODE_INVALID_ARGUMENT,
                 "share one memory location");
    drop(t), drop(a), drop(b), drop(wide), drop(other);
}

static void clones(void **state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        mr_tensor *t = make_laid_out(kinds[k], MR_I32, SHAPE(5, 7), TRANSPOSED);
        fill_random(t);
        mr_call call = {.in[0].tensor = t, .in_count = 1};
        mr_tensor *clone = run_call("copy", &call);
        assert_true(clone->contiguous && same_bits(clone, t));
        drop(clone), drop(t);
    }
}

static void cudas_own_forms(void **state) {
    (void)state;
    mr_tensor *host = make(MR_F32, SHAPE(6)),
              *pinned = make_on(MR_MEMORY_PINNED, 0, MR_F32, SHAPE(6)),
              *device = make_device(MR_F64, SHAPE(3)), *view;
    for (int64_t i = 0; i < 6; i++) set(host, i, real((double)i));
    expect_ok(mr_memcpy(&caller, device, host, NULL, true)); /* bytes, whatever they mean */
    expect_ok(mr_memcpy(&caller, pinned, device, machine->devices[0]->per_thread, false));
    assert_true(same_bits(host, pinned));
    expect_ok(mr_memcpy(&caller, pinned, host, NULL, true));
    assert_int_equal(fake.last_direction, MR_COPY_H2H);
    mr_tensor *longer = make(MR_F32, SHAPE(7));
    expect_error(mr_memcpy(&caller, device, longer, NULL, true), MR_CODE_INVALID_ARGUMENT,
                 "has 28 bytes, but");
    expect_ok(mr_tensor_narrow(&caller, host, 0, 0, 3, 2, &view));
    expect_error(mr_memcpy(&caller, device, view, NULL, true), MR_CODE_INVALID_ARGUMENT,
                 "is not contiguous");
    expect_error(mr_memcpy(&caller, host, host, NULL, true), MR_CODE_INVALID_ARGUMENT,
                 "share memory");
    expect_ok(mr_memcpy(&caller, device, host, machine->devices[1]->current, false)); /* R58 */

    int waits = fake.synchronizes;
    expect_ok(mr_memset(&caller, device, 0x3f, NULL, true));
    assert_int_equal(fake.synchronizes, waits);
    assert_int_equal(((uint8_t *)mr_tensor_data(device))[17], 0x3f);
    expect_ok(mr_memset(&caller, pinned, 0x40, NULL, true));
    assert_int_equal(fake.synchronizes, waits + 1); /* R24 */
    expect_ok(mr_memset(&caller, pinned, 0x40, NULL, false));
    assert_int_equal(fake.synchronizes, waits + 1);
    expect_error(mr_memset(&caller, host, 0, NULL, true), MR_CODE_INVALID_ARGUMENT, "pageable");
    drop(host), drop(pinned), drop(device), drop(longer), drop(view);
}

static void reading_on_the_host(void **state) {
    (void)state;
    mr_tensor *t = make_laid_out(MR_MEMORY_DEVICE, MR_F32, SHAPE(3, 4), TRANSPOSED), *one, *host;
    for (int64_t i = 0; i < 12; i++) set(t, i, real((double)i));
    mr_scalar v;
    expect_error(mr_item(&caller, t, &v), MR_CODE_INVALID_ARGUMENT, "12 elements, expected one");
    expect_ok(mr_tensor_select(&caller, t, 0, 1, &host));
    expect_ok(mr_tensor_select(&caller, host, 0, 2, &one));
    drop(host);
    expect_ok(mr_item(&caller, one, &v));
    assert_true(v.f == 6);
    drop(one);
    expect_ok(mr_to_host(&caller, t, &host));
    assert_true(mr_tensor_on_host(host) && host->contiguous && same_bits(host, t));
    mr_tensor *same;
    expect_ok(mr_to_host(&caller, host, &same));
    assert_ptr_equal(same, host);
    drop(same), drop(host), drop(t);
}

/* A refused command, at each place of a copy with detours: everything as before. */
static void failures_leave_nothing_behind(void **state) {
    (void)state;
    mr_tensor *a = make_laid_out(MR_MEMORY_DEVICE, MR_F32, SHAPE(4, 5), TRANSPOSED),
              *b = make_laid_out(MR_MEMORY_PAGEABLE, MR_F64, SHAPE(4, 5), STEPPED);
    fill_random(a);
    int live = fake.live;
    bool worked = false;
    for (int at = 1; at < 20 && !worked; at++) {
        fake.refuse = at;
        mr_status status = mr_copy(&caller, b, a, NULL, false);
        worked = !status;
        mr_error_destroy(status);
        fake.refuse = 0;
        assert_int_equal(fake.live, live);
    }
    assert_true(worked);
    drop(a), drop(b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_memory_layout_and_dtype),
        cmocka_unit_test(source_is_broadcast),
        cmocka_unit_test(simple_copies_are_one_command),
        cmocka_unit_test(strided_destination_on_the_host_waits),
        cmocka_unit_test(between_devices),
        cmocka_unit_test(overlap_is_refused),
        cmocka_unit_test(clones),
        cmocka_unit_test(cudas_own_forms),
        cmocka_unit_test(reading_on_the_host),
        cmocka_unit_test(failures_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, open_machine, close_machine);
}
