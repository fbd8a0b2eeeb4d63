/* Commands: see command.h. Everything that reaches a backend passes mr_command_submit. Observers are told of commands
 * there, and of the host's own actions in mr_command_did. */
#include "model/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/capture.h"
#include "model/history.h"
#include "model/internal.h"

/* ---- kinds */

static void release_event(mr_command *command) {
    mr_event_release(command->u.event.event);
}

static void release_storage(mr_command *command) {
    mr_storage_release(command->u.storage);
}

static void free_arguments(mr_command *command) {
    if (command->node) return;
    if (command->u.op.drop_arguments) command->u.op.drop_arguments(command->u.op.arguments);
    free(command->u.op.arguments);
}

static void drop_function(mr_command *command) {
    if (command->node) return;
    if (command->u.host.drop) command->u.host.drop(command->u.host.context);
}

static void event_detail(const mr_command *command, char *out, size_t size) {
    char event[80];
    snprintf(out, size, " of %s", mr_event_describe(command->u.event.event, event, sizeof event));
}

static void copy_detail(const mr_command *command, char *out, size_t size) {
    static const char *const ways[] = {[MR_COPY_H2D] = "host to device",
                                       [MR_COPY_D2H] = "device to host",
                                       [MR_COPY_D2D] = "inside a device",
                                       [MR_COPY_PEER] = "between devices",
                                       [MR_COPY_H2H] = "host to host"};
    snprintf(out, size, " of %" PRIu64 " bytes %s", command->u.copy.bytes,
             ways[command->u.copy.direction]);
}

/* Both are optional. */
static const struct {
    /* Releases what the part owns. */
    void (*destroy)(mr_command *command);
    /* Facts for messages besides name, stream and place, such as " of event `e`". */
    void (*detail)(const mr_command *command, char *out, size_t size);
} parts[] = {
    [MR_PART_NONE] = {NULL, NULL},
    [MR_PART_OP] = {free_arguments, NULL},
    [MR_PART_COPY] = {NULL, copy_detail},
    [MR_PART_EVENT] = {release_event, event_detail},
    [MR_PART_MEMORY] = {release_storage, NULL},
    [MR_PART_HOST] = {drop_function, NULL},
    [MR_PART_FAULT] = {NULL, NULL},
    [MR_PART_DEVICE] = {NULL, NULL},
    [MR_PART_ACCOUNT] = {NULL, NULL},
};

#define NONE      0
#define SUBMITTED MR_TRAIT_SUBMITTED
#define WORK      MR_TRAIT_WORK
#define LAUNCH    MR_TRAIT_LAUNCH
#define MARKER    MR_TRAIT_MARKER
#define QUERY     MR_TRAIT_QUERY
#define ACCOUNT   MR_TRAIT_ACCOUNT
#define TOUCH     MR_TRAIT_TOUCH
#define BOUND     MR_TRAIT_BOUND
#define BEGINS    MR_TRAIT_BEGINS
#define ENDS      MR_TRAIT_ENDS
#define TWO       MR_TRAIT_TWO
const mr_command_kind mr_command_kinds[] = {
#define X(id, text, traits, part, after)                                                           \
    [MR_COMMAND_##id] = {text, traits, MR_PART_##part, MR_AFTER_##after},
    MR_COMMAND_LIST(X)
#undef X
};

void mr_command_blame(const mr_command *command, mr_status error) {
    mr_error *details = mr_error_details(error);
    if (!details) return;
    if (!details->op[0]) snprintf(details->op, sizeof details->op, "%s", command->name);
    if (command->stream) mr_stream_blame(command->stream, error);
    if (!details->where.file) details->where = command->where;
}

const char *mr_command_describe(const mr_command *command, char *out, size_t size) {
    mr_command_part part = mr_command_kinds[command->kind].part;
    char detail[120] = "", stream[80] = "", place[120] = "", on[100] = "";
    if (parts[part].detail) parts[part].detail(command, detail, sizeof detail);
    if (command->stream)
        snprintf(on, sizeof on, " on %s",
                 mr_stream_describe(command->stream, stream, sizeof stream));
    if (command->where.file)
        snprintf(place, sizeof place, " at %.100s:%d", command->where.file, command->where.line);
    mr_text_format(out, size, "%s", command->name);
    size_t used = strlen(out);
    snprintf(out + used, size - used, "%s%s%s (#%" PRIu64 ")", detail, on, place, command->seq);
    return out;
}

/* ---- life */

mr_status mr_command_create(const mr_caller *caller, mr_command_id kind, mr_stream *stream,
                            const char *name, uint32_t operand_count, mr_command **out_command) {
    mr_machine *machine = caller->machine;
    *out_command = NULL;
    mr_command *command = mr_slab_alloc(&machine->objects.commands);
    if (!command) return mr_no_memory("for one more pending operation");
    memset(command, 0, sizeof *command);
    command->refs = 1;
    command->operands = command->inline_operands;
    if (operand_count > MR_INLINE_OPERANDS) {
        command->operands = calloc(operand_count, sizeof *command->operands);
        if (!command->operands) {
            mr_slab_free(&machine->objects.commands, command);
            return mr_no_memory("for %u operands of %s", operand_count, name);
        }
    }
    command->kind = kind;
    command->operand_count = operand_count;
    command->seq = machine->counts.next_seq++;
    command->machine = machine;
    command->where = caller->where;
    command->in_place = caller->in_place;
    bool is_work = mr_command_is(command, MR_TRAIT_WORK);
    command->name = is_work && caller->name ? caller->name : name;
    command->stream = stream;
    if (stream) mr_stream_retain(stream);
    *out_command = command;
    return MR_OK;
}

mr_status mr_command_set_name(mr_command *command, const char *name) {
    MR_TRY(mr_name_given(name, &command->own_name));
    command->name = command->own_name->text;
    return MR_OK;
}

mr_status mr_command_set_arguments(mr_command *command, const void *bytes, size_t size) {
    void *copy = malloc(size ? size : 1);
    if (!copy) return mr_no_memory("for %zu bytes of arguments of %s", size, command->name);
    if (size) memcpy(copy, bytes, size);
    free(command->u.op.arguments);
    command->u.op.arguments = copy;
    command->u.op.argument_bytes = size;
    return MR_OK;
}

const char *mr_assumed_text(mr_assumed why) {
    static const char *const texts[] = {"",
#define X(id, text) text,
                                        MR_ASSUMED_LIST(X)
#undef X
    };
    return texts[why];
}

void mr_command_set_operand(mr_command *command, uint32_t i, mr_tensor *tensor, uint8_t access) {
    mr_tensor_retain(tensor);
    command->operands[i] = (mr_operand){tensor, access};
}

mr_status mr_command_may(const mr_command *command) {
    mr_machine *machine = command->machine;
    mr_status status = MR_OK;
    machine->observing.telling++;
    for (size_t i = 0; i < machine->observing.observers.count && !status; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        bool sees = !command->in_place || !observer->as_written;
        if (observer->may && sees) status = observer->may(observer, command);
    }
    machine->observing.telling--;
    return status;
}

static void tell(const mr_command *command, bool host_waited) {
    mr_machine *machine = command->machine;
    machine->observing.telling++;
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (command->in_place && observer->as_written) continue;
        observer->did(observer, command, host_waited);
    }
    machine->observing.telling--;
}

