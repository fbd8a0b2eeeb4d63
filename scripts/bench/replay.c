/* What carrying out a recorded program costs a command, beside the same commands made and submitted by hand.
 *
 *     make CUDA=0 build/libmillrace.a && cc -O2 -D_GNU_SOURCE -Isrc scripts/bench/replay.c \
 *         build/libmillrace.a -ldl -lm -lpthread -o /tmp/replay && /tmp/replay
 */
#include <stdio.h>
#include <stdlib.h>

#include "ops/call.h"
#include "ops/ids.h"
#include "program/program.h"
#include "support.h"
#include "virtual/virtual.h"

enum { N = 100000, STREAMS = 4 };

static mr_caller caller;
static mr_stream *s[STREAMS];
static mr_event *e[STREAMS];
static mr_tensor *t[STREAMS];

static void submit_op(const mr_op *row, int i) {
    mr_command *command;
    check(mr_command_create(&caller, MR_COMMAND_OP, s[i], row->name, 1, &command));
    mr_command_set_operand(command, 0, t[i], MR_WRITE);
    command->u.op.row = row;
    check(mr_command_submit(command));
}

static void operations(void) {
    const mr_op *row = &mr_ops[MR_OP_fill];
    for (long i = 0; i < N; i++) submit_op(row, (int)(i % STREAMS));
}

static void records(void) {
    for (long i = 0; i < N; i++) check(mr_event_record(&caller, e[0], s[0]));
}

static void pipeline(void) {
    const mr_op *row = &mr_ops[MR_OP_fill];
    for (long i = 0; i < N / 3; i++) {
        int k = (int)(i % STREAMS);
        submit_op(row, k);
        check(mr_event_record(&caller, e[k], s[k]));
        check(mr_stream_wait_event(&caller, s[(k + 1) % STREAMS], e[k]));
    }
}

static void open_machine(mr_machine **out_machine) {
    check(mr_machine_open(&mr_virtual_backend, NULL, out_machine));
    caller = (mr_caller){.machine = *out_machine};
}

static void make_objects(mr_device *device) {
    int64_t size = 4;
    for (int i = 0; i < STREAMS; i++) {
        mr_stream_options stream = {.nonblocking = true};
        mr_event_options event = {0};
        check(mr_stream_create(&caller, device, &stream, &s[i]));
        check(mr_event_create(&caller, &event, &e[i]));
        check(mr_tensor_create(&caller, MR_MEMORY_DEVICE, s[i], MR_F32, 1, &size, &t[i]));
    }
}

static void drop_objects(void) {
    for (int i = 0; i < STREAMS; i++) {
        mr_storage_drop_handle(t[i]->storage);
        mr_tensor_release(t[i]);
        mr_event_release(e[i]);
        mr_stream_release(s[i]);
    }
}

static double by_hand(void (*run)(void), mr_program **out_program) {
    mr_machine *machine;
    mr_recorder *recorder = NULL;
    open_machine(&machine);
    if (out_program) check(mr_program_record(machine, 0, &recorder));
    make_objects(machine->devices[0]);
    double began = now_ns();
    run();
    check(mr_device_synchronize(&caller, machine->devices[0]));
    double took = now_ns() - began;
    if (out_program) check(mr_recorder_finish(recorder, out_program));
    drop_objects();
    mr_machine_close(machine);
    return took / N;
}

static double replayed(const mr_program *program) {
    mr_player *player;
    mr_difference difference = {0};
    mr_player_options options = {.backend = &mr_virtual_backend};
    check(mr_player_open(program, &options, &player));
    double began = now_ns();
    check(mr_player_run(player, SIZE_MAX, &difference));
    double took = now_ns() - began;
    if (difference.kind) fprintf(stderr, "the replay differs: %s\n", difference.text);
    mr_player_close(player);
    return took / N;
}

static double least(double a, double b) {
    return a < b ? a : b;
}

static void measure(const char *what, void (*run)(void)) {
    mr_program *program;
    double recording = by_hand(run, &program), hand = 1e9, replay = 1e9;
    for (int i = 0; i < 7; i++) {
        hand = least(hand, by_hand(run, NULL));
        replay = least(replay, replayed(program));
    }
    printf("%-40s by hand %6.1f ns, recorded %6.1f ns, replayed %6.1f ns: %5.1f million a second\n", what, hand,
           recording, replay, 1e3 / replay);
    mr_program_release(program);
}

int main(void) {
    measure("tiny operations, four streams", operations);
    measure("records", records);
    measure("operation, record, wait, four streams", pipeline);
    return 0;
}
