/* Deferred calls: the streams capture by the rules of this file, which keep each submission and compare it with the
 * submission of the last call. A call that cannot be held ends the hold, then runs normally. So a held call neither
 * fails nor behaves differently.
 *
 * Easiest to break: the order. A call that reaches the device another way must end the hold first, because the held
 * commands come before it. A command that was made before the end of the hold needs a new number, because the held ones
 * get theirs at that end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/auto_state.h"
#include "ops/params.h"

static mr_auto *held_call(const mr_machine *machine) {
    return captures_of(machine)->call;
}

/* ---- the end of a hold */

static void forget(mr_auto *a, mr_event *event) {
    const captured_record *record = event->captured;
    if (record && record->capture == a->id)
        captures_of(a->machine)->base.rules->forget_event(event);
}

void mr_auto_leave_hold(mr_auto *a) {
    captures *all = captures_of(a->machine);
    for (size_t i = 0; i < a->now.list.count; i++) {
        mr_event *event = a->now.list.items[i].event;
        if (event) forget(a, event);
    }
    for (size_t i = 0; i < a->streams.count; i++) a->streams.items[i]->capture = NULL;
    all->stop_holding = NULL;
    all->base.rules = mr_capture_rules_usual();
    a->machine->captures.open--;
    a->phase = CALL_NONE;
}

/* A random operation made while the call was held has a number that counts like a capture's. */
static void set_draw(const mr_auto *a, mr_command *command) {
    if (command->kind != MR_COMMAND_OP || !command->u.op.row->family->draws) return;
    uint64_t number = mr_params_of(command).random.offset;
    mr_params_set_draw(command, a->now.seed, a->now.first_draw + number);
}

/* Versions and last writers were noted when it was held. */
static mr_status submit_work(const mr_auto *a, const submitted *entry) {
    mr_command *command = entry->command;
    command->seq = a->machine->counts.next_seq++;
    set_draw(a, command);
    mr_command_retain(command);
    mr_status status = mr_command_submit(command);
    for (uint32_t k = 0; k < command->operand_count && !status; k++)
        if (command->operands[k].access & MR_WRITE) command->operands[k].tensor->storage->version--;
    return status;
}

/* The script may have closed the event since; its waits stay valid (R19). */
static mr_status submit_record(const mr_caller *at, submitted *entry) {
    mr_event_options options = {0};
    mr_event *event = entry->event;
    mr_event_release(entry->stand_in); /* of a capture that failed */
    entry->stand_in = NULL;
    if (event->closed) {
        MR_TRY(mr_event_create(at, &options, &entry->stand_in));
        event = entry->stand_in;
    }
    MR_TRY(mr_event_record(at, event, entry->stream));
    entry->record_seq = event->record_seq;
    return MR_OK;
}

static mr_status submit_entry(mr_auto *a, submitted *entry) {
    mr_caller at = {.machine = a->machine, .where = entry->where};
    if (entry->kind == SUBMITTED_ALLOC) return MR_OK; /* it was not held */
    if (entry->kind == SUBMITTED_WORK) return submit_work(a, entry);
    if (entry->kind == SUBMITTED_RECORD) return submit_record(&at, entry);
    submitted *record = &a->now.list.items[entry->of];
    return mr_stream_wait_event(&at, entry->stream,
                                record->stand_in ? record->stand_in : record->event);
}

mr_status mr_auto_submit_held(mr_auto *a) {
    mr_status status = MR_OK;
    a->machine->random.draws += a->now.draws;
    for (size_t i = 0; i < a->now.list.count && !status; i++)
        status = submit_entry(a, &a->now.list.items[i]);
    for (size_t i = 0; i < a->now.list.count; i++) mr_sequence_let_go(&a->now.list.items[i]);
    return status;
}

mr_status mr_auto_give_up(mr_auto *a) {
    mr_auto_leave_hold(a);
    mr_status status = mr_auto_submit_held(a);
    mr_status recorded = mr_auto_record(a);
    if (!status) return recorded;
    mr_error_destroy(recorded);
    return status;
}

/* The reason is kept for later calls, too. */
static mr_status object(mr_auto *a, mr_site where, const char *name, const char *what) {
    mr_auto_object(a, where, name, what);
    return mr_auto_give_up(a);
}

static mr_status stop_for(mr_auto *a, const mr_caller *caller, const char *name) {
    return object(a, caller->where, name, "cannot be a part of a graph");
}

/* ---- submissions */

