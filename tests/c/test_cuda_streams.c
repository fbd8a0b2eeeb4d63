/* Streams and events of the CUDA backend: the calls of the driver, and the facts known about them. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

static void a_stream_is_done_when_the_driver_says_so(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    assert_true(stream_done(s));
    fake->hold = true;
    launch(s);
    assert_false(stream_done(s));
    fake->hold = false;
    assert_true(stream_done(s));
    assert_int_equal(fake->kernels_run, 1);
    mr_stream_release(s);
}

static void a_synchronize_waits(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    fake->kernel_ticks = 100;
    launch(s);
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(fake->kernels_run, 1);
    assert_int_equal(fake->blocking_calls, 0); /* nothing that Ctrl-C could not end */
    mr_stream_release(s);
}

static void the_legacy_stream_waits_for_blocking_ones_only(void **state) {
    (void)state;
    mr_stream *blocking = stream_on(device, false, NULL), *other = free_stream();
    fake->hold = true;
    launch(other);
    assert_true(stream_done(device->legacy));
    launch(blocking);
    assert_false(stream_done(device->legacy));
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, device->legacy));
    mr_stream_release(blocking);
    mr_stream_release(other);
}

static void a_wait_keeps_the_record_that_it_found(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *e = new_event(false);
    OK(mr_event_record(&caller, e, a));
    OK(mr_stream_wait_event(&caller, b, e));
    fake->hold = true;
    launch(a);
    OK(mr_event_record(&caller, e, a));
    fake->hold = false;
    fake->kernel_ticks = 0;
    assert_true(stream_done(b));
    mr_event_release(e);
    mr_stream_release(a);
    mr_stream_release(b);
}

static void an_event_waited_for_may_be_closed_and_its_handle_used_again(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    fake->hold = true;
    launch(a);
    for (int i = 0; i < 100; i++) OK(mr_stream_wait_stream(&caller, b, a));
    assert_int_equal(fake->events, 1);
    launch(b);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, b));
    assert_int_equal(fake->kernels_run, 2);
    mr_stream_release(a);
    mr_stream_release(b);
}

static void elapsed_time_tells_pending_from_untimed(void **state) {
    (void)state;
    double ms;
    mr_stream *s = free_stream();
    mr_event *first = new_event(true), *second = new_event(true), *untimed = new_event(false);
    OK(mr_event_record(&caller, first, s));
    OK(mr_event_record(&caller, untimed, s));
    fake->hold = true;
    launch(s);
    OK(mr_event_record(&caller, second, s));
    FAILS(MR_CODE_NOT_READY, "not complete", mr_event_elapsed(first, second, &ms));
    FAILS(MR_CODE_INVALID_HANDLE, "timing=true", mr_event_elapsed(first, untimed, &ms));
    fake->hold = false;
    OK(mr_event_synchronize(&caller, second));
    OK(mr_event_elapsed(first, second, &ms));
    assert_true(ms >= 0);
    mr_event_release(first);
    mr_event_release(second);
    mr_event_release(untimed);
    mr_stream_release(s);
}

static void a_closed_stream_finishes_and_a_device_synchronize_knows(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    fake->kernel_ticks = 50;
    launch(s);
    OK(mr_stream_close(&caller, s));
    mr_stream_release(s);
    assert_int_equal(fake->kernels_run, 0);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(fake->kernels_run, 1);
}

static void events_order_streams_of_different_devices(void **state) {
    (void)state;
    mr_device *other = machine->devices[1];
    mr_stream *a = free_stream(), *b = stream_on(other, true, NULL);
    mr_event *e = new_event(false);
    fake->hold = true;
    launch(a);
    OK(mr_event_record(&caller, e, a));
    OK(mr_stream_wait_event(&caller, b, e));
    FAILS(MR_CODE_INVALID_HANDLE, "belongs to device 0", mr_event_record(&caller, e, b));
    assert_false(stream_done(b));
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, b));
    assert_int_equal(fake->contexts, 2);
    mr_event_release(e);
    mr_stream_release(a);
    mr_stream_release(b);
}

/* R60, which the driver does not keep by itself: neither here nor, as was seen, on an H200. */
static void a_synchronous_copy_between_devices_is_a_barrier_of_both(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = stream_on(machine->devices[1], true, NULL);
    mr_tensor *here = tensor(MR_MEMORY_DEVICE, a, 4), *there = tensor(MR_MEMORY_DEVICE, b, 4);
    fake->hold = true;
    launch(b);
    OK(mr_memcpy(&caller, here, there, NULL, true));
    mr_stream *later = free_stream();
    assert_false(stream_done(a));
    assert_false(stream_done(b));
    assert_false(stream_done(later));
    assert_int_equal(fake->copies_run, 0);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, later));
    assert_int_equal(fake->kernels_run, 1);
    assert_int_equal(fake->copies_run, 1);
    OK(mr_stream_synchronize(&caller, b));
    drop(here);
    drop(there);
    mr_stream_release(a);
    mr_stream_release(b);
    mr_stream_release(later);
}

static void a_device_that_nobody_uses_has_no_context(void **state) {
    (void)state;
    assert_int_equal(fake->contexts, 1);
    OK(mr_device_synchronize(&caller, machine->devices[1]));
    assert_int_equal(fake->contexts, 1);
    mr_stream *s = stream_on(machine->devices[1], true, NULL);
    assert_int_equal(fake->contexts, 2);
    mr_stream_release(s);
}

static void the_context_is_switched_only_when_the_device_changes(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = stream_on(machine->devices[1], true, NULL);
    launch(a);
    int before = fake->current_changes;
    for (int i = 0; i < 100; i++) launch(a);
    assert_int_equal(fake->current_changes, before);
    launch(b);
    assert_int_equal(fake->current_changes, before + 1);
    mr_stream_release(a);
    mr_stream_release(b);
}

CUDA_TEST_MAIN(TEST(a_stream_is_done_when_the_driver_says_so), TEST(a_synchronize_waits),
               TEST(the_legacy_stream_waits_for_blocking_ones_only),
               TEST(a_wait_keeps_the_record_that_it_found),
               TEST(an_event_waited_for_may_be_closed_and_its_handle_used_again),
               TEST(elapsed_time_tells_pending_from_untimed),
               TEST(a_closed_stream_finishes_and_a_device_synchronize_knows),
               TEST(events_order_streams_of_different_devices),
               TEST(a_synchronous_copy_between_devices_is_a_barrier_of_both),
               TEST(a_device_that_nobody_uses_has_no_context),
               TEST(the_context_is_switched_only_when_the_device_changes))

#else
CUDA_TEST_MAIN()
#endif