void mr_command_did(const mr_command *command) {
    tell(command, true);
}

void mr_command_failed(const mr_command *command, mr_status status) {
    mr_machine *machine = command->machine;
    bool is_account = mr_command_is(command, MR_TRAIT_ACCOUNT);
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (!observer->failed || (is_account && !observer->everything)) continue;
        observer->failed(observer, command, status);
    }
}

void mr_command_account_may(mr_machine *machine) {
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->everything && observer->before) observer->before(observer);
    }
}

void mr_command_account(mr_machine *machine, mr_command *command, mr_status status) {
    command->refs = 1;
    command->machine = machine;
    command->name = mr_command_kinds[command->kind].name;
    if (!command->operands) command->operands = command->inline_operands;
    if (status) {
        mr_command_failed(command, status);
        return;
    }
    for (size_t i = 0; i < machine->observing.observers.count; i++) {
        mr_observer *observer = machine->observing.observers.items[i];
        if (observer->everything) observer->did(observer, command, true);
    }
}

void mr_command_note_writes(const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        if (!(command->operands[i].access & MR_WRITE)) continue;
        mr_storage *storage = command->operands[i].tensor->storage;
        mr_storage_wrote(storage, command->name, command->own_name, command->where);
    }
}

/* For commands during a capture. *out_taken: the capture has taken the command and its reference. */
static mr_status give_to_capture(mr_command *command, bool *out_taken) {
    mr_status status = mr_stream_usable(command->stream);
    if (!status) status = mr_capture_rules_of(command->machine)->submit(command, out_taken);
    if (!status) return MR_OK;
    mr_command_release(command);
    *out_taken = true;
    return status;
}

