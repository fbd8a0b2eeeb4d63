/* When a copy returns to the host, and the bytes that it has read and written by then: R20-R26. */
#include "virtual_fixture.h"

enum { SIZE = 1000 };

static mr_tensor *pinned(void) {
    return tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
}
static mr_tensor *pageable(void) {
    return tensor_of(MR_MEMORY_PAGEABLE, NULL, SIZE);
}

static void set_all(mr_tensor *t, int32_t value) {
    for (int64_t i = 0; i < t->numel; i++) values(t)[i] = value;
}

/* How long the host takes for a copy behind a kernel of 10 ms in `stream`. */
static double host_wait(mr_stream *busy, mr_stream *stream, mr_tensor *to, mr_tensor *from,
                        bool synchronous) {
    OK(mr_device_synchronize(&caller, device));
    OK(mr_spin(&caller, busy, ns(10)));
    double before = host_ms();
    OK(mr_memcpy(&caller, to, from, stream, synchronous));
    return host_ms() - before;
}

static void asynchronous_copies(void **state) { /* R22, R23, P4 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, SIZE), *d2 = tensor(a, SIZE);
    mr_tensor *pin = pinned(), *page = pageable(), *page2 = pageable();
    assert_ms(host_wait(a, a, d, pin, false), 0);
    assert_ms(host_wait(a, a, pin, d, false), 0);
    assert_ms(host_wait(a, a, d, d2, false), 0);
    assert_ms(host_wait(a, a, d, page, false), 0);
    assert_ms(host_wait(a, a, page, d, false), 10);
    assert_ms(host_wait(a, a, page, page2, false), 10);
    set("pageable_h2d_async", 0);
    set("pageable_d2h_async", 1);
    assert_ms(host_wait(a, a, d, page, false), 10);
    assert_ms(host_wait(a, a, page, d, false), 0);
    set("pageable_h2d_async", 1);
    set("staging_bytes", SIZE);
    assert_ms(host_wait(a, a, d, page, false), 10);
}

static void synchronous_copies(void **state) { /* R20, R21 */
    (void)state;
    mr_stream *b = blocking_stream(), *n = free_stream();
    mr_tensor *d = tensor(b, SIZE), *d2 = tensor(b, SIZE);
    mr_tensor *pin = pinned(), *page = pageable(), *page2 = pageable();
    mr_tensor *kinds[] = {pin, page};
    for (int i = 0; i < 2; i++) {
        assert_ms(host_wait(b, NULL, d, kinds[i], true), 10);
        assert_ms(host_wait(b, NULL, kinds[i], d, true), 10);
        assert_ms(host_wait(n, NULL, d, kinds[i], true), 0);
        assert_ms(host_wait(n, NULL, kinds[i], d, true), 0);
    }
    assert_ms(host_wait(b, NULL, d, d2, true), 0);
    assert_ms(host_wait(b, NULL, page2, page, true), 10);
}

static void a_staged_source_may_be_overwritten(void **state) { /* R20, R23 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, SIZE), *page = pageable();
    set_all(page, 1);
    OK(mr_spin(&caller, a, ns(10)));
    copy(a, d, page);
    set_all(page, 2);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(d)[0], 1);
    OK(mr_memcpy(&caller, d, page, NULL, true));
    set_all(page, 3);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(d)[SIZE - 1], 2);
}

static void the_dma_of_a_synchronous_copy_may_be_pending(void **state) { /* R20 */
    (void)state;
    mr_tensor *d = tensor(device->legacy, SIZE), *page = pageable();
    OK(mr_device_synchronize(&caller, device));
    choose("manual");
    set_all(page, 1);
    values(d)[0] = 0;
    OK(mr_memcpy(&caller, d, page, NULL, true));
    assert_int_equal(values(d)[0], 0);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(d)[0], 1);
}

static void a_pinned_source_may_not_be_overwritten(void **state) { /* R22 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, SIZE), *pin = pinned();
    set_all(pin, 1);
    OK(mr_spin(&caller, a, ns(10)));
    copy(a, d, pin);
    OK(mr_host_access(&caller, "fill", pin, MR_WRITE));
    set_all(pin, 2);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(d)[0], 2);
}

static void the_host_sees_pinned_memory_as_it_is_by_then(void **state) { /* R22 */
    (void)state;
    mr_stream *a = free_stream(), *clock = free_stream();
    mr_tensor *d = tensor(a, SIZE), *pin = pinned();
    set_all(pin, 1);
    fill(a, d, 7);
    OK(mr_spin(&caller, a, ns(10)));
    copy(a, pin, d);
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    assert_int_equal(values(pin)[0], 1);
    OK(mr_spin(&caller, clock, ns(11)));
    OK(mr_stream_synchronize(&caller, clock));
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    assert_int_equal(values(pin)[0], 7);
}

