/* A slot of the contract may only be missing here where backend.h allows that, so all others stand here and do
 * nothing. */
#include "null/null.h"

#include <stdlib.h>
#include <string.h>

static void close_machine(mr_machine *machine) {
    for (int i = 0; i < machine->device_count && machine->devices; i++) free(machine->devices[i]);
    free(machine->devices);
}

static int devices_of(const char *name) {
    const char *number = name ? strchr(name, ':') : NULL;
    int count = number ? atoi(number + 1) : 1;
    return count > 0 ? count : 1;
}

static mr_status open_machine(mr_machine *machine, const mr_machine_options *options) {
    machine->device_count = devices_of(options ? options->device : NULL);
    machine->devices = calloc((size_t)machine->device_count, sizeof *machine->devices);
    bool failed = !machine->devices;
    for (int i = 0; i < machine->device_count && !failed; i++) {
        mr_device *device = machine->devices[i] = calloc(1, sizeof *device);
        failed = !device;
        if (device) *device = (mr_device){.machine = machine, .index = i};
    }
    if (!failed) return MR_OK;
    close_machine(machine);
    return mr_no_memory("for a machine");
}

static mr_status reset(mr_machine *machine) {
    (void)machine;
    return MR_OK;
}

/* ---- streams and events */

static mr_status stream_open(mr_stream *stream) {
    (void)stream;
    return MR_OK;
}

static void stream_close(mr_stream *stream) {
    (void)stream;
}

static mr_status stream_query(mr_stream *stream, bool *out_done) {
    (void)stream;
    *out_done = true;
    return MR_OK;
}

static mr_status stream_synchronize(mr_stream *stream) {
    (void)stream;
    return MR_OK;
}

static mr_status device_synchronize(mr_device *device) {
    (void)device;
    return MR_OK;
}

static mr_status event_open(mr_event *event) {
    (void)event;
    return MR_OK;
}

static void event_close(mr_event *event) {
    (void)event;
}

static mr_status event_query(mr_event *event, bool *out_done) {
    (void)event;
    *out_done = true;
    return MR_OK;
}

static mr_status event_synchronize(mr_event *event) {
    (void)event;
    return MR_OK;
}

static mr_status event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds) {
    (void)from, (void)to;
    *out_milliseconds = 0;
    return MR_OK;
}

/* ---- memory */

static mr_status memory_alloc(mr_storage *storage) {
    (void)storage;
    return mr_fail(MR_CODE_NOT_SUPPORTED, "the null backend has no memory");
}

static void memory_release(mr_storage *storage) {
    (void)storage;
}

static uint64_t memory_reserved(mr_device *device) {
    (void)device;
    return 0;
}

static mr_status memory_trim(mr_device *device) {
    (void)device;
    return MR_OK;
}

static mr_status memory_free_wait(mr_storage *storage) {
    (void)storage;
    return MR_OK;
}

/* ---- commands and the host */

static mr_status submit(const mr_command *command, bool *out_taken) {
    (void)command;
    *out_taken = true;
    return MR_OK;
}

static mr_status host_access(mr_machine *machine) {
    (void)machine;
    return MR_OK;
}

static uint64_t host_time(mr_machine *machine) {
    (void)machine;
    return 0;
}

static bool can_access_peer(mr_device *device, mr_device *peer) {
    (void)device, (void)peer;
    return true;
}

static mr_status enable_peer_access(mr_device *device, mr_device *peer) {
    (void)device, (void)peer;
    return MR_OK;
}

static void forget_peer_access(mr_device *device, mr_device *peer) {
    (void)device, (void)peer;
}

const mr_backend mr_null_backend = {
    .name = "null",
    .open = open_machine,
    .close = close_machine,
    .reset = reset,
    .stream_open = stream_open,
    .stream_close = stream_close,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .device_synchronize = device_synchronize,
    .event_open = event_open,
    .event_close = event_close,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .memory_alloc = memory_alloc,
    .memory_release = memory_release,
    .memory_reserved = memory_reserved,
    .memory_trim = memory_trim,
    .memory_free_wait = memory_free_wait,
    .submit = submit,
    .host_access = host_access,
    .host_time = host_time,
    .can_access_peer = can_access_peer,
    .enable_peer_access = enable_peer_access,
    .forget_peer_access = forget_peer_access,
};
