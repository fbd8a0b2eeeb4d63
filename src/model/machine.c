/* The machine's life, and the guards that every call passes: see machine.h.
 *
 * Easiest to break: the order of closing. Streams hold their device, so default streams go while the
 * backend still knows them, and the backend frees the devices last. */
#include "model/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

#define ACTIONS_PER_CHUNK  256
#define STORAGES_PER_CHUNK 64

static mr_status open_default_streams(mr_machine *machine) {
    for (int i = 0; i < machine->device_count; i++) {
        mr_device *device = machine->devices[i];
        MR_TRY(mr_stream_open_default(device, MR_STREAM_LEGACY, &device->legacy));
        MR_TRY(mr_stream_open_default(device, MR_STREAM_PER_THREAD, &device->per_thread));
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

mr_status mr_machine_open(const mr_backend *backend, const mr_machine_options *options,
                          mr_machine **out_machine) {
    static const mr_machine_options defaults;
    *out_machine = NULL;
    mr_machine *machine = calloc(1, sizeof *machine);
    if (!machine) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a machine");
    machine->backend = backend;
    machine->epoch = 1;
    machine->next_seq = 1;
    mr_slab_init(&machine->actions, sizeof(mr_action) + backend->action_extra, ACTIONS_PER_CHUNK);
    mr_slab_init(&machine->storages, sizeof(mr_storage), STORAGES_PER_CHUNK);
    mr_status status = backend->open(machine, options ? options : &defaults);
    if (status) {
        mr_slab_destroy(&machine->actions);
        mr_error_destroy(machine->lost);
        free(machine);
        return status;
    }
    if (!machine->first_device) machine->first_device = machine->devices[0];
    machine->current_device = machine->first_device;
    status = open_default_streams(machine);
    if (status) {
        mr_machine_close(machine);
        return status;
    }
    *out_machine = machine;
    return MR_OK;
}

void mr_machine_close(mr_machine *machine) {
    if (!machine) return;
    for (size_t i = 0; i < machine->deferred_frees.count; i++)
        mr_storage_release(
            machine->deferred_frees.items[i]); /* may close a stream of the backend */
    mr_vec_free(&machine->deferred_frees);
    close_default_streams(machine);
    machine->backend->close(machine);
    machine->devices = NULL;
    machine->device_count = 0;
    mr_vec_free(&machine->observers);
    mr_slab_destroy(&machine->actions);
    mr_slab_destroy(&machine->storages);
    mr_slab_destroy(&machine->tensors);
    mr_error_destroy(machine->lost);
    mr_error_destroy(machine->host_function_error);
    free(machine);
}

mr_status mr_machine_reset(mr_machine *machine) {
    if (machine->in_host_function)
        return mr_fail(MR_CODE_NOT_PERMITTED, "mr.reset: not permitted inside a host function");
    if (machine->collecting)
        return mr_fail(
            MR_CODE_NOT_PERMITTED,
            "mr.reset: not permitted in a finalizer that runs to make room for an allocation");
    mr_action *action;
    MR_TRY(mr_action_create(machine, MR_ACTION_RESET, NULL, "reset", 0, &action));
    MR_TRY(mr_action_announce(action));
    MR_TRY(machine->backend->reset(machine));
    close_default_streams(machine);
    mr_error_destroy(machine->lost);
    mr_error_destroy(machine->host_function_error);
    machine->lost = machine->host_function_error = NULL;
    machine->epoch++;
    for (int i = 0; i < machine->device_count; i++) {
        mr_memory_stats *memory = &machine->devices[i]->memory;
        memory->live = memory->allocations = 0;
    }
    machine->current_device = machine->first_device;
    return open_default_streams(machine);
}

mr_status mr_machine_refuse(mr_machine *machine) {
    if (machine->lost) return mr_error_copy(machine->lost);
    return mr_fail(
        MR_CODE_NOT_PERMITTED,
        "not permitted inside a host function: it may not use the device; record what it "
        "found in a Lua variable or a host tensor and go on after the wait");
}

mr_status mr_machine_lose(mr_machine *machine, mr_status error) {
    if (!machine->lost) machine->lost = error;
    else mr_error_destroy(error);
    return mr_error_copy(machine->lost);
}

/* What the collector dropped while a host function ran; see mr_storage_drop_handle. A free is a
 * submission of its own and comes back here: it must find the list empty. */
static void free_deferred(mr_machine *machine) {
    mr_storage **storages = machine->deferred_frees.items;
    size_t count = machine->deferred_frees.count;
    memset(&machine->deferred_frees, 0, sizeof machine->deferred_frees);
    for (size_t i = 0; i < count; i++) {
        mr_storage_free_dropped(storages[i]);
        mr_storage_release(storages[i]);
    }
    free(storages);
}

mr_status mr_machine_waited(mr_machine *machine, mr_status status) {
    if (machine->deferred_frees.count) free_deferred(machine);
    mr_status failed = machine->host_function_error;
    if (!failed) return status;
    machine->host_function_error = NULL;
    return mr_error_first(status, failed);
}

void mr_machine_set_device(mr_machine *machine, mr_device *device) {
    machine->current_device = device;
}

uint64_t mr_machine_time(mr_machine *machine) {
    return machine->backend->host_time(machine);
}

void mr_machine_seed(mr_machine *machine, uint64_t seed) {
    machine->seed = seed;
    machine->draws = 0;
}

mr_status mr_machine_step(mr_machine *machine, mr_stream *stream, bool *out_moved, char *out_text,
                          size_t text_size) {
    *out_moved = false;
    MR_TRY(mr_machine_ready(machine));
    if (stream) MR_TRY(mr_stream_usable(stream));
    const mr_simulator *simulator = machine->backend->simulator;
    return mr_machine_waited(machine,
                             simulator->step(machine, stream, out_moved, out_text, text_size));
}

void mr_machine_run_host_function(mr_machine *machine, mr_action *action) {
    if (machine->lost) return; /* R46: not called when the context is in error */
    /* What it calls sets these two, perhaps to a coroutine that will not outlive it. */
    void *context = machine->hook_context;
    mr_site where = machine->where;
    machine->in_host_function = true;
    machine->host_function = action;
    mr_status status = action->u.host.call(action->u.host.context);
    machine->in_host_function = false;
    machine->host_function = NULL;
    machine->hook_context = context;
    machine->where = where;
    if (!status) return;
    if (!status->op[0]) snprintf(status->op, sizeof status->op, "%s", action->name);
    if (!status->where.file) status->where = action->where;
    if (!status->stream[0])
        mr_stream_describe(action->stream, status->stream, sizeof status->stream);
    machine->host_function_error = mr_error_first(machine->host_function_error, status);
}
