/* Streams: see stream.h. */
#include "model/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/capture.h"
#include "model/given.h"
#include "model/history.h"
#include "model/hosts.h"
#include "model/internal.h"

static mr_status stream_make(const mr_caller *caller, mr_device *device, mr_stream_kind kind,
                             const mr_stream_options *options, mr_stream **out_stream) {
    mr_machine *machine = caller->machine;
    *out_stream = NULL;
    mr_history_end(machine, "stream", caller->where);
    mr_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return mr_no_memory("for a stream");
    mr_name *name;
    mr_status status = mr_name_given(options->name, &name);
    *stream = (mr_stream){.refs = 1,
                          .id = ++machine->counts.next_stream,
                          .epoch = machine->epoch,
                          .kind = kind,
                          .blocking = !options->nonblocking,
                          .foreign = options->foreign,
                          .priority = mr_device_clamp_priority(device, options->priority),
                          .name = name,
                          .device = device,
                          .where = caller->where};
    if (!status) status = machine->backend->stream_open(stream);
    if (status) {
        mr_name_release(name);
        free(stream);
        return status;
    }
    machine->counts.open_streams++;
    *out_stream = stream;
    return MR_OK;
}

static mr_status tell_created(const mr_caller *caller, mr_stream *stream) {
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_STREAM_CREATE, stream, NULL, stream->device, "stream",
                         &command));
    return mr_host_end(caller->machine, command, MR_OK);
}

mr_status mr_stream_create(const mr_caller *caller, mr_device *device,
                           const mr_stream_options *options, mr_stream **out_stream) {
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(stream_make(caller, device, MR_STREAM_USER, options, out_stream));
    mr_status status = tell_created(caller, *out_stream);
    if (!status) return MR_OK;
    mr_stream_release(*out_stream);
    *out_stream = NULL;
    return status;
}

mr_status mr_stream_open_default(const mr_caller *caller, mr_device *device, mr_stream_kind kind,
                                 mr_stream **out_stream) {
    mr_stream_options options = {0};
    return stream_make(caller, device, kind, &options, out_stream);
}

/* The backend closes it now; pending commands keep the struct. */
static void stream_shut(mr_stream *stream) {
    if (stream->closed) return;
    stream->closed = true;
    stream->device->machine->counts.open_streams--;
    stream->device->machine->backend->stream_close(stream);
    stream->impl = NULL;
}

void mr_stream_close_default(mr_stream *stream) {
    if (!stream) return;
    stream_shut(stream);
    mr_stream_release(stream);
}

void mr_stream_retain(mr_stream *stream) {
    stream->refs++;
}

void mr_stream_drop_given(mr_stream *stream) {
    mr_machine *machine = stream->device->machine;
    if (!stream->closed) {
        stream_shut(stream);
        MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_STREAM_DROP, .stream = stream);
    }
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->stream_gone) observer->stream_gone(observer, stream);
    }
}

mr_status mr_stream_open_given(mr_stream *stream) {
    const mr_caller caller = {.machine = stream->device->machine, .where = stream->where};
    mr_history_end(caller.machine, "stream", caller.where);
    MR_TRY(caller.machine->backend->stream_open(stream));
    caller.machine->counts.open_streams++;
    return tell_created(&caller, stream);
}

void mr_stream_release(mr_stream *stream) {
    if (!stream || --stream->refs) return;
    mr_stream_drop_given(stream);
    mr_name_release(stream->name);
    free(stream);
}

mr_status mr_stream_close(const mr_caller *caller, mr_stream *stream) {
    mr_machine *machine = caller->machine;
    char text[80];
    if (stream->closed || stream->epoch != machine->epoch) return MR_OK;
    if (stream->kind != MR_STREAM_USER)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "close: %s belongs to its device and stays open",
                       mr_stream_describe(stream, text, sizeof text));
    if (machine->host_function.running) return mr_machine_refuse(machine);
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_CLOSE, "close", stream, NULL, NULL));
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_STREAM_CLOSE, stream, NULL, stream->device, "close",
                         &command));
    stream_shut(stream);
    MR_TRY(mr_host_end(machine, command, MR_OK));
    if (stream->device->current == stream) {
        mr_stream_retain(stream->device->legacy);
        stream->device->current = stream->device->legacy;
        mr_stream_release(stream);
    }
    return MR_OK;
}

static mr_status unusable(const mr_stream *stream) {
    char text[80];
    mr_stream_describe(stream, text, sizeof text);
    if (stream->closed && stream->epoch == stream->device->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s is closed: make a new one with mr.stream()",
                       text);
    return mr_fail(MR_CODE_INVALID_HANDLE,
                   "%s was made before mr.reset(): make a new one with mr.stream()", text);
}

mr_status mr_stream_usable(const mr_stream *stream) {
    if (stream->epoch == stream->device->machine->epoch && !stream->closed) return MR_OK;
    mr_status error = unusable(stream);
    mr_stream_blame(stream, error);
    return error;
}

mr_status mr_stream_query(const mr_caller *caller, mr_stream *stream, bool *out_done) {
    mr_machine *machine = caller->machine;
    *out_done = false;
    MR_TRY(mr_host_comes(caller));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_STREAM, "query", stream, NULL, NULL));
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_STREAM_QUERY, stream, NULL, NULL, "query", &command));
    mr_status status = machine->backend->stream_query(stream, out_done);
    if (*out_done) mr_history_end(machine, "query", caller->where);
    return mr_host_end_query(machine, command, status, *out_done);
}

