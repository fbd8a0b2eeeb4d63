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
    OK(mr_device_synchronize(&caller, device));
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
    OK(mr_device_synchronize(&caller, device));
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
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 20);
    assert_ran(base, k2, 11);
}

static void small_grids_run_side_by_side(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    span k1 = wide_kernel(a, 10, SMS / 2), k2 = wide_kernel(b, 10, SMS / 2);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 10);
    assert_ran(base, k2, 10);
}

static void resident_grids_are_limited(void **state) { /* R53, P7 */
    (void)state;
    double before = host_ms();
    mr_stream *streams[129];
    for (int i = 0; i < 129; i++) streams[i] = free_stream();
    before = host_ms();
    for (int i = 0; i < 128; i++) OK(mr_spin(&caller, streams[i], ns(10)));
    OK(mr_device_synchronize(&caller, device));
    double at_once = host_ms() - before;
    before = host_ms();
    for (int i = 0; i < 129; i++) OK(mr_spin(&caller, streams[i], ns(10)));
    OK(mr_device_synchronize(&caller, device));
    double one_more = host_ms() - before;
    assert_in_range((int)(at_once * 10), 100, 106); /* 128 launches take 0.35 ms */
    assert_in_range((int)(one_more * 10), 200, 206);
}

/* Puts this line of a model in the place of the text's line for the same key. */
static void put_line(char *text, size_t size, const char *line) {
    char key[64], rest[16384];
    snprintf(key, sizeof key, "\n%.*s=", (int)(strchr(line, '=') - line), line);
    char *old = strstr(text, key);
    assert_non_null(old);
    snprintf(rest, sizeof rest, "%s", strchr(old + 1, '\n'));
    snprintf(old + 1, size - (size_t)(old + 1 - text), "%s%s", line, rest);
}

/* Goes on with the model h200, but for these lines (`other` may be NULL). */
static void with_figures(const char *line, const char *other) {
    char path[] = "/tmp/millrace_figures_XXXXXX", text[16384];
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    const mr_embedded *h200 = mr_embedded_find("models/h200.model");
    assert_non_null(h200);
    snprintf(text, sizeof text, "%.*s", (int)h200->size, (const char *)h200->data);
    put_line(text, sizeof text, line);
    if (other) put_line(text, sizeof text, other);
    fputs(text, file);
    fclose(file);
    OK(mr_virtual_backend.simulator->set_model(machine, path));
    remove(path);
}

static void with_figure(const char *line) {
    with_figures(line, NULL);
}

static void directions_overlap_and_one_direction_does_not(void **state) { /* R25, P3 */
    (void)state;
    enum { SIZE = 1 << 20 }; /* 4 MiB: 75 us */
    with_figures("copy_call_ns = 1000", "h2d_gbs = 55.6");
    mr_stream *n = free_stream(), *m = free_stream(), *k = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d1 = tensor(n, SIZE);
    mr_tensor *host2 = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d2 = tensor(n, SIZE);
    OK(mr_device_synchronize(&caller, device));

    mr_event *base = record(n);
    copy(n, d1, host);
    mr_event *in = record(n);
    copy(m, host2, d2);
    mr_event *out = record(m);
    span beside = kernel(k, 0.07);
    OK(mr_device_synchronize(&caller, device));
    double alone = between(base, in);
    assert_in_range((int)(alone * 1e3), 75, 80);
    assert_in_range((int)(between(base, out) * 1e3), 75, 85);
    assert_in_range((int)(between(base, beside.end) * 1e3), 70, 85);

    base = record(n);
    copy(n, d1, host);
    copy(m, d2, host2);
    mr_event *second = record(m);
    OK(mr_device_synchronize(&caller, device));
    assert_in_range((int)(between(base, second) * 1e3), 150, 160);
}

