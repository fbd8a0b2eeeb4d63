/* The cost of a checkpoint of the virtual GPU and of going back to it, without Lua. A machine has ten small tensors on
 * three streams. It is idle, has ten operations pending, or has carried these out in between.
 *
 *     make build/libmillrace.a && cc -O2 -D_GNU_SOURCE -Isrc scripts/bench/checkpoint.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/checkpoint && /tmp/checkpoint
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/call.h"
#include "support.h"
#include "virtual/virtual.h"

enum { STREAMS = 3, TENSORS = 10, ROUNDS = 200000, REPEATS = 7 };

static mr_machine *machine;
static mr_caller caller;
static mr_stream *streams[STREAMS];
static mr_tensor *tensors[TENSORS];

static void submit(int i) {
    mr_tensor *write = tensors[i], *read = tensors[(i + 1) % TENSORS];
    mr_abstract op = {.name = "op",
                      .writes = &write,
                      .write_count = 1,
                      .reads = &read,
                      .read_count = 1,
                      .duration_ns = 1000,
                      .blocks = 1,
                      .stream = streams[i % STREAMS]};
    check(mr_abstract_op(&caller, &op));
}

static void make_objects(void) {
    mr_machine_options options = {.chooser = "manual"};
    check(mr_machine_open(&mr_virtual_backend, &options, &machine));
    caller = (mr_caller){.machine = machine};
    for (int i = 0; i < STREAMS; i++) {
        mr_stream_options stream = {.nonblocking = true};
        check(mr_stream_create(&caller, machine->devices[0], &stream, &streams[i]));
    }
    for (int i = 0; i < TENSORS; i++) {
        int64_t size = 64;
        check(mr_tensor_create(&caller, MR_MEMORY_DEVICE, streams[i % STREAMS], MR_F32, 1, &size,
                               &tensors[i]));
        memset(mr_tensor_data(tensors[i]), 1, 256);
    }
    check(mr_device_synchronize(&caller, machine->devices[0]));
}

/* The least of several repeats, and with `steps`, less what the steps alone take. */
static double measure(int steps) {
    const mr_simulator *simulator = machine->backend->simulator;
    double least = 1e18;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        double in_steps = 0, started = now_ns();
        for (int round = 0; round < ROUNDS; round++) {
            mr_checkpoint *c;
            check(simulator->checkpoint(machine, &c));
            double before = steps ? now_ns() : 0;
            for (int i = 0; i < steps; i++) {
                char text[128];
                bool moved;
                check(simulator->step(machine, NULL, &moved, text, sizeof text));
            }
            if (steps) in_steps += now_ns() - before;
            check(simulator->restore(machine, c));
            simulator->checkpoint_drop(machine, c);
        }
        double each = (now_ns() - started - in_steps) / ROUNDS;
        if (each < least) least = each;
    }
    return least;
}

static void report(const char *what, int steps) {
    printf("%-60s %8.0f ns\n", what, measure(steps));
}

int main(void) {
    make_objects();
    report("checkpoint, restore: ten small tensors, nothing pending", 0);
    for (int i = 0; i < TENSORS; i++) submit(i);
    report("the same with ten operations pending", 0);
    report("the same, five of them carried out in between (not counted)", 5);
    mr_machine_close(machine);
    return 0;
}
