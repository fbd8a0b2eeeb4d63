/* The machine's life, and the guards that every call passes: see machine.h.
 *
 * Easiest to break: the order of closing. Streams hold their device, so default streams go while the
 * backend still knows them, and the backend frees the devices last. */
#include "model/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/capture.h"
#include "model/given.h"
#include "model/history.h"
#include "model/internal.h"

#define COMMANDS_PER_CHUNK 256
#define STORAGES_PER_CHUNK 64
#define TENSORS_PER_CHUNK  64

static mr_status open_default_streams(const mr_caller *caller) {
    mr_machine *machine = caller->machine;
    for (int i = 0; i < machine->device_count; i++) {
        mr_device *device = machine->devices[i];
        MR_TRY(mr_stream_open_default(caller, device, MR_STREAM_LEGACY, &device->legacy));
        MR_TRY(mr_stream_open_default(caller, device, MR_STREAM_PER_THREAD, &device->per_thread));
        device->current = device->legacy;
        mr_stream_retain(device->current);
    }
    return MR_OK;
}

static void close_default_streams(mr_machine *machine) {
    for (int i = 0; i < machine->device_count; i++) {
        mr_device *device = machine->devices[i];
        mr_stream_release(device->current);
        mr_stream_close_default(device->legacy);
        mr_stream_close_default(device->per_thread);
        device->current = device->legacy = device->per_thread = NULL;
    }
}

#define COLLECT_AFTER_BYTES ((uint64_t)64 << 20)

mr_status mr_machine_open(const mr_backend *backend, const mr_machine_options *options,
                          mr_machine **out_machine) {
    static const mr_machine_options defaults;
    *out_machine = NULL;
    mr_machine *machine = calloc(1, sizeof *machine);
    if (!machine) return mr_no_memory("for a machine");
    machine->backend = backend;
    machine->epoch = 1;
    machine->counts.next_seq = 1;
    machine->memory.collect_after = COLLECT_AFTER_BYTES;
    mr_slab_init(&machine->objects.commands, sizeof(mr_command), COMMANDS_PER_CHUNK);
    mr_slab_init(&machine->objects.storages, sizeof(mr_storage), STORAGES_PER_CHUNK);
    mr_slab_init(&machine->objects.tensors, sizeof(mr_tensor), TENSORS_PER_CHUNK);
    mr_status status = backend->open(machine, options ? options : &defaults);
    if (status) {
        mr_slab_destroy(&machine->objects.commands);
        mr_error_destroy(machine->lost);
        free(machine);
        return status;
    }
    if (!machine->first_device) machine->first_device = machine->devices[0];
    machine->current_device = machine->first_device;
    status = open_default_streams(&(mr_caller){.machine = machine});
    if (status) {
        mr_machine_close(machine);
        return status;
    }
    *out_machine = machine;
    return MR_OK;
}

static void tell_left_over(const mr_machine *machine) {
    const struct {
        const char *kind;
        size_t count;
    } kinds[] = {
        {"tensors", machine->objects.tensors.live},   {"storages", machine->objects.storages.live},
        {"streams", machine->counts.open_streams},    {"events", machine->counts.open_events},
        {"commands", machine->objects.commands.live},
    };
    for (size_t i = 0; machine->hooks.left_over && i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].count) machine->hooks.left_over(kinds[i].kind, kinds[i].count);
}

void mr_machine_drop_body_notes(mr_machine *machine) {
    for (size_t i = 0; i < machine->bodies.notes.count; i++)
        machine->bodies.notes.items[i].destroy(machine->bodies.notes.items[i].data);
    machine->bodies.notes.count = 0;
}