static void one_engine_serves_both_directions(void **state) { /* R25 */
    (void)state;
    with_figure("async_engine_count = 1");
    assert_int_equal(device->properties.async_engine_count, 1);

    enum { SIZE = 1 << 20 };
    mr_stream *n = free_stream(), *m = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d1 = tensor(n, SIZE);
    mr_tensor *host2 = tensor_of(MR_MEMORY_PINNED, NULL, SIZE), *d2 = tensor(n, SIZE);
    OK(mr_device_synchronize(&caller, device));
    mr_event *base = record(n);
    copy(n, d1, host);
    copy(m, host2, d2);
    mr_event *out = record(m);
    OK(mr_device_synchronize(&caller, device));
    assert_in_range((int)(between(base, out) * 1e3), 150, 160);
}

static void the_launch_queue_is_finite(void **state) { /* R56, P6 */
    (void)state;
    mr_stream *a = free_stream();
    double before = host_ms();
    OK(mr_spin(&caller, a, ns(10)));
    for (int i = 0; i < 100000; i++)
        OK(mr_event_record(&caller, made_events.count ? made_events.items[0] : new_event(), a));
    double recorded = host_ms();
    OK(mr_spin(&caller, a, ns(50))); /* still free to go on */
    assert_ms(host_ms() - recorded, 0);

    mr_stream *b = free_stream();
    before = host_ms();
    OK(mr_spin(&caller, b, ns(10)));
    for (int i = 0; i < 1021; i++) OK(mr_spin(&caller, b, 1000));
    assert_in_range((int)(host_ms() - before), 2, 6); /* 1022 launches of 4 us: not yet blocked */
    OK(mr_spin(&caller, b, 1000));
    assert_ms(host_ms() - before, 10);
}

static void the_timeline_of_a_pipeline(void **state) {
    (void)state;
    enum { SIZE = 1 << 20, ROUNDS = 8 };
    mr_stream *in = free_stream(), *compute = free_stream();
    mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    mr_tensor *buffer[2] = {tensor(in, SIZE), tensor(in, SIZE)};
    mr_event *filled[2] = {new_event(), new_event()}, *used[2] = {new_event(), new_event()};
    OK(mr_device_synchronize(&caller, device));
    double before = host_ms();
    for (int i = 0; i < ROUNDS; i++) {
        OK(mr_stream_wait_event(&caller, in, used[i % 2]));
        copy(in, buffer[i % 2], host);
        OK(mr_event_record(&caller, filled[i % 2], in));
        OK(mr_stream_wait_event(&caller, compute, filled[i % 2]));
        OK(mr_spin(&caller, compute, ns(1)));
        OK(mr_event_record(&caller, used[i % 2], compute));
    }
    OK(mr_device_synchronize(&caller, device));
    assert_ms(host_ms() - before, ROUNDS + 0.08); /* only the first copy is not hidden */
}

static void table_operations_take_their_bandwidth(void **state) {
    (void)state;
    enum { SIZE = 1 << 22 }; /* 16 MiB written at 4200 GB/s: 4 us, and 2 us of any kernel */
    with_figures("kernel_memory_gbs = 4200", "kernel_floor_ns = 2000");
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, SIZE), *small = tensor(a, 1);
    OK(mr_stream_synchronize(&caller, a));
    OK(mr_spin(&caller, a, ns(1))); /* else it is the host's pace that shows */
    mr_event *e0 = record(a);
    fill(a, small, 1);
    mr_event *e1 = record(a);
    fill(a, t, 1);
    mr_event *e2 = record(a);
    OK(mr_stream_synchronize(&caller, a));
    assert_true(between(e0, e1) == 0.002);
    assert_in_range((int)(between(e1, e2) * 1e6), 5950, 6050);
    assert_int_equal(values(t)[SIZE - 1], 1);
}

/* ---- engines that hand over: copies are of 4 bytes, 2 us */

typedef struct {
    mr_stream *stream;
    mr_tensor *host, *device;
} route;

static route small_route(mr_stream *stream) {
    route r = {stream, tensor_of(MR_MEMORY_PINNED, NULL, 1), tensor(stream, 1)};
    OK(mr_device_synchronize(&caller, device));
    return r;
}

