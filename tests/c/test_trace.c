/* The entries of a tracer: calls, runs, and their causes; bounded, and undone with the machine. */
#include "model/backend.h"
#include "trace/record/tracer.h"
#include "virtual_fixture.h"

static mr_tracer *tracer;

static void start(size_t most) {
    OK(mr_tracer_start(machine, most, &tracer));
}

static const mr_trace *trace_now(void) {
    mr_trace *trace;
    OK(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    return trace;
}

static const mr_trace *stop(void) {
    const mr_trace *trace = trace_now();
    mr_tracer_stop(tracer);
    tracer = NULL;
    return trace;
}

/* The n-th span, from 0, of a command of that kind. */
static const mr_span *nth(const mr_trace *trace, mr_command_id kind, int n) {
    const mr_span *spans = mr_trace_spans(trace);
    for (size_t i = 0; i < mr_trace_count(trace); i++)
        if (spans[i].kind == kind && n-- == 0) return &spans[i];
    fail_msg("there is no such span");
    return NULL;
}

static uint32_t index_of(const mr_trace *trace, const mr_span *of) {
    return (uint32_t)(of - mr_trace_spans(trace));
}

static void assert_held(const mr_trace *trace, const mr_span *held, mr_cause cause,
                        const mr_span *holder) {
    assert_string_equal(mr_cause_text(held->held_by), mr_cause_text(cause));
    assert_int_equal(held->holder, holder ? index_of(trace, holder) : MR_TRACE_NONE);
}

static void spin(mr_stream *stream, double ms) {
    OK(mr_spin(&caller, stream, ns(ms)));
}

static void wait(mr_stream *stream, mr_event *event) {
    OK(mr_stream_wait_event(&caller, stream, event));
}

static void sync(mr_stream *stream) {
    OK(mr_stream_synchronize(&caller, stream));
}

/* ---- times */

static void spans_have_the_times_that_events_have(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_event *base = record(a);
    sync(a);
    start(0);
    span first = kernel(a, 1);
    wait(b, first.end);
    span second = kernel(b, 2);
    sync(b);
    const mr_trace *trace = stop();
    const mr_span *one = nth(trace, MR_COMMAND_OP, 0), *two = nth(trace, MR_COMMAND_OP, 1);
    assert_true(one->called && one->ran && two->ran);
    assert_int_equal(one->end - one->begin, ns(1));
    assert_int_equal(two->end - two->begin, ns(2));
    double begin = between(base, first.start), end = between(base, second.end);
    assert_ms((double)(two->end - one->begin) * 1e-6, end - begin);
    assert_string_equal(mr_trace_stream_at(trace, one->stream)->name, "stream #3");
    assert_held(trace, two, MR_CAUSE_EVENT, nth(trace, MR_COMMAND_WAIT, 0));
    assert_held(trace, nth(trace, MR_COMMAND_WAIT, 0), MR_CAUSE_EVENT,
                nth(trace, MR_COMMAND_RECORD, 1));
    assert_int_equal(nth(trace, MR_COMMAND_WAIT, 0)->record,
                     index_of(trace, nth(trace, MR_COMMAND_RECORD, 1)));
    const mr_span *host = nth(trace, MR_COMMAND_STREAM_SYNC, 0);
    assert_true(host->host_waited && host->waited > ns(2.9));
    assert_true(host->returned >= two->end);
    assert_int_equal(mr_trace_facts_of(trace)->duration, host->returned);
    mr_trace_release(trace);
}

static void what_is_pending_has_no_times(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    start(0);
    spin(a, 5);
    const mr_trace *early = trace_now();
    sync(a);
    const mr_trace *late = stop();
    assert_false(nth(early, MR_COMMAND_OP, 0)->ran);
    assert_true(nth(early, MR_COMMAND_OP, 0)->called);
    assert_true(nth(late, MR_COMMAND_OP, 0)->ran);
    mr_trace_release(early);
    mr_trace_release(late);
}

static void what_was_submitted_before_has_no_call(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    spin(a, 5);
    spin(a, 5);
    start(0);
    sync(a);
    const mr_trace *trace = stop();
    assert_int_equal(mr_trace_count(trace), 3);
    assert_false(nth(trace, MR_COMMAND_OP, 0)->called);
    assert_true(nth(trace, MR_COMMAND_OP, 1)->ran);
    assert_ms((double)nth(trace, MR_COMMAND_OP, 1)->end * 1e-6, 10);
    mr_trace_release(trace);
}

/* ---- causes: a case for each */

static void the_same_stream_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    start(0);
    spin(a, 1);
    record(a);
    spin(a, 1);
    sync(a);
    const mr_trace *trace = stop();
    assert_held(trace, nth(trace, MR_COMMAND_OP, 1), MR_CAUSE_STREAM, nth(trace, MR_COMMAND_OP, 0));
    assert_held(trace, nth(trace, MR_COMMAND_OP, 0), MR_CAUSE_HOST, NULL);
    mr_trace_release(trace);
}

