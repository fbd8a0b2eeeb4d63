/* The virtual GPU keeps CUDA's order between streams: R1-R6, R9-R19. */
#include "virtual_fixture.h"

static void a_stream_runs_in_the_order_of_submission(void **state) { /* R1 */
    (void)state;
    mr_stream *a = free_stream();
    mr_event *base = record(a);
    span k1 = kernel(a, 10), k2 = kernel(a, 5);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 15);
}

static void streams_overlap(void **state) { /* R2 */
    (void)state;
    mr_stream *n = free_stream(), *m = free_stream();
    double before = host_ms();
    OK(mr_spin(&caller, n, ns(10)));
    OK(mr_spin(&caller, m, ns(10)));
    OK(mr_device_synchronize(&caller, device));
    assert_ms(host_ms() - before, 10);
}

static void the_default_stream_is_a_barrier_both_ways(void **state) { /* R3 */
    (void)state;
    mr_stream *a = blocking_stream(), *b = blocking_stream();
    mr_event *base = record(a);
    span k1 = kernel(a, 10), k2 = kernel(device->legacy, 10), k3 = kernel(b, 10);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 20);
    assert_ran(base, k3, 30);
}

static void a_stream_made_after_a_legacy_command_waits_for_it(void **state) { /* R3 */
    (void)state;
    mr_event *base = record(device->legacy);
    OK(mr_spin(&caller, device->legacy, ns(10)));
    mr_stream *late = blocking_stream();
    span k = kernel(late, 5);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k, 15);
}

static void nonblocking_streams_are_exempt(void **state) { /* R4 */
    (void)state;
    mr_stream *n = free_stream(), *m = free_stream();
    mr_event *base = record(n);
    span k1 = kernel(n, 10), k2 = kernel(device->legacy, 10), k3 = kernel(m, 10);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 10);
    assert_ran(base, k3, 10);
}

static void a_record_in_the_default_stream_is_a_barrier(void **state) { /* R5, R16 */
    (void)state;
    mr_stream *a = blocking_stream();
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(device->legacy);
    assert_false(event_done(e));
    double before = host_ms();
    OK(mr_event_synchronize(&caller, e));
    assert_ms(host_ms() - before, 10);
}

static void a_wait_in_the_default_stream_is_a_barrier(void **state) { /* R5 */
    (void)state;
    mr_stream *n = free_stream(), *a = blocking_stream();
    mr_event *base = record(n);
    OK(mr_spin(&caller, n, ns(30)));
    mr_event *e = record(n);
    OK(mr_stream_wait_event(&caller, device->legacy, e));
    span k = kernel(a, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k, 31);
}

static void the_per_thread_stream_is_an_ordinary_blocking_one(void **state) { /* R6 */
    (void)state;
    mr_stream *p = device->per_thread, *a = blocking_stream();
    mr_event *base = record(a);
    span k1 = kernel(p, 10), k2 = kernel(a, 10), k3 = kernel(device->legacy, 10);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 10);
    assert_ran(base, k3, 20);
}

static void synchronizing_the_default_stream_covers_blocking_ones(void **state) { /* P1 */
    (void)state;
    mr_stream *a = blocking_stream(), *n = free_stream();
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_spin(&caller, n, ns(30)));
    assert_false(stream_done(device->legacy));
    double before = host_ms();
    OK(mr_stream_synchronize(&caller, device->per_thread));
    assert_ms(host_ms() - before, 0);
    OK(mr_stream_synchronize(&caller, device->legacy));
    assert_ms(host_ms() - before, 10);
    assert_true(stream_done(device->legacy));
    assert_false(stream_done(n));
}

static void closing_a_stream_lets_its_work_complete(void **state) { /* R9 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8);
    OK(mr_spin(&caller, a, ns(10)));
    fill(a, t, 7);
    double before = host_ms();
    OK(mr_stream_close(&caller, a));
    assert_ms(host_ms() - before, 0);
    OK(mr_device_synchronize(&caller, device));
    assert_ms(host_ms() - before, 10);
    assert_int_equal(values(t)[7], 7);
    FAILS(MR_CODE_INVALID_HANDLE, mr_stream_synchronize(&caller, a));
}

static void query_tells_and_never_waits(void **state) { /* R10 */
    (void)state;
    mr_stream *a = free_stream();
    OK(mr_spin(&caller, a, ns(10)));
    assert_false(stream_done(a));
    int polls = 0;
    while (!stream_done(a)) polls++;
    assert_in_range(polls, 1000, 100000);
    assert_true(stream_done(a));
}

static void a_record_captures_what_was_there(void **state) { /* R11 */
    (void)state;
    mr_stream *a = free_stream();
    double before = host_ms();
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(a);
    OK(mr_spin(&caller, a, ns(50)));
    OK(mr_event_synchronize(&caller, e));
    assert_ms(host_ms() - before, 10);
    assert_false(stream_done(a));
}