void mr_machine_close(mr_machine *machine) {
    if (!machine) return;
    if (machine->outside.loans) return; /* the borrowers have memory of the backend (outside.h) */
    mr_history_free(machine);
    if (machine->captures.all) mr_capture_rules_of(machine)->close(machine);
    for (size_t i = 0; i < machine->memory.deferred_frees.count; i++)
        mr_storage_release(
            machine->memory.deferred_frees.items[i]); /* may close a stream of the backend */
    mr_vec_free(&machine->memory.deferred_frees);
    close_default_streams(machine);
    machine->backend->close(machine);
    machine->devices = NULL;
    machine->device_count = 0;
    mr_vec_free(&machine->observing.observers);
    mr_machine_drop_body_notes(machine);
    mr_vec_free(&machine->bodies.notes);
    tell_left_over(machine);
    mr_slab_destroy(&machine->objects.commands);
    mr_slab_destroy(&machine->objects.storages);
    mr_slab_destroy(&machine->objects.tensors);
    mr_error_destroy(machine->lost);
    mr_error_destroy(machine->deferred_error);
    mr_interned_free(&machine->files); /* last: sites are in all of these */
    free(machine);
}

mr_status mr_machine_reset(const mr_caller *caller) {
    mr_machine *machine = caller->machine;
    if (machine->host_function.running)
        return mr_fail(MR_CODE_NOT_PERMITTED, "mr.reset: not permitted inside a host function");
    if (machine->memory.collecting)
        return mr_fail(
            MR_CODE_NOT_PERMITTED,
            "mr.reset: not permitted in a finalizer that runs to make room for an allocation");
    if (machine->captures.open) mr_capture_rules_of(machine)->abandon(machine);
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_RESET, NULL, NULL, NULL, "reset", &command));
    mr_status status = machine->backend->reset(machine);
    if (command && !status) mr_command_did(command);
    else if (command) mr_command_failed(command, status);
    mr_command_release(command);
    MR_TRY(status);
    close_default_streams(machine);
    mr_error_destroy(machine->lost);
    mr_error_destroy(machine->deferred_error);
    machine->lost = machine->deferred_error = NULL;
    machine->epoch++;
    for (int i = 0; i < machine->device_count; i++) {
        mr_memory_stats *memory = &machine->devices[i]->memory;
        memory->live = memory->allocations = 0;
        machine->devices[i]->peers = 0;
    }
    machine->current_device = machine->first_device;
    return open_default_streams(caller);
}

/* ---- counts (given.h) */

typedef struct {
    uint32_t legacy_refs, per_thread_refs;
    uint64_t peers;
    mr_memory_stats memory;
} device_counts;

typedef struct {
    mr_machine_counts counts;
    mr_machine_random random;
    mr_host_memory host_memory;
    uint16_t rank;
    bool launch_blocking;
} machine_counts;

size_t mr_machine_counts_bytes(const mr_machine *machine) {
    return (size_t)machine->device_count * sizeof(device_counts) + sizeof(machine_counts);
}

void mr_machine_counts_save(const mr_machine *machine, void *out) {
    char *to = out;
    for (int i = 0; i < machine->device_count; i++, to += sizeof(device_counts)) {
        const mr_device *device = machine->devices[i];
        device_counts counts = {.legacy_refs = device->legacy->refs,
                                .per_thread_refs = device->per_thread->refs,
                                .peers = device->peers,
                                .memory = device->memory};
        memcpy(to, &counts, sizeof counts);
    }
    machine_counts counts = {.counts = machine->counts,
                             .random = machine->random,
                             .host_memory = machine->host_memory,
                             .rank = machine->rank,
                             .launch_blocking = machine->launch_blocking};
    memcpy(to, &counts, sizeof counts);
}

void mr_machine_counts_load(mr_machine *machine, const void *in) {
    const char *from = in;
    for (int i = 0; i < machine->device_count; i++, from += sizeof(device_counts)) {
        mr_device *device = machine->devices[i];
        device_counts counts;
        memcpy(&counts, from, sizeof counts);
        device->legacy->refs = counts.legacy_refs;
        device->per_thread->refs = counts.per_thread_refs;
        device->peers = counts.peers;
        device->memory = counts.memory;
    }
    machine_counts counts;
    memcpy(&counts, from, sizeof counts);
    machine->counts = counts.counts;
    machine->random = counts.random;
    machine->host_memory = counts.host_memory;
    machine->rank = counts.rank;
    machine->launch_blocking = counts.launch_blocking;
}

