/* Events: see event.h. */
#include "model/event.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"
#include "model/capture.h"
#include "model/given.h"
#include "model/history.h"
#include "model/hosts.h"
#include "model/internal.h"

mr_status mr_event_create(const mr_caller *caller, const mr_event_options *options,
                          mr_event **out_event) {
    mr_machine *machine = caller->machine;
    *out_event = NULL;
    MR_TRY(mr_machine_ready(machine));
    mr_event *event = calloc(1, sizeof *event);
    if (!event) return mr_no_memory("for an event");
    mr_name *name;
    mr_status status = mr_name_given(options->name, &name);
    *event = (mr_event){.refs = 1,
                        .id = ++machine->counts.next_event,
                        .epoch = machine->epoch,
                        .timing = options->timing,
                        .blocking = options->blocking,
                        .interprocess = options->interprocess,
                        .name = name,
                        .machine = machine,
                        .where = caller->where};
    if (!status) status = mr_event_open_given(event);
    if (status) {
        mr_name_release(name);
        free(event);
        return status;
    }
    *out_event = event;
    return MR_OK;
}

mr_status mr_event_open_given(mr_event *event) {
    mr_machine *machine = event->machine;
    MR_TRY(machine->backend->event_open(event));
    event->closed = false;
    machine->counts.open_events++;
    MR_ACCOUNT(machine, MR_OK, .kind = MR_COMMAND_EVENT_CREATE, .u.event.event = event);
    return MR_OK;
}

static void event_shut(mr_event *event) {
    event->closed = true;
    event->machine->counts.open_events--;
    event->machine->backend->event_close(event);
    event->impl = NULL;
    MR_ACCOUNT(event->machine, MR_OK, .kind = MR_COMMAND_EVENT_CLOSE, .u.event.event = event);
}

void mr_event_retain(mr_event *event) {
    event->refs++;
}

void mr_event_drop_given(mr_event *event) {
    if (event->captured) mr_capture_rules_of(event->machine)->forget_event(event);
    if (!event->closed) event_shut(event);
    if (event->observed) {
        for (size_t i = 0; i < event->machine->observing.observers.count; i++) {
            mr_observer *observer = event->machine->observing.observers.items[i];
            if (observer->event_gone) observer->event_gone(observer, event);
        }
        event->observed = NULL;
    }
}

void mr_event_release(mr_event *event) {
    if (!event || --event->refs) return;
    mr_event_drop_given(event);
    mr_name_release(event->name);
    free(event);
}

mr_status mr_event_close(mr_event *event) {
    if (event->closed) return MR_OK;
    if (event->machine->host_function.running) return mr_machine_refuse(event->machine);
    event_shut(event);
    return MR_OK;
}

mr_status mr_event_usable(const mr_event *event) {
    char text[80];
    if (event->epoch != event->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "%s was made before mr.reset(): make a new one with mr.event()",
                       mr_event_describe(event, text, sizeof text));
    if (event->closed)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s is closed: make a new one with mr.event()",
                       mr_event_describe(event, text, sizeof text));
    return MR_OK;
}

mr_status mr_event_record(const mr_caller *caller, mr_event *event, mr_stream *stream) {
    return mr_event_record_as(caller, event, stream, "record_event");
}

mr_status mr_event_record_as(const mr_caller *caller, mr_event *event, mr_stream *stream,
                             const char *name_of_command) {
    char name[80], where[80];
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_stream_usable(stream));
    if (event->device && event->device != stream->device)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "record: %s belongs to device %d, where it was first recorded, and %s is on "
                       "device %d. Use an event of its own for each device, and wait for it there",
                       mr_event_describe(event, name, sizeof name), event->device->index,
                       mr_stream_describe(stream, where, sizeof where), stream->device->index);
    if (stream->capture) return mr_capture_rules_of(caller->machine)->record(caller, event, stream);
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_RECORD, stream, name_of_command, 0, &command));
    mr_event_retain(event);
    command->u.event.event = event;
    command->u.event.record_seq = command->seq;
    mr_command_retain(command);
    mr_status status = mr_command_submit(command);
    if (!status) mr_event_recorded(event, command);
    mr_command_release(command);
    return status;
}