static mr_event *copied(route r) {
    copy(r.stream, r.host, r.device);
    return record(r.stream);
}

static void kernels_and_copies_hand_over(void **state) {
    (void)state;
    with_figure("handover_ns = 2e6");
    route r = small_route(free_stream());
    mr_event *base = record(r.stream);
    span k1 = kernel(r.stream, 5);
    mr_event *c1 = copied(r), *c2 = copied(r);
    span k2 = kernel(r.stream, 5), k3 = kernel(r.stream, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 5);
    assert_ms(between(base, c1), 7);
    assert_ms(between(base, c2), 7); /* the same engine goes on */
    assert_ran(base, k2, 14);
    assert_ran(base, k3, 15);
}

static void they_hand_over_by_events_too(void **state) {
    (void)state;
    with_figure("handover_ns = 2e6");
    route r = small_route(free_stream());
    mr_stream *compute = free_stream();
    mr_event *base = record(compute);
    span k = kernel(compute, 5);
    OK(mr_stream_wait_event(&caller, r.stream, k.end));
    mr_event *waited = record(r.stream), *c = copied(r);
    OK(mr_stream_wait_event(&caller, compute, c));
    span after_copy = kernel(compute, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_ms(between(base, waited), 5); /* an event needs no engine */
    assert_ms(between(base, c), 7);
    assert_ran(base, after_copy, 10);
}

/* Lets the host do something else until `ms` after `before`, without a look at the device. */
static void pass_time(double before, double ms) {
    while (host_ms() - before < ms) new_event();
}

static void only_what_waits_is_handed_over_to(void **state) {
    (void)state;
    with_figure("handover_ns = 2e6");
    route r = small_route(free_stream());
    double before = host_ms();
    OK(mr_spin(&caller, r.stream, ns(0.005)));
    pass_time(before, 0.05); /* it has ended, and nobody has looked */
    OK(mr_event_synchronize(&caller, copied(r)));
    assert_ms(host_ms() - before, 0.05);

    OK(mr_spin(&caller, free_stream(), ns(5))); /* another stream's work is nothing to it */
    before = host_ms();
    OK(mr_event_synchronize(&caller, copied(r)));
    assert_ms(host_ms() - before, 0);

    choose("random:1"); /* which has no engines */
    before = host_ms();
    OK(mr_spin(&caller, r.stream, ns(1)));
    OK(mr_event_synchronize(&caller, copied(r)));
    assert_ms(host_ms() - before, 1);
}

static void a_marker_under_way_does_not_make_a_copy_wait(void **state) {
    (void)state;
    with_figures("handover_ns = 5e6", "launch_latency_ns = 1e6");
    route r = small_route(free_stream());
    double before = host_ms();
    OK(mr_spin(&caller, r.stream, ns(0.2))); /* 1.0..1.2 */
    pass_time(before, 0.9);
    record(r.stream); /* at 1.9, and had the kernel to wait for */
    pass_time(before, 1.5);
    OK(mr_event_synchronize(&caller, copied(r))); /* had not */
    assert_ms(host_ms() - before, 2.5);
}

static void a_wait_for_another_stream_takes_time(void **state) {
    (void)state;
    with_figure("wait_latency_ns = 2e6");
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    span k1 = kernel(a, 5);
    OK(mr_stream_wait_event(&caller, b, k1.end));
    span k2 = kernel(b, 5);
    OK(mr_stream_wait_event(&caller, a, k1.end)); /* its own */
    span k3 = kernel(a, 5);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k1, 5);
    assert_ran(base, k2, 12);
    assert_ran(base, k3, 10);

    double before = host_ms();
    OK(mr_spin(&caller, a, ns(0.005)));
    mr_event *end = record(a);
    pass_time(before, 0.05); /* it has ended, and nobody has looked */
    OK(mr_stream_wait_event(&caller, b, end));
    OK(mr_spin(&caller, b, ns(1)));
    OK(mr_stream_synchronize(&caller, b));
    assert_ms(host_ms() - before, 1.05);
}

