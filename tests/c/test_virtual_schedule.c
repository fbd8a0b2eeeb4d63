/* The virtual GPU shares its engines as a GPU does: R8, R25, R53-R56, and the times that operations
 * take. */
#include "virtual_fixture.h"

#include "base/embedded.h"

enum { SMS = 132 };

static void a_grid_runs_in_waves(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    span k1 = wide_kernel(a, 30, 3 * SMS); /* three waves of 10 */
    span k2 = wide_kernel(b, 10, SMS);
    OK(mr_device_synchronize(device));
    assert_true(between(k1.start, k1.end) == 30);
    assert_ran(base, k2, 40);
}

static void high_priority_starts_at_the_next_wave(void **state) { /* R8, P13 */
    (void)state;
    mr_stream *low = free_stream(), *equal = free_stream(), *high = stream_with(true, -100);
    assert_int_equal(high->priority, -5);
    mr_event *base = record(low);
    span k1 = wide_kernel(low, 20, 2 * SMS);
    span k2 = wide_kernel(equal, 10, SMS);
    span k3 = wide_kernel(high, 10, SMS);
    OK(mr_device_synchronize(device));
    assert_ran(base, k3, 20); /* 10..20 */
    assert_ran(base, k1, 30); /* its second wave after */
    assert_ran(base, k2, 40);
}

static void a_tail_leaves_room(void **state) { /* R54 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    span k1 = wide_kernel(a, 20, SMS + SMS / 2); /* one wave and a half */
    span k2 = wide_kernel(b, 1, 1);
    OK(mr_device_synchronize(device));
    assert_ran(base, k1, 20);
    assert_ran(base, k2, 11);
}