void mr_event_recorded(mr_event *event, const mr_command *record) {
    if (event->captured) mr_capture_rules_of(event->machine)->forget_event(event);
    event->device = record->stream->device;
    event->record_seq = record->seq;
    event->record_where = record->where;
}

mr_status mr_event_query(const mr_caller *caller, mr_event *event, bool *out_done) {
    mr_machine *machine = caller->machine;
    *out_done = false;
    bool looks = event->record_seq || event->shared; /* R13 */
    MR_TRY(looks ? mr_host_comes(caller) : mr_machine_ready(machine));
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_EVENT, "query", NULL, event, NULL));
    if (!looks) {
        *out_done = true;
        return MR_OK;
    }
    mr_command *command;
    MR_TRY(mr_host_begin(caller, MR_COMMAND_EVENT_QUERY, NULL, event, NULL, "query", &command));
    mr_status status = machine->backend->event_query(event, out_done);
    if (*out_done) mr_history_end(machine, "query", caller->where);
    return mr_host_end_query(machine, command, status, *out_done);
}

mr_status mr_event_synchronize(const mr_caller *caller, mr_event *event) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_host_comes(caller));
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_capture_ask_host(caller, MR_ASK_EVENT, "synchronize", NULL, event, NULL));
    mr_command *command;
    MR_TRY(
        mr_host_begin(caller, MR_COMMAND_EVENT_SYNC, NULL, event, NULL, "synchronize", &command));
    mr_status status = MR_OK;
    if (event->record_seq || event->shared)
        status = machine->backend->event_synchronize(event); /* R13 */
    return mr_host_end(machine, command, status);
}

/* The three errors of R17 in the order in which CUDA checks, each with its fix. */
static mr_status elapsed_ready(mr_event *event) {
    char text[80];
    mr_caller caller = {.machine = event->machine};
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_capture_ask_host(&caller, MR_ASK_EVENT, "elapsed_time", NULL, event, NULL));
    if (!event->timing)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "elapsed_time: %s takes no time stamps: make it with mr.event{timing=true}",
                       mr_event_describe(event, text, sizeof text));
    if (!event->record_seq)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "elapsed_time: %s has never been recorded: call record() on it first",
                       mr_event_describe(event, text, sizeof text));
    return MR_OK;
}

mr_status mr_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds) {
    mr_machine *machine = from->machine;
    char name[80], other[80];
    *out_milliseconds = 0;
    MR_TRY(mr_host_comes(&(mr_caller){.machine = machine}));
    MR_TRY(elapsed_ready(from));
    MR_TRY(elapsed_ready(to));
    if (from->device != to->device)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "elapsed_time: %s is of device %d and %s of device %d: clocks of different "
                       "devices cannot be compared",
                       mr_event_describe(from, name, sizeof name), from->device->index,
                       mr_event_describe(to, other, sizeof other), to->device->index);
    MR_ACCOUNT_BEFORE(machine);
    mr_status status = machine->backend->event_elapsed(from, to, out_milliseconds);
    MR_ACCOUNT(machine, status, .kind = MR_COMMAND_ELAPSED,
               .u.account = {.from = from, .to = to, .number = *out_milliseconds});
    return status;
}

uint32_t mr_event_number(const mr_event *event) {
    return (uint32_t)mr_shown_number(&event->machine->numbers.events, event->id);
}

const char *mr_event_describe(const mr_event *event, char *out, size_t size) {
    if (event->name) mr_text_format(out, size, "event `%s`", event->name->text);
    else snprintf(out, size, "event #%u", mr_event_number(event));
    return out;
}