mr_status mr_stream_synchronize_as(const mr_caller *caller, mr_stream *stream,
                                   const char *operation) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_STREAM, operation, stream, NULL, NULL));
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_STREAM_SYNC, stream, NULL, NULL, operation, &command));
    return mr_host_end(machine, command, machine->backend->stream_synchronize(stream));
}

mr_status mr_stream_synchronize(const mr_caller *caller, mr_stream *stream) {
    MR_TRY(mr_host_comes(caller));
    return mr_stream_synchronize_as(caller, stream, "synchronize");
}

mr_status mr_stream_wait_event_as(const mr_caller *caller, mr_stream *stream, mr_event *event,
                                  const char *name) {
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_event_usable(event));
    if (stream->capture || event->captured) {
        bool taken = false;
        MR_TRY(mr_capture_rules_of(caller->machine)->wait(caller, stream, event, &taken));
        if (taken) return MR_OK;
    }
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_WAIT, stream, name, 0, &command));
    mr_event_retain(event);
    command->u.event.event = event;
    command->u.event.record_seq = event->record_seq;
    return mr_command_submit(command);
}

mr_status mr_stream_wait_event(const mr_caller *caller, mr_stream *stream, mr_event *event) {
    return mr_stream_wait_event_as(caller, stream, event, "wait_event");
}

mr_status mr_stream_join(const mr_caller *caller, mr_stream *stream, mr_stream *other,
                         const char *operation) {
    mr_event *event;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_stream_usable(other));
    mr_event_options options = {0};
    MR_TRY(mr_event_create(caller, &options, &event));
    mr_status status = mr_event_record_as(caller, event, other, operation);
    if (!status) status = mr_stream_wait_event_as(caller, stream, event, operation);
    mr_event_release(event); /* R19: the wait stays valid */
    return status;
}

mr_status mr_stream_wait_stream(const mr_caller *caller, mr_stream *stream, mr_stream *other) {
    return mr_stream_join(caller, stream, other, "wait_stream");
}

mr_status mr_stream_barrier(const mr_caller *caller, mr_stream *const *streams, int count) {
    mr_event *all;
    mr_event_options options = {0};
    if (count < 2) return MR_OK; /* its own earlier work is ordered already (R1) */
    /* The first one waits for all others, then they for it: 2n waits instead of n times n. */
    for (int i = 1; i < count; i++)
        MR_TRY(mr_stream_join(caller, streams[0], streams[i], "barrier"));
    MR_TRY(mr_event_create(caller, &options, &all));
    mr_status status = mr_event_record_as(caller, all, streams[0], "barrier");
    for (int i = 1; i < count && !status; i++)
        status = mr_stream_wait_event_as(caller, streams[i], all, "barrier");
    mr_event_release(all);
    return status;
}

mr_status mr_stream_host_function(const mr_caller *caller, mr_stream *stream,
                                  mr_status (*call)(void *context), void (*drop)(void *context),
                                  void *context) {
    mr_machine *machine = caller->machine;
    mr_command *command = NULL;
    mr_status status = MR_OK;
    if (machine->lost || machine->host_function.running) status = mr_machine_refuse(machine);
    if (!status) status = mr_stream_usable(stream);
    if (!status)
        status =
            mr_command_create(caller, MR_COMMAND_HOST_FUNCTION, stream, "host_func", 0, &command);
    if (status) {
        drop(context);
        return status;
    }
    command->u.host.call = call;
    command->u.host.drop = drop;
    command->u.host.context = context;
    return mr_command_submit(command);
}

mr_status mr_stream_fault(const mr_caller *caller, mr_stream *stream, mr_code code) {
    mr_command *command;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_command_create(caller, MR_COMMAND_FAULT, stream, "fault", 0, &command));
    command->u.fault = code;
    return mr_command_submit(command);
}

mr_status mr_stream_set_current(mr_stream *stream) {
    MR_TRY(mr_stream_usable(stream));
    mr_device *device = stream->device;
    mr_stream_retain(stream);
    mr_stream_release(device->current);
    device->current = stream;
    mr_machine_set_device(device->machine, device);
    return MR_OK;
}

uint32_t mr_stream_number(const mr_stream *stream) {
    return (uint32_t)mr_shown_number(&stream->device->machine->numbers.streams, stream->id);
}

const char *mr_stream_describe(const mr_stream *stream, char *out, size_t size) {
    bool several = stream->device->machine->device_count > 1;
    const char *kind =
        stream->kind == MR_STREAM_LEGACY ? "the default stream" : "the per-thread stream";
    if (stream->kind != MR_STREAM_USER && several)
        snprintf(out, size, "%s of device %d", kind, stream->device->index);
    else if (stream->kind != MR_STREAM_USER) snprintf(out, size, "%s", kind);
    else if (stream->name) snprintf(out, size, "stream `%s`", stream->name->text);
    else snprintf(out, size, "stream #%u", mr_stream_number(stream));
    return out;
}

const char *mr_stream_title(const mr_stream *stream, char *out, size_t size) {
    bool several = stream->device->machine->device_count > 1;
    const char *kind = stream->kind == MR_STREAM_LEGACY ? "default" : "per-thread";
    if (stream->kind != MR_STREAM_USER && several)
        snprintf(out, size, "%s of device %d", kind, stream->device->index);
    else if (stream->kind != MR_STREAM_USER) snprintf(out, size, "%s", kind);
    else if (stream->name) mr_text_copy(out, size, stream->name->text);
    else snprintf(out, size, "stream #%u", mr_stream_number(stream));
    return out;
}

void mr_stream_blame(const mr_stream *stream, mr_status error) {
    mr_error *details = mr_error_details(error);
    if (details && !details->stream[0])
        mr_stream_title(stream, details->stream, sizeof details->stream);
}