/* Compares the newest entry with the last call's. If it differs, it is removed, and the hold ends. */
static mr_status compare_newest(mr_auto *a) {
    size_t i = a->now.list.count - 1;
    if (i < a->last.list.count) {
        if (mr_sequence_same(&a->last, &a->now, i, a->why, sizeof a->why)) return MR_OK;
    } else {
        mr_sequence_same_end(&a->last, &a->now, a->why, sizeof a->why);
    }
    mr_sequence_drop_last(&a->now);
    return mr_auto_give_up(a);
}

static mr_status submit_later(mr_auto *a, mr_command *command) {
    const char *objection = mr_auto_objection(command);
    if (!command->stream->capture) objection = mr_auto_apart(a, command->stream);
    if (objection) return object(a, command->where, command->name, objection);
    if (!mr_sequence_add_work(&a->now, command, true))
        return mr_no_memory("for what a call submits");
    return compare_newest(a);
}

/* Memory is allocated at once, and freed when the collector runs: held commands do not use such memory. */
static mr_status submit(mr_command *command, bool *out_taken) {
    mr_auto *a = held_call(command->machine);
    if (mr_command_has(command, MR_PART_MEMORY)) return MR_OK;
    MR_TRY(submit_later(a, command));
    *out_taken = a->phase == CALL_HELD;
    if (*out_taken) {
        mr_command_note_writes(command);
        mr_command_release(command); /* the sequence has it */
        return MR_OK;
    }
    command->seq = command->machine->counts.next_seq++;
    set_draw(a, command);
    if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws)
        a->now.draws--; /* it is counted where it is recorded */
    if (command->kind == MR_COMMAND_RECORD) command->u.event.record_seq = command->seq;
    return MR_OK;
}

/* ---- events */

static mr_status note(mr_auto *a, mr_event *event, mr_stream *stream) {
    captured_record *made = calloc(1, sizeof *made);
    if (!made || !mr_index_add(&made->nodes, (uint32_t)a->now.list.count - 1)) {
        free(made);
        return mr_no_memory("for what a call submits");
    }
    made->capture = a->id;
    if (event->captured) captures_of(a->machine)->base.rules->forget_event(event);
    event->captured = made;
    event->device = stream->device;
    return MR_OK;
}

static mr_status record(const mr_caller *caller, mr_event *event, mr_stream *stream) {
    mr_auto *a = held_call(caller->machine);
    if (event->timing)
        MR_TRY(object(a, caller->where, "record_event",
                      "records an event that takes times, which a graph has only at its end"));
    else if (!mr_sequence_add_record(&a->now, event, stream, caller->where, true))
        return mr_no_memory("for what a call submits");
    else MR_TRY(compare_newest(a));
    if (a->phase != CALL_HELD) return mr_event_record(caller, event, stream);
    return note(a, event, stream);
}

/* Makes the stream take part in the capture, if it does not yet; otherwise ends the hold. */
static mr_status take_part(mr_auto *a, const mr_caller *caller, mr_stream *stream) {
    if (stream->capture) return MR_OK;
    const char *objection = mr_auto_join(a, stream);
    if (objection) return object(a, caller->where, "wait_event", objection);
    stream->capture = a;
    return MR_OK;
}

static mr_status wait(const mr_caller *caller, mr_stream *stream, mr_event *event,
                      bool *out_taken) {
    mr_auto *a = held_call(caller->machine);
    const captured_record *found = event->captured;
    bool of_this_call = found && found->capture == a->id;
    if (!found && !event->record_seq) { /* R13 */
        *out_taken = true;
        return MR_OK;
    }
    if (!of_this_call)
        MR_TRY(
            object(a, caller->where, "wait_event",
                   "waits for an event that was recorded before the call: let the current stream "
                   "wait for it before the call"));
    else {
        uint32_t of = found->nodes.items[0];
        MR_TRY(take_part(a, caller, stream));
        if (a->phase == CALL_HELD) {
            if (!mr_sequence_add_wait(&a->now, of, stream, caller->where))
                return mr_no_memory("for what a call submits");
            MR_TRY(compare_newest(a));
        }
    }
    *out_taken = a->phase == CALL_HELD;
    if (!*out_taken && event->captured) /* of a capture that is over */
        return mr_capture_rules_usual()->wait(caller, stream, event, out_taken);
    return MR_OK;
}

static void forget_event(mr_event *event) {
    mr_capture_rules_usual()->forget_event(event);
}