/* `asked`: the observers have been asked about it. *out_taken: the backend has it, also where an error is returned. */
static mr_status submit(mr_command *command, bool asked, bool *out_taken) {
    mr_machine *machine = command->machine;
    mr_stream *stream = command->stream;
    bool taken = false, allowed = false;
    mr_status status = MR_OK;
    *out_taken = false;
    if (__builtin_expect(machine->captures.open != 0, 0)) {
        status = give_to_capture(command, &taken);
        if (taken) return status;
    }
    mr_history_end(machine, command->name, command->where);
    if (stream->closed)
        status = mr_stream_usable(stream); /* by a finalizer, since the caller looked */
    if (!status && !asked) status = mr_command_may(command);
    if (!status) {
        allowed = true;
        if (command->meeting) command->meeting->members[command->member].command = command;
        status = machine->backend->submit(command, &taken);
    }
    *out_taken = taken;
    if (taken) {
        stream->last_seq = command->seq;
        mr_command_note_writes(command);
        tell(command, !status);
    }
    if (status) {
        mr_status error = mr_machine_waited(machine, status);
        if (allowed) mr_command_failed(command, error);
        mr_command_release(command);
        mr_machine_free_dropped(machine);
        return error;
    }
    bool memory = mr_command_has(command, MR_PART_MEMORY);
    bool work =
        mr_command_is(command, MR_TRAIT_LAUNCH) && command->kind != MR_COMMAND_HOST_FUNCTION;
    if (machine->launch_blocking && work && !command->launch &&
        !mr_command_waits_for_others(command))
        status = machine->backend->stream_synchronize(stream);
    /* An allocation must not return the error of a host function that ran meanwhile: its caller would assume that the
     * allocation, or the free, failed. The next call returns the error. */
    if (!memory) status = mr_machine_waited(machine, status);
    if (status) mr_command_failed(command, status);
    mr_command_release(command);
    if (!memory) mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_command_submit(mr_command *command) {
    bool taken;
    return submit(command, false, &taken);
}

/* Some members of a meeting would wait for ever for one that cannot be submitted: the machine is lost. */
static mr_status lose_meeting(mr_machine *machine, mr_status error) {
    mr_status lost =
        mr_machine_lose(machine, mr_fail(MR_CODE_LAUNCH_FAILURE,
                                         "a collective was submitted in part, and cannot end: %s: "
                                         "every call fails until mr.reset()",
                                         error->message));
    mr_error_destroy(error);
    return lost;
}

/* From now on the host of member i acts. */
static void let_host(mr_machine *machine, const mr_command *member, uint32_t i,
                     const mr_together *together) {
    together->turn(together->context, i);
    mr_observers_host_is(machine, member->meeting->members[member->member].host);
}

mr_status mr_command_submit_together(mr_command **commands, uint32_t count,
                                     const mr_together *together) {
    mr_machine *machine = commands[0]->machine;
    mr_status status = MR_OK;
    bool taken = true;
    /* the running host, which called last; each member counts as a call of its own host */
    uint16_t host = machine->rank;
    for (uint32_t i = 0; i < count && !status; i++) {
        let_host(machine, commands[i], i, together);
        status = mr_command_may(commands[i]);
    }
    if (status) taken = false;
    /* The backend may look at all of them when it gets the last one. */
    for (uint32_t i = 0; i < count; i++) commands[i]->refs++;
    for (uint32_t i = 0; i < count; i++) {
        if (!taken) {
            mr_command_release(commands[i]);
            continue;
        }
        mr_status ready = together->before(together->context, i);
        if (ready) {
            taken = false;
            status = mr_error_first(status, ready);
            mr_command_release(commands[i]);
        } else {
            let_host(machine, commands[i], i, together);
            /* An earlier error may be returned with a member that was taken. */
            status = mr_error_first(status, submit(commands[i], true, &taken));
        }
        if (!taken && i) status = lose_meeting(machine, status);
    }
    mr_observers_host_is(machine, host);
    for (uint32_t i = 0; i < count; i++) mr_command_release(commands[i]);
    return status;
}

static void destroy(mr_command *command) {
    mr_machine *machine = command->machine;
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].tensor) mr_tensor_release(command->operands[i].tensor);
    if (command->operands != command->inline_operands) free(command->operands);
    mr_name_release(command->own_name);
    mr_command_part part = mr_command_kinds[command->kind].part;
    if (parts[part].destroy) parts[part].destroy(command);
    mr_stream_release(command->stream);
    mr_stream_release(command->placed);
    mr_command_release(command->node);
    mr_meeting_release(command->meeting);
    mr_slab_free(&machine->objects.commands, command);
}

void mr_command_release(const mr_command *command) {
    mr_command *counted = (mr_command *)command;
    if (counted && --counted->refs == 0) destroy(counted);
}

mr_status mr_host_begin(const mr_caller *caller, mr_command_id kind, mr_stream *stream,
                        mr_event *event, mr_device *device, const char *name,
                        mr_command **out_command) {
    *out_command = NULL;
    if (!mr_kind_is(kind, MR_TRAIT_QUERY) && kind != MR_COMMAND_STREAM_CLOSE)
        mr_history_end(caller->machine, name, caller->where);
    if (!caller->machine->observing.observers.count) return MR_OK;
    mr_command *command;
    MR_TRY(mr_command_create(caller, kind, stream, name, 0, &command));
    if (event) {
        mr_event_retain(event);
        command->u.event.event = event;
        command->u.event.record_seq = event->record_seq;
    } else if (mr_command_has(command, MR_PART_DEVICE)) {
        command->u.device = device;
    }
    mr_status status = mr_command_may(command);
    if (status) mr_command_release(command);
    else *out_command = command;
    return status;
}

mr_status mr_host_end_query(mr_machine *machine, mr_command *command, mr_status status, bool done) {
    if (command && !status && done) mr_command_did(command);
    status = mr_machine_waited(machine, status);
    if (command && (status || !done)) mr_command_failed(command, status);
    mr_command_release(command);
    mr_machine_free_dropped(machine);
    return status;
}

mr_status mr_host_end(mr_machine *machine, mr_command *command, mr_status status) {
    return mr_host_end_query(machine, command, status, true);
}