static void a_wait_is_bound_when_it_is_called(void **state) { /* R12 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream(), *c = free_stream();
    mr_event *base = record(a), *e = new_event();
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_event_record(&caller, e, a));
    OK(mr_stream_wait_event(&caller, b, e));
    OK(mr_spin(&caller, a, ns(50)));
    OK(mr_event_record(&caller, e, a));
    span k3 = kernel(b, 1);
    OK(mr_stream_wait_event(&caller, c, e));
    span k4 = kernel(c, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k3, 11);
    assert_ran(base, k4, 61);
}

static void an_event_never_recorded_is_complete(void **state) { /* R13 */
    (void)state;
    mr_stream *b = free_stream();
    mr_event *e = new_event(), *base = record(b);
    assert_true(event_done(e));
    OK(mr_event_synchronize(&caller, e));
    OK(mr_stream_wait_event(&caller, b, e));
    span k = kernel(b, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k, 1);
    double ms;
    FAILS(MR_CODE_INVALID_HANDLE, mr_event_elapsed(e, base, &ms));
}

static void a_wait_blocks_the_stream_and_not_the_host(void **state) { /* R15 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    double before = host_ms();
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(a);
    OK(mr_stream_wait_event(&caller, b, e));
    span k2 = kernel(b, 5);
    assert_ms(host_ms() - before, 0);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k2, 15);
}

static void events_show_exact_times(void **state) { /* R17 */
    (void)state;
    mr_stream *a = free_stream();
    double ms;
    mr_event *e1 = record(a);
    OK(mr_spin(&caller, a, 10000));
    mr_event *e2 = record(a);
    FAILS(MR_CODE_NOT_READY, mr_event_elapsed(e1, e2, &ms));
    OK(mr_stream_synchronize(&caller, a));
    assert_true(between(e1, e2) == 0.010);
    assert_true(between(e2, e1) == -0.010);
}

static void waits_outlive_their_event(void **state) { /* R19 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(a);
    OK(mr_stream_wait_event(&caller, b, e));
    OK(mr_event_close(e));
    span k2 = kernel(b, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k2, 11);
}

static void a_wait_on_the_own_stream_is_harmless(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_event *e = record(a);
    OK(mr_stream_wait_event(&caller, a, e));
    OK(mr_stream_wait_event(&caller, a, e));
    OK(mr_stream_synchronize(&caller, a));
    assert_true(event_done(e));
}

/* The cost of the legacy barrier must not depend on how many streams there are. */
static void ten_thousand_streams_and_the_default_one(void **state) {
    (void)state;
    enum { COUNT = 10000 };
    static mr_stream *streams[COUNT];
    for (int i = 0; i < COUNT; i++) streams[i] = blocking_stream();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < COUNT; i++) OK(mr_spin(&caller, streams[i], 1000));
        OK(mr_spin(&caller, device->legacy, 1000));
    }
    for (int i = 0; i < COUNT; i++) OK(mr_stream_close(&caller, streams[i]));
    OK(mr_device_synchronize(&caller, device));
    assert_true(stream_done(device->legacy));
}

static void a_million_pending_operations(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    set("launch_queue_depth", INT64_MAX);
    mr_event *start = record(a);
    OK(mr_spin(&caller, a, ns(1e6)));
    for (int i = 0; i < 1000000; i++) OK(mr_spin(&caller, a, 1));
    mr_event *end = record(a);
    OK(mr_stream_synchronize(&caller, a));
    assert_true(between(start, end) == 1e6 + 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(a_stream_runs_in_the_order_of_submission),
        T(streams_overlap),
        T(the_default_stream_is_a_barrier_both_ways),
        T(a_stream_made_after_a_legacy_command_waits_for_it),
        T(nonblocking_streams_are_exempt),
        T(a_record_in_the_default_stream_is_a_barrier),
        T(a_wait_in_the_default_stream_is_a_barrier),
        T(the_per_thread_stream_is_an_ordinary_blocking_one),
        T(synchronizing_the_default_stream_covers_blocking_ones),
        T(closing_a_stream_lets_its_work_complete),
        T(query_tells_and_never_waits),
        T(a_record_captures_what_was_there),
        T(a_wait_is_bound_when_it_is_called),
        T(an_event_never_recorded_is_complete),
        T(a_wait_blocks_the_stream_and_not_the_host),
        T(events_show_exact_times),
        T(waits_outlive_their_event),
        T(a_wait_on_the_own_stream_is_harmless),
        T(ten_thousand_streams_and_the_default_one),
        T(a_million_pending_operations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