mr_status mr_machine_refuse(mr_machine *machine) {
    if (machine->lost) return mr_error_copy(machine->lost);
    return mr_fail(
        MR_CODE_NOT_PERMITTED,
        "not permitted inside a host function: it may not use the device; record what it "
        "found in a Lua variable or a host tensor and continue after the wait");
}

mr_status mr_machine_lose(mr_machine *machine, mr_status error) {
    if (machine->lost) {
        mr_error_destroy(error);
    } else {
        machine->lost = error;
        mr_observers_lost(machine);
    }
    return mr_error_copy(machine->lost);
}

void mr_machine_defer_error(mr_machine *machine, const mr_command *command, mr_status error) {
    mr_command_blame(command, error);
    machine->deferred_error = mr_error_first(machine->deferred_error, error);
}

/* See mr_storage_drop_handle. A free is a submission, which would end a history of steps; a later call frees then. A
 * free may come back here: it must find the list empty. */
void mr_machine_free_dropped(mr_machine *machine) {
    mr_storage **storages = machine->memory.deferred_frees.items;
    size_t count = machine->memory.deferred_frees.count;
    if (!count || machine->steps.host_stays || machine->lost) return;
    memset(&machine->memory.deferred_frees, 0, sizeof machine->memory.deferred_frees);
    for (size_t i = 0; i < count; i++) {
        bool stays = storages[i]->id <= machine->memory.stay_until_end;
        if (stays && mr_vec_push(&machine->memory.deferred_frees, storages[i])) continue;
        bool is_there =
            storages[i]->kind == MR_MEMORY_DEVICE && storages[i]->epoch == machine->epoch;
        if (is_there) mr_storage_free_dropped(storages[i]);
        mr_storage_release(storages[i]);
    }
    free(storages);
}

mr_status mr_machine_waited(mr_machine *machine, mr_status status) {
    mr_status failed = machine->deferred_error;
    if (!failed) return status;
    machine->deferred_error = NULL;
    return mr_error_first(status, failed);
}

mr_status mr_name_given(const char *text, mr_name **out_name) {
    *out_name = text ? mr_name_new(text, strlen(text)) : NULL;
    return !text || *out_name ? MR_OK : mr_no_memory("for a name");
}

void mr_machine_set_device(mr_machine *machine, mr_device *device) {
    machine->current_device = device;
}

uint64_t mr_machine_time(mr_machine *machine) {
    uint64_t time = machine->backend->host_time(machine);
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_HOST_TIME, .u.account.value = time);
    return time;
}

void mr_machine_set_launch_blocking(mr_machine *machine, bool on) {
    machine->launch_blocking = on;
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_LAUNCH_BLOCKING, .u.account.value = on);
}

void mr_machine_seed(mr_machine *machine, uint64_t seed) {
    machine->random.seed = seed;
    machine->random.draws = 0;
    if (machine->host_function.running) mr_observers_drew(machine);
}

void mr_machine_run_host_function(mr_machine *machine, const mr_command *command) {
    if (machine->lost) return; /* R46: not called when the context is in error */
    /* The called function sets this, perhaps to a coroutine that ends with it. */
    void *context = machine->hooks.context;
    unsigned telling = machine->observing.telling;
    machine->observing.telling = 0;
    machine->host_function.running = true;
    machine->host_function.command = command;
    mr_status status = command->u.host.call(command->u.host.context);
    if (status) mr_command_failed(command, status);
    machine->host_function.running = false;
    machine->host_function.command = NULL;
    machine->hooks.context = context;
    machine->observing.telling = telling;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->function_ran) observer->function_ran(observer, command);
    }
    if (status) mr_machine_defer_error(machine, command, status);
}