/* ---- memory */

/* The memory that the graph's launch writes in place of this allocation. */
static mr_storage *memory_of_graph(const mr_auto *a) {
    const mr_graph *graph = mr_executable_graph(a->executable);
    return graph->memory.items[a->now.allocated.count].storage;
}

static void hand_out(mr_storage *storage, mr_site where) {
    mr_storage_retain(storage);
    mr_storage_add_handle(storage);
    storage->generation++;
    storage->freed = storage->recorded_free = false;
    storage->made = where;
    mr_name_keep(&storage->name, NULL);
}

static mr_status reuse(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                       mr_storage **out_storage) {
    mr_auto *a = held_call(caller->machine);
    if (!mr_sequence_same_alloc(&a->last, &a->now, bytes, stream, caller->where, a->why,
                                sizeof a->why))
        return mr_auto_give_up(a);
    if (!a->executable) return MR_OK;
    mr_storage *storage = memory_of_graph(a);
    mr_auto_tell_reused(a, storage);
    if (!mr_sequence_add_alloc(&a->now, storage, stream, caller->where, true))
        return mr_no_memory("for what a call submits");
    hand_out(storage, caller->where);
    *out_storage = storage;
    return MR_OK;
}

static mr_status alloc_stream(const mr_caller *caller, mr_stream *stream, mr_stream **out_stream) {
    (void)caller;
    *out_stream = stream;
    return MR_OK;
}

static mr_status allocated(const mr_caller *caller, mr_stream *stream, mr_storage *storage) {
    mr_auto *a = held_call(caller->machine);
    if (!a || a->phase != CALL_HELD) return MR_OK; /* a finalizer ended it: it was recorded */
    if (!mr_sequence_add_alloc(&a->now, storage, stream, caller->where, true))
        return mr_no_memory("for what a call submits");
    return MR_OK;
}

static mr_status free_memory(const mr_caller *caller, mr_storage *storage, mr_stream *stream,
                             bool at_once, bool *out_taken) {
    MR_TRY(object(held_call(caller->machine), caller->where, "free", mr_auto_frees));
    return storage->graph
               ? mr_capture_rules_usual()->free(caller, storage, stream, at_once, out_taken)
               : MR_OK;
}

/* ---- the host */

static mr_status host(const mr_caller *caller, mr_capture_ask ask, const char *name,
                      mr_stream *stream, mr_event *event, mr_device *device) {
    static const char *const doing[] = {
        [MR_ASK_STREAM] = "makes the host wait for a stream or ask it",
        [MR_ASK_EVENT] = "makes the host wait for an event or ask it",
        [MR_ASK_DEVICE] = "makes the host wait for the device",
        [MR_ASK_CLOSE] = "closes a stream",
        [MR_ASK_UNSAFE] = "may make the host wait",
        [MR_ASK_ACCESS] = "is done by the host, with memory that the device may use",
        [MR_ASK_COLLECTIVE] = mr_auto_meets,
    };
    MR_TRY(object(held_call(caller->machine), caller->where, name, doing[ask]));
    if (!event || !event->captured) return MR_OK; /* of a capture that is over */
    return mr_capture_rules_usual()->host(caller, ask, name, stream, event, device);
}

/* ---- random numbers */

/* A new seed ends the hold before it is set. */
static uint64_t draw(mr_stream *stream) {
    return held_call(stream->device->machine)->now.draws++;
}

/* ---- a reset, and the end of the machine */

static void abandon(mr_machine *machine) {
    mr_auto *a = held_call(machine);
    mr_auto_leave_hold(a);
    mr_sequence_clear(&a->now);
}

static void close_all(mr_machine *machine) {
    abandon(machine);
    mr_capture_rules_usual()->close(machine);
}

static const mr_capture_rules rules = {
    .submit = submit,
    .record = record,
    .wait = wait,
    .host = host,
    .reuse = reuse,
    .alloc_stream = alloc_stream,
    .allocated = allocated,
    .free = free_memory,
    .draw = draw,
    .forget_event = forget_event,
    .abandon = abandon,
    .close = close_all,
};

/* ---- the beginning */

mr_status mr_auto_hold(mr_auto *a) {
    captures *all = captures_of(a->machine);
    a->id = ++a->machine->captures.next_id;
    all->base.rules = &rules;
    all->stop_holding = stop_for;
    a->begun.stream->capture = a;
    a->machine->captures.open++;
    a->phase = CALL_HELD;
    return MR_OK;
}