static void the_default_stream_holds_both_ways(void **state) {
    (void)state;
    mr_stream *a = blocking_stream();
    start(0);
    spin(a, 1);
    spin(device->legacy, 1);
    spin(a, 1);
    sync(a);
    const mr_trace *trace = stop();
    const mr_span *ops[] = {nth(trace, MR_COMMAND_OP, 0), nth(trace, MR_COMMAND_OP, 1),
                            nth(trace, MR_COMMAND_OP, 2)};
    assert_held(trace, ops[1], MR_CAUSE_DEFAULT_STREAM, ops[0]);
    assert_held(trace, ops[2], MR_CAUSE_DEFAULT_STREAM, ops[1]);
    mr_trace_release(trace);
}

static void full_multiprocessors_hold(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    start(0);
    occupy(a, 2, (uint32_t)device->properties.sm_count);
    occupy(b, 1, 1);
    sync(b);
    const mr_trace *trace = stop();
    const mr_span *second = nth(trace, MR_COMMAND_OP, 1);
    assert_held(trace, second, MR_CAUSE_MULTIPROCESSORS, nth(trace, MR_COMMAND_OP, 0));
    assert_true(second->begin - second->ready > ns(1.9));
    assert_int_equal(second->blocks, 1);
    mr_trace_release(trace);
}

static void a_busy_copy_engine_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *to[2] = {tensor(a, 1 << 22), tensor(b, 1 << 22)};
    mr_tensor *from = tensor_of(MR_MEMORY_PINNED, NULL, 1 << 22);
    start(0);
    copy(a, to[0], from);
    copy(b, to[1], from);
    OK(mr_device_synchronize(&caller, device));
    const mr_trace *trace = stop();
    const mr_span *second = nth(trace, MR_COMMAND_COPY, 1);
    assert_held(trace, second, MR_CAUSE_COPY_ENGINE, nth(trace, MR_COMMAND_COPY, 0));
    assert_int_equal(second->engine, MR_ENGINE_COPY_IN);
    assert_int_equal(second->bytes, 4 << 22);
    mr_trace_release(trace);
}

static void a_host_that_waited_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    start(0);
    spin(a, 3);
    sync(a);
    spin(b, 1);
    sync(b);
    const mr_trace *trace = stop();
    assert_held(trace, nth(trace, MR_COMMAND_OP, 1), MR_CAUSE_SYNCHRONIZE,
                nth(trace, MR_COMMAND_STREAM_SYNC, 0));
    mr_trace_release(trace);
}

static void a_pageable_copy_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *on_host = tensor_of(MR_MEMORY_PAGEABLE, NULL, 1 << 22), *t = tensor(a, 1 << 22);
    start(0);
    copy(a, on_host, t);
    spin(b, 1);
    sync(b);
    const mr_trace *trace = stop();
    assert_true(nth(trace, MR_COMMAND_COPY, 0)->host_waited);
    assert_held(trace, nth(trace, MR_COMMAND_OP, 0), MR_CAUSE_PAGEABLE,
                nth(trace, MR_COMMAND_COPY, 0));
    mr_trace_release(trace);
}

static mr_status do_nothing(void *context) {
    (void)context;
    return MR_OK;
}

static void a_host_function_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    start(0);
    spin(a, 1);
    OK(mr_stream_host_function(&caller, a, do_nothing, NULL, NULL));
    spin(a, 1);
    sync(a);
    const mr_trace *trace = stop();
    assert_held(trace, nth(trace, MR_COMMAND_OP, 1), MR_CAUSE_HOST_FUNCTION,
                nth(trace, MR_COMMAND_HOST_FUNCTION, 0));
    mr_trace_release(trace);
}

static void a_chooser_of_its_own_holds(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    choose("random:3");
    start(0);
    for (int i = 0; i < 4; i++) spin(i % 2 ? a : b, 1);
    OK(mr_device_synchronize(&caller, device));
    const mr_trace *trace = stop();
    int by_chooser = 0;
    for (int i = 0; i < 4; i++)
        by_chooser += nth(trace, MR_COMMAND_OP, i)->held_by == MR_CAUSE_CHOOSER;
    assert_true(by_chooser > 0);
    mr_trace_release(trace);
}

/* ---- where the host stands */

static void launch_blocking_ends_a_call_when_the_work_ends(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_machine_set_launch_blocking(machine, true);
    start(0);
    spin(a, 2);
    spin(a, 1);
    const mr_trace *trace = stop();
    const mr_span *one = nth(trace, MR_COMMAND_OP, 0), *two = nth(trace, MR_COMMAND_OP, 1);
    assert_true(one->returned >= one->end && two->returned >= two->end);
    assert_true(one->waited > ns(1.9) && two->waited > ns(0.9));
    assert_true(two->call >= one->returned);
    mr_trace_release(trace);
}

