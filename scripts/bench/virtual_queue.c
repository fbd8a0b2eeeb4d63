/* The cost of the virtual GPU's own bookkeeping for a command, without Lua: nanoseconds from the creation of a command
 * to its destruction, for the common kinds of commands.
 *
 *     make build/libmillrace.a && cc -O2 -D_GNU_SOURCE -Isrc scripts/bench/virtual_queue.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/virtual_queue && /tmp/virtual_queue
 */
#include <stdio.h>
#include <stdlib.h>

#include "ops/call.h"
#include "support.h"
#include "virtual/virtual.h"

static double started;
static void start(void) {
    started = now_ns();
}
static void report(const char *what, long commands) {
    printf("%-44s %8.1f ns\n", what, (now_ns() - started) / (double)commands);
}

static mr_machine *machine;
static mr_caller caller; /* of the machine */

static mr_stream *new_stream(void) {
    mr_stream *stream;
    mr_stream_options options = {.nonblocking = true};
    check(mr_stream_create(&caller, machine->devices[0], &options, &stream));
    return stream;
}

static mr_event *new_event(void) {
    mr_event *event;
    mr_event_options options = {0};
    check(mr_event_create(&caller, &options, &event));
    return event;
}

static mr_tensor *new_tensor(mr_stream *stream, int64_t size) {
    mr_tensor *t;
    mr_placement place = {MR_MEMORY_DEVICE, machine->devices[0], stream};
    check(mr_create_empty(&caller, &place, MR_F32, 1, &size, &t));
    return t;
}

/* The command as the operation table would make it, without the checks of the arguments. */
static void submit_op(const mr_op *row, mr_stream *stream, mr_tensor *t) {
    mr_command *command;
    check(mr_command_create(&caller, MR_COMMAND_OP, stream, row->name, 1, &command));
    mr_command_set_operand(command, 0, t, MR_WRITE);
    command->u.op.row = row;
    check(mr_command_submit(command));
}

static void synchronize(void) {
    check(mr_device_synchronize(&caller, machine->devices[0]));
}

int main(void) {
    enum { N = 1000000, STREAMS = 4, MANY = 10000 };
    check(mr_machine_open(&mr_virtual_backend, NULL, &machine));
    caller = (mr_caller){.machine = machine};
    const mr_op *fill = mr_op_find("zero");
    if (!fill) fill = mr_op_find("fill");
    mr_stream *s[STREAMS];
    mr_event *e[STREAMS];
    mr_tensor *t[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        s[i] = new_stream();
        e[i] = new_event();
        t[i] = new_tensor(s[i], 4);
    }
    synchronize();

    start();
    for (long i = 0; i < N; i++) submit_op(fill, s[0], t[0]);
    synchronize();
    report("tiny operations, one stream", N);

    start();
    for (long i = 0; i < N; i++) submit_op(fill, s[i % STREAMS], t[i % STREAMS]);
    synchronize();
    report("tiny operations, four streams", N);

    start();
    for (long i = 0; i < N; i++) check(mr_event_record(&caller, e[0], s[0]));
    synchronize();
    report("records", N);

    start();
    for (long i = 0; i < N / 2; i++) {
        check(mr_event_record(&caller, e[0], s[0]));
        check(mr_stream_wait_event(&caller, s[1], e[0]));
    }
    synchronize();
    report("record and wait, each", N);

    start();
    for (long i = 0; i < N / 3; i++) {
        int k = (int)(i % STREAMS);
        submit_op(fill, s[k], t[k]);
        check(mr_event_record(&caller, e[k], s[k]));
        check(mr_stream_wait_event(&caller, s[(k + 1) % STREAMS], e[k]));
    }
    synchronize();
    report("operation, record, wait, four streams", N);

    start();
    for (long i = 0; i < N / 4; i++) {
        mr_tensor *x = new_tensor(s[i % STREAMS], 4);
        mr_storage_drop_handle(x->storage);
        mr_tensor_release(x);
    }
    synchronize();
    report("allocate and free a tensor, each of two", N / 2);

    check(machine->backend->simulator->set_setting(machine, "launch_queue_depth", INT64_MAX));
    for (long count = 10000; count <= N; count *= 10) {
        char what[64];
        check(mr_spin(&caller, s[0], (uint64_t)1 << 50));
        start();
        for (long i = 0; i < count; i++) submit_op(fill, s[0], t[0]);
        synchronize();
        snprintf(what, sizeof what, "%ld pending operations on one stream", count);
        report(what, count);
    }
    static mr_stream *many[MANY];
    start();
    for (int i = 0; i < MANY; i++) many[i] = new_stream();
    report("create one of 10,000 streams", MANY);
    start();
    for (long i = 0; i < N; i++) submit_op(fill, many[i % MANY], t[0]);
    synchronize();
    report("operations over 10,000 streams", N);
    start();
    for (int i = 0; i < MANY; i++) mr_stream_release(many[i]);
    report("close one of 10,000 streams", MANY);

    for (int i = 0; i < STREAMS; i++) {
        mr_storage_drop_handle(t[i]->storage);
        mr_tensor_release(t[i]);
        mr_event_release(e[i]);
        mr_stream_release(s[i]);
    }
    mr_machine_close(machine);
    return 0;
}
