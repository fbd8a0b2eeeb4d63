/* How many schedules a second of one core the exploration carries out: programs of small operations on three streams.
 * Then what several processes make of one search: by the clock on the wall, so nothing else may run beside it. `busiest`
 * is the processor time of the process that had most.
 *
 *     make CUDA=0 build/libmillrace.a && cc -O2 -D_GNU_SOURCE -Isrc scripts/bench/explore.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/explore && /tmp/explore
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "explore/explore.h"
#include "ops/call.h"
#include "support.h"
#include "virtual/virtual.h"

enum { STREAMS = 3, MOST_TENSORS = 20 };

typedef struct {
    const char *name;
    int ops, tensors;
    bool waits; /* each operation comes after the one before in another stream */
    uint64_t most;
    bool apart; /* each tensor has a race of its own */
} program;

static mr_caller caller;
static mr_stream *streams[STREAMS];
static mr_tensor *tensors[MOST_TENSORS];

/* Operation i reads one tensor and writes another; or two of them race on each tensor. */
static void submit(const program *p, int i) {
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    int to = p->apart ? i / 2 : i, from = p->apart ? to : i + 1;
    mr_tensor *write = tensors[to % p->tensors], *read = tensors[from % p->tensors];
    mr_abstract op = {.name = names[i % 8],
                      .writes = &write,
                      .write_count = 1,
                      .reads = &read,
                      .read_count = p->tensors > 1,
                      .duration_ns = 1000,
                      .blocks = 1,
                      .stream = streams[i % STREAMS]};
    caller.where = (mr_site){"bench.lua", i + 1};
    check(mr_abstract_op(&caller, &op));
    if (p->waits)
        check(mr_stream_wait_stream(&caller, streams[(i + 1) % STREAMS], streams[i % STREAMS]));
}

static mr_status run(void *context, mr_explore_value *out) {
    const program *p = context;
    for (int i = 0; i < p->ops; i++) submit(p, i);
    check(mr_device_drain(caller.machine->devices[0]));
    mr_buffer_puts(&out->text, "done");
    for (int t = 0; t < p->tensors; t++) {
        mr_tensor_retain(tensors[t]);
        if (!mr_vec_push(&out->tensors, tensors[t])) abort();
    }
    return MR_OK;
}

/* Memory from before begins each run with the same bytes. */
static mr_status begin(void *context) {
    const program *p = context;
    for (int t = 0; t < p->tensors; t++) memset(mr_tensor_data(tensors[t]), 0, 16);
    return MR_OK;
}

static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

enum { LEAST_TIMES = 3 };
#define LEAST_SECONDS 0.1

/* By the processor's time: the search is one thread, and other programs may run beside it. A short exploration is
 * repeated. */
static void measure(const program *p) {
    mr_explore_options options = {.overtaking = -1, .most = p->most};
    mr_explore_subject subject = {
        .context = (void *)p, .machine = caller.machine, .begin = begin, .run = run};
    double began = cpu_seconds(), seconds = 0;
    unsigned times = 0;
    size_t outcomes = 0;
    uint64_t schedules = 0;
    for (; times < LEAST_TIMES || seconds < LEAST_SECONDS; times++) {
        mr_explore_result r;
        check(mr_explore(&subject, &options, &r));
        schedules = r.schedules;
        outcomes = r.outcomes.count;
        mr_explore_result_free(&r);
        seconds = cpu_seconds() - began;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    seconds /= times;
    printf("%-40s %9llu %8zu %8.2f %10.0f %7ld\n", p->name, (unsigned long long)schedules, outcomes,
           1e3 * seconds, (double)schedules / seconds, usage.ru_maxrss / 1024);
}

static double wall_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void measure_shared(void) {
    static const program large = {"16 ops, 1 tensor", 16, 1, false, 3000000};
    static const unsigned counts[] = {1, 2, 4, 8};
    printf("\n%-40s %9s %8s %8s %8s %8s\n", large.name, "schedules", "outcomes", "seconds",
           "busiest", "speedup");
    double alone = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        mr_explore_result r;
        mr_explore_options options = {.overtaking = -1, .most = large.most, .workers = counts[i]};
        mr_explore_subject subject = {
            .context = (void *)&large, .machine = caller.machine, .begin = begin, .run = run};
        double began = wall_seconds();
        check(mr_explore(&subject, &options, &r));
        double seconds = wall_seconds() - began;
        if (!i) alone = seconds;
        printf("%u %-38s %9llu %8zu %8.3f %8.3f %8.2f\n", counts[i],
               counts[i] > 1 ? "processes" : "process", (unsigned long long)r.schedules,
               r.outcomes.count, seconds, r.seconds, alone / seconds);
        mr_explore_result_free(&r);
    }
}

int main(void) {
    static const program programs[] = {
        {"10 ops, 2 tensors", 10, 2, false, 300000},
        {"10 ops, 3 tensors", 10, 3, false, 300000},
        {"10 ops, 8 tensors", 10, 8, false, 0},
        {"6 ops, 2 tensors", 6, 2, false, 0},
        {"10 ops in a chain", 10, 2, true, 0},
        {"16 ops, 8 tensors", 16, 8, false, 300000},
        {"60 ops in a chain", 60, 2, true, 0},
        {"20 races, 20 tensors", 40, 20, false, 0, true},
    };
    mr_machine *machine;
    check(mr_machine_open(&mr_virtual_backend, NULL, &machine));
    caller = (mr_caller){.machine = machine};
    for (int i = 0; i < STREAMS; i++) {
        mr_stream_options options = {.nonblocking = true};
        check(mr_stream_create(&caller, machine->devices[0], &options, &streams[i]));
    }
    for (int t = 0; t < MOST_TENSORS; t++) {
        int64_t size = 4;
        check(mr_tensor_create(&caller, MR_MEMORY_DEVICE, machine->devices[0]->legacy, MR_F32, 1,
                               &size, &tensors[t]));
    }
    check(mr_device_drain(machine->devices[0]));
    printf("%-40s %9s %8s %8s %10s %7s\n", "program", "schedules", "outcomes", "ms", "schedules/s",
           "MiB");
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) measure(&programs[i]);
    measure_shared();
    for (int t = 0; t < MOST_TENSORS; t++) {
        mr_storage_drop_handle(tensors[t]->storage);
        mr_tensor_release(tensors[t]);
    }
    for (int i = 0; i < STREAMS; i++) mr_stream_release(streams[i]);
    mr_machine_close(machine);
    return 0;
}
