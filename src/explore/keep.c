/* Keeps what a function of the script finds outside of itself and may change: see keep.h. Bytes are kept by an
 * observer, which is asked before each command; bytes that no command touches are never copied. */
#include "explore/keep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/backend.h"
#include "model/hosts.h"
#include "model/observer.h"
#include "model/simulator.h"
#include "ops/kernel.h"

typedef struct {
    mr_storage *storage; /* one reference */
    char *bytes;
} kept;

struct mr_explore_keeper {
    mr_observer observer;
    mr_machine *machine;
    uint64_t newest;        /* id of a storage */
    uint32_t newest_stream; /* ids of a stream and of an event */
    uint32_t newest_event;
    mr_machine_numbers numbers; /* before it */
    /* what the function has freed or closed of the objects outside; "" */
    char ended[200];
    uint32_t epoch;
    bool failed, prints;
    mr_device *device;   /* that was current */
    mr_stream **streams; /* by device: likewise; one reference each */
    uint64_t *peers;     /* by device: those whose memory it may reach */
    bool launch_blocking;
    MR_VEC(kept) kept;
};

static bool is_kept(const mr_explore_keeper *k, const mr_storage *storage) {
    for (size_t i = 0; i < k->kept.count; i++)
        if (k->kept.items[i].storage == storage) return true;
    return false;
}

static void keep(mr_explore_keeper *k, mr_storage *storage) {
    if (storage->id > k->newest || !storage->host || storage->freed || is_kept(k, storage)) return;
    kept one = {storage, malloc(storage->bytes + 1)};
    if (!one.bytes || !mr_vec_push(&k->kept, one)) {
        free(one.bytes);
        k->failed = true;
        return;
    }
    memcpy(one.bytes, storage->host, storage->bytes);
    mr_storage_retain(storage);
}

/* A function cannot repeat the moment at which Lua's collector takes a tensor that another stream still uses. So during
 * a run the collector takes no tensors by itself; all garbage is collected before the host's next wait. */
static mr_status may(mr_observer *observer, const mr_command *command) {
    mr_explore_keeper *k =
        (mr_explore_keeper *)((char *)observer - offsetof(mr_explore_keeper, observer));
    k->prints |= mr_kernel_may_print(command);
    for (uint32_t i = 0; i < command->operand_count; i++)
        keep(k, command->operands[i].tensor->storage);
    if (mr_command_crosses(command)) command->machine->memory.collect_before_wait = true;
    return MR_OK;
}

static void note_end(mr_explore_keeper *k, const char *what, mr_site where) {
    if (*k->ended) return;
    snprintf(k->ended, sizeof k->ended, "the function %s from outside (%s:%d)", what, where.file,
             where.line);
}

bool mr_explore_had_storage(const mr_explore_keeper *k, const mr_storage *storage) {
    return storage->id <= k->newest;
}

bool mr_explore_had_stream(const mr_explore_keeper *k, const mr_stream *stream) {
    return stream->id <= k->newest_stream;
}

bool mr_explore_may_print(const mr_explore_keeper *k) {
    return k->prints;
}

bool mr_explore_had_event(const mr_explore_keeper *k, const mr_event *event) {
    return event->id <= k->newest_event;
}

static const char cure[] = "make what it frees or closes inside of it";

mr_status mr_explore_refuse_end(mr_explore_keeper *k, const char *what, mr_site where) {
    note_end(k, what, where);
    return mr_fail(MR_CODE_NOT_PERMITTED,
                   "not permitted here: the function %s from outside, and its other runs need it: "
                   "%s",
                   what, cure);
}

/* Memory that a graph has freed cannot be put back. A free by Lua's collector has no line: the function could no longer
 * reach that memory. */
static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_explore_keeper *k =
        (mr_explore_keeper *)((char *)observer - offsetof(mr_explore_keeper, observer));
    (void)host_waited;
    if (!command->where.file) return;
    if (command->kind == MR_COMMAND_FREE && mr_explore_had_storage(k, command->u.storage))
        note_end(k, "frees a tensor", command->where);
}

