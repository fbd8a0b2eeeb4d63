/* What the tests of the virtual GPU share: a machine for each test, kernels of a given length, and the
 * times at which they ran. Times are in virtual milliseconds; calls cost the host microseconds, so
 * times are compared to within 0.1 ms. */
#ifndef MR_TESTS_VIRTUAL_FIXTURE_H
#define MR_TESTS_VIRTUAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ops/call.h"
#include "virtual/virtual.h"

static mr_machine *machine;
static mr_caller caller; /* of the machine */
static mr_device *device;

/* What a test has made; the end of the test lets go of it. */
static MR_VEC(mr_stream *) made_streams;
static MR_VEC(mr_event *) made_events;
static MR_VEC(mr_tensor *) made_tensors;

#define OK(expression)                                                                             \
    do {                                                                                           \
        mr_status ok_status_ = (expression);                                                       \
        if (ok_status_) fail_msg("%s: %s", mr_code_text(ok_status_->code), ok_status_->message);   \
    } while (0)

/* The call fails with this code. */
#define FAILS(code_, expression)                                                                   \
    do {                                                                                           \
        mr_status fails_status_ = (expression);                                                    \
        assert_non_null(fails_status_);                                                            \
        assert_string_equal(mr_code_text(fails_status_->code), mr_code_text(code_));               \
        mr_error_destroy(fails_status_);                                                           \
    } while (0)

static size_t left_over;

static inline void note_left_over(const char *kind, size_t count) {
    print_error("%zu %s were not released\n", count, kind);
    left_over += count;
}

static inline void open_machine(const char *devices, const char *chooser) {
    mr_machine_options options = {.device = devices, .chooser = chooser};
    OK(mr_machine_open(&mr_virtual_backend, &options, &machine));
    caller = (mr_caller){.machine = machine};
    device = machine->devices[0];
    machine->hooks.left_over = note_left_over;
}

static inline int setup(void **state) {
    (void)state;
    open_machine(NULL, NULL);
    return 0;
}

static inline int teardown(void **state) {
    (void)state;
    while (made_tensors.count) {
        mr_tensor *t = mr_vec_pop(&made_tensors);
        mr_storage_drop_handle(t->storage);
        mr_tensor_release(t);
    }
    while (made_events.count) mr_event_release(mr_vec_pop(&made_events));
    while (made_streams.count) mr_stream_release(mr_vec_pop(&made_streams));
    mr_vec_free(&made_tensors);
    mr_vec_free(&made_events);
    mr_vec_free(&made_streams);
    left_over = 0;
    mr_machine_close(machine);
    machine = NULL;
    return left_over ? -1 : 0;
}

static inline void set(const char *name, int64_t value) {
    OK(mr_virtual_backend.simulator->set_setting(machine, name, value));
}

static inline void choose(const char *chooser) {
    OK(mr_virtual_backend.simulator->set_chooser(machine, chooser));
}

/* ---- objects */

static inline mr_stream *stream_with(bool nonblocking, int priority) {
    mr_stream *stream;
    mr_stream_options options = {.nonblocking = nonblocking, .priority = priority};
    OK(mr_stream_create(&caller, device, &options, &stream));
    assert_true(mr_vec_push(&made_streams, stream));
    return stream;
}
static inline mr_stream *blocking_stream(void) {
    return stream_with(false, 0);
}
static inline mr_stream *free_stream(void) { /* cudaStreamNonBlocking */
    return stream_with(true, 0);
}

static inline mr_event *new_event(void) {
    mr_event *event;
    mr_event_options options = {.timing = true};
    OK(mr_event_create(&caller, &options, &event));
    assert_true(mr_vec_push(&made_events, event));
    return event;
}

static inline mr_event *record(mr_stream *stream) {
    mr_event *event = new_event();
    OK(mr_event_record(&caller, event, stream));
    return event;
}

static inline bool event_done(mr_event *event) {
    bool done;
    OK(mr_event_query(&caller, event, &done));
    return done;
}

static inline bool stream_done(mr_stream *stream) {
    bool done;
    OK(mr_stream_query(&caller, stream, &done));
    return done;
}

static inline double host_ms(void) {
    return (double)mr_machine_time(machine) * 1e-6;
}

static inline mr_tensor *tensor_of(mr_memory_kind kind, mr_stream *stream, int64_t size) {
    mr_tensor *t;
    OK(mr_tensor_create(&caller, kind, stream, MR_I32, 1, &size, &t));
    assert_true(mr_vec_push(&made_tensors, t));
    return t;
}
static inline mr_tensor *tensor(mr_stream *stream, int64_t size) {
    return tensor_of(MR_MEMORY_DEVICE, stream, size);
}
static inline void drop(mr_tensor *t) {
    size_t i = 0;
    while (made_tensors.items[i] != t) i++;
    made_tensors.items[i] = mr_vec_pop(&made_tensors);
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}
/* The bytes as they are, without asking anyone. */
static inline int32_t *values(const mr_tensor *t) {
    return mr_tensor_data(t);
}

/* ---- work */

static inline uint64_t ns(double ms) {
    return (uint64_t)(ms * 1e6 + 0.5);
}

/* Occupies `blocks` whole SMs. */
static inline void occupy(mr_stream *stream, double ms, uint32_t blocks) {
    mr_abstract op = {.name = "occupy", .duration_ns = ns(ms), .blocks = blocks, .stream = stream};
    OK(mr_abstract_op(&caller, &op));
}

static inline void fill(mr_stream *stream, mr_tensor *t, int32_t value) {
    mr_tensor *out;
    bool fresh;
    mr_call call = {.out = t, .stream = stream};
    call.in[0].scalar = (mr_scalar){true, false, value, value};
    OK(mr_call_run(&caller, mr_op_find("fill"), &call, &out, &fresh));
    mr_tensor_release(out);
}

/* writes[0] = mix(reads), in `ms`. */
static inline void mix(mr_stream *stream, const char *name, double ms, mr_tensor *write,
                       mr_tensor *read) {
    mr_abstract op = {.name = name,
                      .writes = &write,
                      .write_count = 1,
                      .reads = &read,
                      .read_count = read ? 1 : 0,
                      .duration_ns = ns(ms),
                      .blocks = 1,
                      .stream = stream};
    OK(mr_abstract_op(&caller, &op));
}

static inline void copy(mr_stream *stream, mr_tensor *to, mr_tensor *from) {
    OK(mr_memcpy(&caller, to, from, stream, false));
}

/* ---- when a kernel ran */

typedef struct {
    mr_event *start, *end;
} span;

static inline span kernel(mr_stream *stream, double ms) {
    span k;
    k.start = record(stream);
    OK(mr_spin(&caller, stream, ns(ms)));
    k.end = record(stream);
    return k;
}

static inline span wide_kernel(mr_stream *stream, double ms, uint32_t blocks) {
    span k;
    k.start = record(stream);
    occupy(stream, ms, blocks);
    k.end = record(stream);
    return k;
}

static inline double between(mr_event *from, mr_event *to) {
    double ms;
    OK(mr_event_elapsed(from, to, &ms));
    return ms;
}

static inline void assert_ms(double actual, double expected) {
    if (actual < expected - 0.1 || actual > expected + 0.1)
        fail_msg("%g ms, expected %g ms", actual, expected);
}

/* `k` ran from..to, in ms after `base` was recorded. The start of a kernel is not that of its record
 * when the device made it wait, so the end is what counts; `from` follows from the length. */
static inline void assert_ran(mr_event *base, span k, double to) {
    assert_ms(between(base, k.end), to);
}

#endif