static void a_large_copy_lands_piece_by_piece(void **state) {
    (void)state;
    enum { LARGE = 8 << 20 };
    mr_stream *a = free_stream(), *clock = free_stream();
    mr_tensor *d = tensor(a, LARGE), *pin = tensor_of(MR_MEMORY_PINNED, NULL, LARGE);
    fill(a, d, 7);
    set_all(pin, 1);
    OK(mr_device_synchronize(&caller, device));
    copy(a, pin, d); /* 600 us */
    OK(mr_spin(&caller, clock, ns(0.3)));
    OK(mr_stream_synchronize(&caller, clock));
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    assert_int_equal(values(pin)[0], 7);
    assert_int_equal(values(pin)[LARGE - 1], 1);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(pin)[LARGE - 1], 7);
}

static void arguments_are_those_of_the_call(void **state) { /* R26 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, SIZE);
    OK(mr_spin(&caller, a, ns(10)));
    for (int32_t i = 1; i <= 3; i++) fill(a, d, i);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(d)[0], 3);
}

static int polls; /* negative: so many are let pass */
static bool interrupt(void *context) {
    (void)context;
    return ++polls > 0;
}

/* An interrupted copy leaves things as if it had not been called. */
static void an_interrupted_copy_has_not_happened(void **state) {
    (void)state;
    mr_stream *b = blocking_stream();
    mr_tensor *d = tensor(b, SIZE), *page = pageable();
    set_all(page, 1);
    OK(mr_device_synchronize(&caller, device));
    fill(b, d, 7);
    OK(mr_spin(&caller, b, ns(10)));
    polls = 0;
    machine->hooks.interrupted = interrupt;
    FAILS(MR_CODE_INTERRUPTED, mr_memcpy(&caller, page, d, b, false));
    FAILS(MR_CODE_INTERRUPTED, mr_memcpy(&caller, page, d, NULL, true));
    FAILS(MR_CODE_INTERRUPTED, mr_memcpy(&caller, d, page, NULL, true));
    FAILS(MR_CODE_INTERRUPTED, mr_device_synchronize(&caller, device));
    assert_int_equal(polls, 4);
    machine->hooks.interrupted = NULL;
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(page)[0], 1);
    assert_int_equal(values(d)[0], 7);
    OK(mr_memcpy(&caller, page, d, NULL, true));
    assert_int_equal(values(page)[0], 7);
}

/* Also when it waits in line for an engine that another copy has. */
static void a_copy_in_line_can_be_interrupted(void **state) {
    (void)state;
    enum { LARGE = 64 << 20 };
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *d = tensor(a, LARGE), *pin = tensor_of(MR_MEMORY_PINNED, NULL, LARGE);
    mr_tensor *page = pageable(), *small = tensor(b, SIZE);
    set_all(page, 1);
    fill(b, small, 7);
    OK(mr_device_synchronize(&caller, device));
    set("slices", 1024); /* many steps, so that the wait polls while the copy is in line */
    machine->hooks.interrupted = interrupt;
    for (int first = 0; first < 9; first += 3) {
        polls = -first;
        copy(a, pin, d);
        FAILS(MR_CODE_INTERRUPTED, mr_memcpy(&caller, page, small, b, false));
        assert_int_equal(values(page)[0], 1);
    }
    machine->hooks.interrupted = NULL;
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(page)[0], 1);
    copy(b, page, small);
    assert_int_equal(values(page)[0], 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(asynchronous_copies),
        T(synchronous_copies),
        T(a_staged_source_may_be_overwritten),
        T(the_dma_of_a_synchronous_copy_may_be_pending),
        T(a_pinned_source_may_not_be_overwritten),
        T(the_host_sees_pinned_memory_as_it_is_by_then),
        T(a_large_copy_lands_piece_by_piece),
        T(arguments_are_those_of_the_call),
        T(an_interrupted_copy_has_not_happened),
        T(a_copy_in_line_can_be_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