/* Keeps the current device and streams, and the settings of the machine that the function can change. */
static bool keep_current(mr_explore_keeper *k) {
    mr_machine *machine = k->machine;
    k->device = machine->current_device;
    k->streams = calloc((size_t)machine->device_count, sizeof(mr_stream *));
    k->peers = calloc((size_t)machine->device_count, sizeof *k->peers);
    k->launch_blocking = machine->launch_blocking;
    for (int i = 0; k->streams && k->peers && i < machine->device_count; i++) {
        k->peers[i] = machine->devices[i]->peers;
        k->streams[i] = machine->devices[i]->current;
        mr_stream_retain(k->streams[i]);
    }
    return k->streams && k->peers;
}

/* A stream from before a reset is not restored. */
static void put_back_current(const mr_explore_keeper *k) {
    mr_machine *machine = k->machine;
    for (int i = 0; i < machine->device_count && k->epoch == machine->epoch; i++)
        mr_error_destroy(mr_stream_set_current(k->streams[i]));
    mr_machine_set_device(machine, k->device);
    for (int i = 0; i < machine->device_count; i++)
        mr_device_keep_peers(machine->devices[i], k->peers[i]);
    if (machine->launch_blocking != k->launch_blocking)
        mr_machine_set_launch_blocking(machine, k->launch_blocking);
}

static void forget_current(mr_explore_keeper *k) {
    for (int i = 0; k->streams && i < k->machine->device_count; i++)
        if (k->streams[i]) mr_stream_release(k->streams[i]);
    free(k->streams);
    free(k->peers);
}

static void number_from_here(mr_machine *machine) {
    machine->numbers = (mr_machine_numbers){
        .streams = {.older = machine->counts.next_stream},
        .events = {.older = machine->counts.next_event},
        .graphs = {.older = machine->captures.next_id},
    };
}

static void number_again(mr_earlier_calls *calls, uint64_t last_id) {
    calls->earlier = last_id - calls->older;
}

mr_status mr_explore_keep(mr_machine *machine, mr_explore_keeper **out_keeper) {
    mr_explore_keeper *k = *out_keeper = calloc(1, sizeof *k);
    if (!k) return mr_no_memory("to keep what a function changes");
    k->observer = (mr_observer){.name = "keeper", .may = may, .did = did};
    k->machine = machine;
    k->newest = machine->counts.next_storage;
    k->newest_stream = machine->counts.next_stream;
    k->newest_event = machine->counts.next_event;
    k->numbers = machine->numbers;
    number_from_here(machine);
    k->epoch = machine->epoch;
    mr_status status = keep_current(k) ? mr_observer_add(machine, &k->observer)
                                       : mr_no_memory("to keep what a function changes");
    machine->memory.host_begins_zero = !status;
    if (!status) return MR_OK;
    forget_current(k);
    free(k);
    *out_keeper = NULL;
    return status;
}

static bool is_there(const mr_explore_keeper *k, const mr_storage *storage) {
    if (storage->freed || !storage->host) return false;
    return storage->kind != MR_MEMORY_DEVICE || k->epoch == k->machine->epoch;
}

mr_status mr_explore_put_back(mr_explore_keeper *k) {
    put_back_current(k);
    number_again(&k->machine->numbers.streams, k->machine->counts.next_stream);
    number_again(&k->machine->numbers.events, k->machine->counts.next_event);
    number_again(&k->machine->numbers.graphs, k->machine->captures.next_id);
    for (size_t i = 0; i < k->kept.count; i++) {
        const kept *one = &k->kept.items[i];
        if (is_there(k, one->storage)) memcpy(one->storage->host, one->bytes, one->storage->bytes);
    }
    if (k->failed) return mr_no_memory("to keep what a function changes");
    if (!*k->ended) return MR_OK;
    mr_status status =
        mr_fail(MR_CODE_NOT_PERMITTED, "%s, so it cannot be called again: %s", k->ended, cure);
    *k->ended = 0; /* raised once: the last restore must not hide the first error */
    return status;
}

void mr_explore_let_go(mr_explore_keeper *k) {
    if (!k) return;
    mr_observer_remove(k->machine, &k->observer);
    k->machine->numbers = k->numbers;
    k->machine->memory.host_begins_zero = false;
    if (k->machine->backend->simulator)
        k->machine->backend->simulator->drop_spares(k->machine, SIZE_MAX);
    k->machine->memory.stay_until_end = 0;
    k->machine->memory.collect_before_wait = false;
    for (size_t i = 0; i < k->kept.count; i++) {
        mr_storage_release(k->kept.items[i].storage);
        free(k->kept.items[i].bytes);
    }
    mr_vec_free(&k->kept);
    forget_current(k);
    free(k);
}
