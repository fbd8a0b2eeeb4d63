/* Streams: see stream.h. */
#include "model/stream.h"

#include <stdio.h>
#include <stdlib.h>

#include "model/internal.h"

static mr_status stream_make(mr_device *device, mr_stream_kind kind,
                             const mr_stream_options *options, mr_stream **out_stream) {
    mr_machine *machine = device->machine;
    *out_stream = NULL;
    mr_stream *stream = calloc(1, sizeof *stream);
    if (!stream) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a stream");
    *stream = (mr_stream){.refs = 1,
                          .id = ++machine->next_stream,
                          .epoch = machine->epoch,
                          .kind = kind,
                          .blocking = !options->nonblocking,
                          .priority = mr_device_clamp_priority(device, options->priority),
                          .name = options->name,
                          .device = device,
                          .where = machine->where};
    mr_status status = machine->backend->stream_open(stream);
    if (status) {
        free(stream);
        return status;
    }
    *out_stream = stream;
    return MR_OK;
}

mr_status mr_stream_create(mr_device *device, const mr_stream_options *options,
                           mr_stream **out_stream) {
    MR_TRY(mr_machine_ready(device->machine));
    MR_TRY(stream_make(device, MR_STREAM_USER, options, out_stream));
    mr_status status =
        mr_announce(device->machine, MR_ACTION_STREAM_CREATE, *out_stream, NULL, device, "stream");
    if (status) {
        mr_stream_release(*out_stream);
        *out_stream = NULL;
    }
    return status;
}

mr_status mr_stream_open_default(mr_device *device, mr_stream_kind kind, mr_stream **out_stream) {
    mr_stream_options options = {0};
    return stream_make(device, kind, &options, out_stream);
}

/* The backend lets go of it now; actions that are still pending keep the struct. */
static void stream_shut(mr_stream *stream) {
    if (stream->closed) return;
    stream->closed = true;
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

void mr_stream_release(mr_stream *stream) {
    if (!stream || --stream->refs) return;
    if (!stream->closed) stream_shut(stream);
    if (stream->observed) {
        mr_machine *machine = stream->device->machine;
        for (size_t i = 0; i < machine->observers.count; i++) {
            mr_observer *observer = machine->observers.items[i];
            if (observer->stream_gone) observer->stream_gone(observer, stream);
        }
    }
    free(stream);
}

mr_status mr_stream_close(mr_stream *stream) {
    mr_machine *machine = stream->device->machine;
    char text[80];
    if (stream->closed || stream->epoch != machine->epoch) return MR_OK;
    if (stream->kind != MR_STREAM_USER)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "close: %s belongs to its device and stays open",
                       mr_stream_describe(stream, text, sizeof text));
    if (machine->in_host_function) return mr_machine_refuse(machine);
    MR_TRY(mr_announce(machine, MR_ACTION_STREAM_CLOSE, stream, NULL, stream->device, "close"));
    stream_shut(stream);
    if (stream->device->current == stream) {
        mr_stream_retain(stream->device->legacy);
        stream->device->current = stream->device->legacy;
        mr_stream_release(stream);
    }
    return MR_OK;
}

mr_status mr_stream_usable(const mr_stream *stream) {
    char text[80];
    if (stream->epoch != stream->device->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "%s was made before mr.reset(): make a new one with mr.stream()",
                       mr_stream_describe(stream, text, sizeof text));
    if (stream->closed)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s is closed: make a new one with mr.stream()",
                       mr_stream_describe(stream, text, sizeof text));
    return MR_OK;
}

mr_status mr_stream_query(mr_stream *stream, bool *out_done) {
    mr_machine *machine = stream->device->machine;
    *out_done = false;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    mr_status status = machine->backend->stream_query(stream, out_done);
    MR_TRY(mr_machine_waited(machine, status));
    if (!*out_done) return MR_OK; /* an unsuccessful query orders nothing: nobody need know */
    return mr_announce(machine, MR_ACTION_STREAM_QUERY, stream, NULL, NULL, "query");
}

mr_status mr_stream_synchronize(mr_stream *stream) {
    mr_machine *machine = stream->device->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_announce(machine, MR_ACTION_STREAM_SYNC, stream, NULL, NULL, "synchronize"));
    mr_status status = machine->backend->stream_synchronize(stream);
    return mr_machine_waited(machine, status);
}

static mr_status wait_event(mr_stream *stream, mr_event *event, const char *name) {
    mr_machine *machine = stream->device->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_event_usable(event));
    mr_action *action;
    MR_TRY(mr_action_create(machine, MR_ACTION_WAIT, stream, name, 0, &action));
    mr_event_retain(event);
    action->u.event.event = event;
    action->u.event.record_seq = event->record_seq;
    return mr_action_submit(action);
}

mr_status mr_stream_wait_event(mr_stream *stream, mr_event *event) {
    return wait_event(stream, event, "wait_event");
}

static mr_status follow(mr_stream *stream, mr_stream *other, const char *record, const char *wait) {
    mr_machine *machine = stream->device->machine;
    mr_event *event;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_stream_usable(other));
    mr_event_options options = {0};
    MR_TRY(mr_event_create(machine, &options, &event));
    mr_status status = mr_event_record_as(event, other, record);
    if (!status) status = wait_event(stream, event, wait);
    mr_event_release(event); /* R19: the wait stays valid */
    return status;
}

mr_status mr_stream_wait_stream(mr_stream *stream, mr_stream *other) {
    return follow(stream, other, "record_event", "wait_event");
}

mr_status mr_stream_join(mr_stream *stream, mr_stream *other, const char *operation) {
    return follow(stream, other, operation, operation);
}

mr_status mr_stream_host_function(mr_stream *stream, mr_status (*call)(void *context),
                                  void (*drop)(void *context), void *context) {
    mr_machine *machine = stream->device->machine;
    mr_action *action = NULL;
    mr_status status = MR_OK;
    if (machine->lost || machine->in_host_function) status = mr_machine_refuse(machine);
    if (!status) status = mr_stream_usable(stream);
    if (!status)
        status =
            mr_action_create(machine, MR_ACTION_HOST_FUNCTION, stream, "host_func", 0, &action);
    if (status) {
        drop(context);
        return status;
    }
    action->u.host.call = call;
    action->u.host.drop = drop;
    action->u.host.context = context;
    return mr_action_submit(action);
}

mr_status mr_stream_fault(mr_stream *stream, mr_code code) {
    mr_action *action;
    MR_TRY(mr_machine_ready(stream->device->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_action_create(stream->device->machine, MR_ACTION_FAULT, stream, "fault", 0, &action));
    action->u.fault = code;
    return mr_action_submit(action);
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

const char *mr_stream_describe(const mr_stream *stream, char *out, size_t size) {
    bool several = stream->device->machine->device_count > 1;
    const char *kind =
        stream->kind == MR_STREAM_LEGACY ? "the default stream" : "the per-thread stream";
    if (stream->kind != MR_STREAM_USER && several)
        snprintf(out, size, "%s of device %d", kind, stream->device->index);
    else if (stream->kind != MR_STREAM_USER) snprintf(out, size, "%s", kind);
    else if (stream->name) snprintf(out, size, "stream `%s`", stream->name);
    else snprintf(out, size, "stream #%u", stream->id);
    return out;
}