static void a_free_that_waits_shows_it(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 16);
    set("free_waits", 1);
    start(0);
    spin(a, 2);
    OK(mr_storage_free(&caller, t->storage, MR_FREE_SYNC, NULL));
    const mr_trace *trace = stop();
    assert_true(nth(trace, MR_COMMAND_FREE, 0)->waited > ns(1.9));
    mr_trace_release(trace);
}

/* ---- bounds */

static void the_oldest_are_forgotten(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    start(1000);
    for (int i = 0; i < 5000; i++) spin(a, 0.001);
    sync(a);
    assert_int_equal(mr_tracer_count(tracer), 5001);
    const mr_trace *trace = stop();
    assert_int_equal(mr_trace_count(trace), 1000);
    assert_int_equal(mr_trace_facts_of(trace)->forgotten, 4001);
    const mr_span *spans = mr_trace_spans(trace);
    for (size_t i = 0; i + 1 < 1000; i++) {
        assert_true(spans[i].ran);
        assert_int_equal(spans[i + 1].seq, spans[i].seq + 1);
    }
    mr_trace_release(trace);
}

static void a_snapshot_may_begin_later(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    start(0);
    for (int i = 0; i < 10; i++) spin(a, 1);
    uint64_t first = mr_tracer_count(tracer);
    for (int i = 0; i < 3; i++) spin(a, 1);
    sync(a);
    mr_trace *trace;
    OK(mr_tracer_snapshot(tracer, first, NULL, 0, &trace));
    assert_int_equal(mr_trace_count(trace), 4);
    mr_trace_release(trace);
    mr_tracer_stop(tracer);
}

/* ---- going back */

static void what_was_undone_has_not_run(void **state) {
    (void)state;
    const mr_simulator *simulator = machine->backend->simulator;
    mr_stream *a = free_stream();
    choose("manual");
    spin(a, 1);
    start(0);
    spin(a, 2);
    spin(a, 3);
    bool moved;
    char text[256];
    mr_checkpoint *points[3];
    for (int i = 0; i < 3; i++) {
        OK(simulator->checkpoint(machine, &points[i]));
        OK(simulator->step(machine, a, &moved, text, sizeof text));
    }
    const mr_trace *trace = trace_now();
    assert_int_equal(mr_trace_count(trace), 3);
    assert_true(nth(trace, MR_COMMAND_OP, 2)->ran);
    mr_trace_release(trace);
    OK(simulator->restore(machine, points[1]));
    trace = trace_now();
    assert_int_equal(mr_trace_count(trace), 3);
    assert_true(nth(trace, MR_COMMAND_OP, 0)->ran);
    assert_false(nth(trace, MR_COMMAND_OP, 1)->ran);
    mr_trace_release(trace);
    OK(simulator->restore(machine, points[0]));
    trace = trace_now();
    assert_int_equal(mr_trace_count(trace), 2); /* the one of before the trace has not run in it */
    mr_trace_release(trace);
    simulator->checkpoint_drop(machine, points[0]);
    OK(mr_device_synchronize(&caller, device));
    trace = stop();
    for (int i = 0; i < 3; i++) assert_true(nth(trace, MR_COMMAND_OP, i)->ran);
    mr_trace_release(trace);
}

/* ---- hazards */

static void hazards_name_spans(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    spin(a, 1);
    start(0);
    uint64_t seq = machine->counts.next_seq;
    spin(a, 1);
    sync(a);
    mr_tracer_hazard hazards[] = {{seq, seq + 1, "read-after-write", "a message", "a fix"},
                                  {seq + 100, 0, "read-after-write", "of nothing here", NULL}};
    mr_trace *trace;
    OK(mr_tracer_snapshot(tracer, 0, hazards, 2, &trace));
    assert_int_equal(mr_trace_hazard_count(trace), 1);
    assert_int_equal(mr_trace_hazard_at(trace, 0)->first,
                     index_of(trace, nth(trace, MR_COMMAND_OP, 1)));
    assert_string_equal(mr_trace_hazard_at(trace, 0)->message, "a message");
    mr_trace_release(trace);
    mr_tracer_stop(tracer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(spans_have_the_times_that_events_have),
        TEST(what_is_pending_has_no_times),
        TEST(what_was_submitted_before_has_no_call),
        TEST(the_same_stream_holds),
        TEST(the_default_stream_holds_both_ways),
        TEST(full_multiprocessors_hold),
        TEST(a_busy_copy_engine_holds),
        TEST(a_host_that_waited_holds),
        TEST(a_pageable_copy_holds),
        TEST(a_host_function_holds),
        TEST(a_chooser_of_its_own_holds),
        TEST(launch_blocking_ends_a_call_when_the_work_ends),
        TEST(a_free_that_waits_shows_it),
        TEST(the_oldest_are_forgotten),
        TEST(a_snapshot_may_begin_later),
        TEST(what_was_undone_has_not_run),
        TEST(hazards_name_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