static void small_grids_run_side_by_side(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    span k1 = wide_kernel(a, 10, SMS / 2), k2 = wide_kernel(b, 10, SMS / 2);
    OK(mr_device_synchronize(device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 10);
}

static void resident_grids_are_limited(void **state) { /* R53, P7 */
    (void)state;
    double before = host_ms();
    mr_stream *streams[129];
    for (int i = 0; i < 129; i++) streams[i] = free_stream();
    before = host_ms();
    for (int i = 0; i < 128; i++) OK(mr_spin(machine, streams[i], ns(10)));
    OK(mr_device_synchronize(device));
    double at_once = host_ms() - before;
    before = host_ms();
    for (int i = 0; i < 129; i++) OK(mr_spin(machine, streams[i], ns(10)));
    OK(mr_device_synchronize(device));
    double one_more = host_ms() - before;
    assert_in_range((int)(at_once * 10), 100, 106); /* 128 launches take 0.35 ms */
    assert_in_range((int)(one_more * 10), 200, 206);
}

static void directions_overlap_and_one_direction_does_not(void **state) { /* R25, P3 */
    (void)state;
    enum { SIZE = 1 << 20 }; /* 4 MiB: 75 us */
    mr_stream *n = free_stream(), *m = free_stream(), *k = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d1 = tensor(n, SIZE);
    mr_tensor *host2 = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d2 = tensor(n, SIZE);
    OK(mr_device_synchronize(device));

    mr_event *base = record(n);
    copy(n, d1, host);
    mr_event *in = record(n);
    copy(m, host2, d2);
    mr_event *out = record(m);
    span beside = kernel(k, 0.07);
    OK(mr_device_synchronize(device));
    double alone = between(base, in);
    assert_in_range((int)(alone * 1e3), 75, 80);
    assert_in_range((int)(between(base, out) * 1e3), 75, 85);
    assert_in_range((int)(between(base, beside.end) * 1e3), 70, 80);

    base = record(n);
    copy(n, d1, host);
    copy(m, d2, host2);
    mr_event *second = record(m);
    OK(mr_device_synchronize(device));
    assert_in_range((int)(between(base, second) * 1e3), 150, 160);
}

static void one_engine_serves_both_directions(void **state) { /* R25 */
    (void)state;
    char path[] = "/tmp/millrace_one_engine_XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    const mr_embedded *h200 = mr_embedded_find("models/h200.model");
    assert_non_null(h200);
    char text[16384], *line;
    snprintf(text, sizeof text, "%.*s", (int)h200->size, (const char *)h200->data);
    line = strstr(text, "async_engine_count = 3");
    assert_non_null(line);
    line[strlen("async_engine_count = ")] = '1';
    fputs(text, file);
    fclose(file);
    OK(mr_virtual_backend.simulator->set_model(machine, path));
    remove(path);
    assert_int_equal(device->properties.async_engine_count, 1);

    enum { SIZE = 1 << 20 };
    mr_stream *n = free_stream(), *m = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d1 = tensor(n, SIZE);
    mr_tensor *host2 = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d2 = tensor(n, SIZE);
    OK(mr_device_synchronize(device));
    mr_event *base = record(n);
    copy(n, d1, host);
    copy(m, host2, d2);
    mr_event *out = record(m);
    OK(mr_device_synchronize(device));
    assert_in_range((int)(between(base, out) * 1e3), 150, 160);
}

static void the_launch_queue_is_finite(void **state) { /* R56, P6 */
    (void)state;
    mr_stream *a = free_stream();
    double before = host_ms();
    OK(mr_spin(machine, a, ns(10)));
    for (int i = 0; i < 100000; i++)
        OK(mr_event_record(made_events.count ? made_events.items[0] : new_event(), a));
    double recorded = host_ms();
    OK(mr_spin(machine, a, ns(50))); /* still free to go on */
    assert_ms(host_ms() - recorded, 0);

    mr_stream *b = free_stream();
    before = host_ms();
    OK(mr_spin(machine, b, ns(10)));
    for (int i = 0; i < 1021; i++) OK(mr_spin(machine, b, 1000));
    assert_in_range((int)(host_ms() - before), 2, 3); /* 1022 launches of 2.7 us: not yet blocked */
    OK(mr_spin(machine, b, 1000));
    assert_ms(host_ms() - before, 10);
}

static void the_timeline_of_a_pipeline(void **state) {
    (void)state;
    enum { SIZE = 1 << 20, ROUNDS = 8 };
    mr_stream *in = free_stream(), *compute = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    mr_tensor *buffer[2] = {tensor(in, SIZE), tensor(in, SIZE)};
    mr_event *filled[2] = {new_event(), new_event()}, *used[2] = {new_event(), new_event()};
    OK(mr_device_synchronize(device));
    double before = host_ms();
    for (int i = 0; i < ROUNDS; i++) {
        OK(mr_stream_wait_event(in, used[i % 2]));
        copy(in, buffer[i % 2], host);
        OK(mr_event_record(filled[i % 2], in));
        OK(mr_stream_wait_event(compute, filled[i % 2]));
        OK(mr_spin(machine, compute, ns(1)));
        OK(mr_event_record(used[i % 2], compute));
    }
    OK(mr_device_synchronize(device));
    assert_ms(host_ms() - before, ROUNDS + 0.08); /* only the first copy is not hidden */
}

static void table_operations_take_their_bandwidth(void **state) {
    (void)state;
    enum { SIZE = 1 << 22 }; /* 16 MiB written at 4260 GB/s: 3.9 us, and 1.9 us of any kernel */
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, SIZE), *small = tensor(a, 1);
    OK(mr_stream_synchronize(a));
    OK(mr_spin(machine, a, ns(1))); /* else it is the host's pace that shows */
    mr_event *e0 = record(a);
    fill(a, small, 1);
    mr_event *e1 = record(a);
    fill(a, t, 1);
    mr_event *e2 = record(a);
    OK(mr_stream_synchronize(a));
    assert_true(between(e0, e1) == 0.001908);
    assert_in_range((int)(between(e1, e2) * 1e6), 5750, 5950);
    assert_int_equal(values(t)[SIZE - 1], 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(a_grid_runs_in_waves),
        T(high_priority_starts_at_the_next_wave),
        T(a_tail_leaves_room),
        T(small_grids_run_side_by_side),
        T(resident_grids_are_limited),
        T(directions_overlap_and_one_direction_does_not),
        T(one_engine_serves_both_directions),
        T(the_launch_queue_is_finite),
        T(the_timeline_of_a_pipeline),
        T(table_operations_take_their_bandwidth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