/* ---- what the host pays */

static mr_tensor *square(mr_stream *stream, mr_dtype dtype, int64_t size) {
    const int64_t shape[2] = {size, size};
    mr_tensor *t;
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, stream, dtype, 2, shape, &t));
    assert_true(mr_vec_push(&made_tensors, t));
    return t;
}

/* Milliseconds of the host for one product. */
static double product_ms(mr_dtype dtype, int64_t size) {
    mr_stream *a = free_stream();
    mr_tensor *x = square(a, dtype, size), *y = square(a, dtype, size), *out;
    mr_call call = {.in = {{.tensor = x}, {.tensor = y}},
                    .in_count = 2,
                    .out = square(a, dtype, size),
                    .stream = a};
    double before = host_ms();
    bool fresh;
    OK(mr_call_run(&caller, mr_op_find("mm"), &call, &out, &fresh));
    mr_tensor_release(out);
    return host_ms() - before;
}

static void a_product_of_floats_goes_by_a_library(void **state) {
    (void)state;
    with_figure("product_ns = 5e6");
    assert_ms(product_ms(MR_F32, 144), 5);
    assert_ms(product_ms(MR_F64, 144), 5);
    assert_ms(product_ms(MR_F32, 128), 0); /* small: a kernel like others */
    assert_ms(product_ms(MR_I32, 144), 0);
}

static double copy_ms(mr_tensor *to, mr_tensor *from, bool synchronous) {
    OK(mr_device_synchronize(&caller, device));
    double before = host_ms();
    OK(mr_memcpy(&caller, to, from, free_stream(), synchronous));
    return host_ms() - before;
}

static void a_copy_inside_the_device_costs_a_launch(void **state) {
    (void)state;
    with_figures("launch_ns = 5e6", "copy_call_ns = 2e6");
    mr_stream *a = free_stream();
    mr_tensor *pinned = tensor_of(MR_MEMORY_PINNED, NULL, 8), *d = tensor(a, 8), *d2 = tensor(a, 8);
    assert_ms(copy_ms(d, d2, false), 5);
    assert_ms(copy_ms(d, pinned, false), 2);
    assert_ms(copy_ms(pinned, d, false), 2);
}

static void pageable_memory_goes_through_a_buffer(void **state) {
    (void)state;
    enum { SIZE = 1 << 18 }; /* 1 MiB: 10 ms at 0.105 GB/s */
    with_figures("unstaging_gbs = 0.1048576", "staging_gbs = 0.1048576");
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, SIZE), *page = tensor_of(MR_MEMORY_PAGEABLE, NULL, SIZE),
              *pinned = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    assert_ms(copy_ms(page, d, true), 10);
    assert_ms(copy_ms(pinned, d, true), 0);
    set("staging_bytes", SIZE); /* a quarter of what is copied, so it goes in pieces */
    assert_ms(copy_ms(d, page, true), 10);
    assert_ms(copy_ms(d, pinned, true), 0);
}

static void a_wait_for_the_device_goes_on_when_its_work_is_done(void **state) {
    (void)state;
    with_figure("device_synchronize_ns = 3e6");
    mr_stream *a = free_stream();
    double before = host_ms();
    OK(mr_device_synchronize(&caller, device));
    assert_ms(host_ms() - before, 3);
    before = host_ms();
    OK(mr_spin(&caller, a, ns(5)));
    OK(mr_device_synchronize(&caller, device));
    assert_ms(host_ms() - before, 8);
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
        T(kernels_and_copies_hand_over),
        T(they_hand_over_by_events_too),
        T(only_what_waits_is_handed_over_to),
        T(a_marker_under_way_does_not_make_a_copy_wait),
        T(a_wait_for_another_stream_takes_time),
        T(a_product_of_floats_goes_by_a_library),
        T(a_copy_inside_the_device_costs_a_launch),
        T(pageable_memory_goes_through_a_buffer),
        T(a_wait_for_the_device_goes_on_when_its_work_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
