/* What tracing costs an action in processor time, without Lua: programs on the virtual GPU with a tracer and without one, in turn. And how long
 * it takes to make a trace of a million spans, and to ask it.
 *
 *     make build/libmillrace.a && cc -O2 -D_GNU_SOURCE -Isrc scripts/bench/trace.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/trace && /tmp/trace
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/call.h"
#include "support.h"
#include "trace/analysis.h"
#include "trace/record/tracer.h"
#include "virtual/virtual.h"

enum { STREAMS = 4, ACTIONS = 1000000, REPEATS = 7 };

static mr_machine *machine;
static mr_caller caller;
static mr_stream *streams[STREAMS];
static mr_event *events[STREAMS];
static mr_tensor *tensors[STREAMS];

/* The time of this process, so that others on the machine count less. */
static double cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void make_objects(void) {
    mr_machine_options options = {0};
    check(mr_machine_open(&mr_virtual_backend, &options, &machine));
    caller = (mr_caller){.machine = machine, .where = {"bench.lua", 1}};
    for (int i = 0; i < STREAMS; i++) {
        mr_stream_options stream = {.nonblocking = true};
        mr_event_options event = {0};
        int64_t size = 16;
        check(mr_stream_create(&caller, machine->devices[0], &stream, &streams[i]));
        check(mr_event_create(&caller, &event, &events[i]));
        check(
            mr_tensor_create(&caller, MR_MEMORY_DEVICE, streams[i], MR_F32, 1, &size, &tensors[i]));
    }
}

/* An operation; every other one is followed by a record and a wait of the next stream. */
static void act(int i) {
    int s = i % STREAMS, next = (s + 1) % STREAMS;
    mr_abstract op = {.name = "op",
                      .writes = &tensors[s],
                      .write_count = 1,
                      .duration_ns = 1000,
                      .blocks = 1,
                      .stream = streams[s]};
    caller.where.line = i % 100;
    if (i % 4 < 2) {
        check(mr_abstract_op(&caller, &op));
    } else if (i % 4 == 2) {
        check(mr_event_record(&caller, events[s], streams[s]));
    } else {
        check(mr_stream_wait_event(&caller, streams[next], events[2]));
    }
}

static double run(void) {
    double started = cpu_ns();
    for (int i = 0; i < ACTIONS; i++) {
        act(i);
        if (i % 10000 == 9999) check(mr_device_synchronize(&caller, machine->devices[0]));
    }
    return (cpu_ns() - started) / ACTIONS;
}

static double run_traced(size_t most) {
    mr_tracer *tracer;
    check(mr_tracer_start(machine, most, &tracer));
    double each = run();
    mr_tracer_stop(tracer);
    return each;
}

static void least(double *so_far, double now) {
    if (now < *so_far) *so_far = now;
}

static void measure_actions(void) {
    double off = 1e18, bounded = 1e18, all = 1e18;
    run();
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        least(&off, run());
        least(&bounded, run_traced(65536));
        least(&all, run_traced(0));
    }
    printf("ns an action, no tracer            %8.1f\n", off);
    printf("  more with the last 65536 kept    %8.1f\n", bounded - off);
    printf("  more with all kept               %8.1f\n", all - off);
}

static void measure_trace(void) {
    mr_tracer *tracer;
    mr_trace *trace;
    mr_trace_path path;
    mr_trace_why why;
    uint64_t overlap;
    check(mr_tracer_start(machine, 0, &tracer));
    run();
    double t0 = cpu_ns();
    check(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    double t1 = cpu_ns();
    check(mr_trace_overlap(trace, 0, 1, &overlap));
    double t2 = cpu_ns();
    check(mr_trace_critical_path(trace, &path));
    double t3 = cpu_ns();
    check(mr_trace_explain(trace, 0, ACTIONS - 4, &why));
    double t4 = cpu_ns();
    printf("of %zu spans, ms: trace %.0f, overlap %.0f, critical path %.0f, why %.0f\n",
           mr_trace_count(trace), (t1 - t0) * 1e-6, (t2 - t1) * 1e-6, (t3 - t2) * 1e-6,
           (t4 - t3) * 1e-6);
    mr_vec_free(&path);
    mr_trace_release(trace);
    mr_tracer_stop(tracer);
}

int main(void) {
    make_objects();
    measure_actions();
    measure_trace();
    return 0;
}
