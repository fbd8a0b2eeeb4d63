/* Functions that become graphs by themselves: the beginning and end of a call (auto.h).
 *
 * Easiest to break: a call whose graph cannot be made or launched must still be carried out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/auto_state.h"

/* NULL: no call is under way. */
static void set_call(mr_machine *machine, mr_auto *a) {
    captures *all = captures_of(machine);
    all->call = a;
    all->base.call = a ? &a->begun : NULL;
}

/* ---- coming and going */

mr_status mr_auto_new(const mr_caller *caller, mr_auto **out_auto) {
    mr_auto *a = *out_auto = calloc(1, sizeof *a);
    if (!a) return mr_no_memory("for a function of graphs");
    a->machine = caller->machine;
    a->epoch = caller->machine->epoch;
    snprintf(a->why, sizeof a->why, "it has not been called");
    return MR_OK;
}

static void drop_streams(mr_auto *a) {
    while (a->streams.count) mr_stream_release(mr_vec_pop(&a->streams));
    mr_vec_free(&a->streams);
    a->begun.stream = NULL;
}

static void drop_graph(mr_auto *a) {
    mr_executable_release(a->executable);
    a->executable = NULL;
}

static void forget_calls(mr_auto *a) {
    drop_graph(a);
    mr_sequence_clear(&a->last);
    a->has_last = false;
    a->last_reason[0] = 0;
}

void mr_auto_free(mr_auto *a) {
    if (!a) return;
    if (a->phase == CALL_HELD) mr_auto_leave_hold(a); /* the state closes in the middle of a call */
    if (a->phase == CALL_RECORDED) mr_auto_stop_recording(a);
    if (a->machine->captures.all && captures_of(a->machine)->call == a) set_call(a->machine, NULL);
    forget_calls(a);
    mr_sequence_clear(&a->now);
    drop_streams(a);
    free(a);
}

mr_machine *mr_auto_machine(const mr_auto *a) {
    return a->machine;
}

/* ---- the beginning of a call */

/* NULL, or why the call runs normally, without a graph. */
static const char *obstacle(const mr_auto *a, const mr_stream *stream) {
    const captures *all = captures_of(a->machine);
    if (all->call && mr_auto_is_other_rank(all->call))
        return "another rank was in a function of mr.graph.auto: the ranks of a process have one "
               "at a time";
    if (all->call)
        return "it was called inside another function of mr.graph.auto, and is part of that "
               "function";
    if (a->machine->captures.open || stream->capture)
        return "it was called while a stream captures: on the streams of that capture, its work is "
               "part of the capture";
    if (a->machine->host_function.running) return "it was called inside a host function";
    return NULL;
}

static mr_status begin(mr_auto *a, mr_stream *stream, mr_site where) {
    a->begun = (mr_function_call){where, a->machine->counts.next_seq, stream, a->machine->rank};
    a->reason[0] = a->why[0] = 0;
    a->shortened = false;
    a->now.seed = a->machine->random.seed;
    a->now.first_draw = a->machine->random.draws;
    const char *objection = mr_auto_join(a, stream);
    if (objection) return mr_no_memory("for a call");
    return a->has_last && !a->last_reason[0] ? mr_auto_hold(a) : mr_auto_record(a);
}

mr_status mr_auto_begin(const mr_caller *caller, mr_auto *a, mr_stream *stream) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(mr_captures_prepare(machine));
    const char *no = obstacle(a, stream);
    a->calls++;
    a->depth++;
    if (no) {
        if (a->depth == 1) snprintf(a->why, sizeof a->why, "%s", no);
        return MR_OK;
    }
    if (a->epoch != machine->epoch) forget_calls(a);
    a->epoch = machine->epoch;
    set_call(machine, a);
    mr_status status = begin(a, stream, caller->where);
    if (!status) return MR_OK;
    set_call(machine, NULL);
    drop_streams(a);
    a->depth--;
    return status;
}

/* ---- a graph of what was held */

/* Records an event of the capture in place of the script's event, which stays unchanged. */
static mr_status capture_record(const mr_caller *at, submitted *entry) {
    mr_event_options options = {0};
    mr_event_release(entry->stand_in);
    entry->stand_in = NULL;
    MR_TRY(mr_event_create(at, &options, &entry->stand_in));
    return mr_event_record(at, entry->stand_in, entry->stream);
}

static mr_status capture_work(const submitted *entry) {
    mr_command *command = entry->command;
    if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws)
        mr_capture_rules_of(command->machine)->draw(entry->stream); /* its number is the same */
    mr_command_retain(command);
    return mr_command_submit(command);
}

static mr_status capture_entry(const mr_auto *a, submitted *entry) {
    mr_caller at = {.machine = a->machine, .where = entry->where};
    switch (entry->kind) {
    case SUBMITTED_WORK: return capture_work(entry);
    case SUBMITTED_RECORD: return capture_record(&at, entry);
    case SUBMITTED_ALLOC: return mr_capture_adopt(&at, entry->stream, entry->storage);
    case SUBMITTED_WAIT: break;
    }
    return mr_stream_wait_event(&at, entry->stream, a->now.list.items[entry->of].stand_in);
}

static mr_status capture_all(const mr_caller *caller, mr_auto *a) {
    mr_status status = MR_OK;
    for (size_t i = 0; i < a->now.list.count && !status; i++)
        status = capture_entry(a, &a->now.list.items[i]);
    for (size_t i = 1; i < a->streams.count && !status; i++)
        status = mr_stream_wait_stream(caller, a->begun.stream, a->streams.items[i]);
    return status;
}

static mr_status make_graph(const mr_caller *caller, mr_auto *a) {
    mr_graph *graph = NULL;
    MR_TRY(mr_capture_begin_held(caller, a->begun.stream));
    mr_status status = capture_all(caller, a);
    if (status) mr_capture_abandon(a->begun.stream);
    else status = mr_capture_finish(caller, a->begun.stream, &graph);
    if (!status) status = mr_graph_instantiate(caller, graph, &a->executable);
    mr_graph_release(graph);
    if (!status) a->captures++;
    return status;
}

/* ---- a launch in the place of what was held */

/* A node has no stream, so it does not come after the earlier work of the stream on which it was captured, nor before
 * its later work (R41). The call itself would. These waits have the launch's name: they are not waits of the script, so
 * they are not judged. */
static mr_status surround(mr_auto *a, bool before) {
    mr_caller nobody = {.machine = a->machine, .in_place = true};
    for (size_t i = 1; i < a->streams.count; i++) {
        mr_stream *other = a->streams.items[i];
        MR_TRY(mr_stream_join(&nobody, before ? a->begun.stream : other,
                              before ? other : a->begun.stream, "launch"));
    }
    return MR_OK;
}

/* Records the function's events after its work, if the script can still use them. */
static mr_status record_events(mr_auto *a) {
    for (size_t i = 0; i < a->now.list.count; i++) {
        const submitted *entry = &a->now.list.items[i];
        mr_caller at = {.machine = a->machine, .where = entry->where, .in_place = true};
        bool asked = entry->event && entry->event->refs > 1 && !entry->event->closed;
        if (!asked) continue;
        MR_TRY(mr_event_record(&at, entry->event, entry->stream));
        mr_observers_renumbered(a->machine, entry->event);
    }
    return MR_OK;
}

static const mr_storage *first_written(const mr_auto *a) {
    for (size_t i = 0; i < a->now.list.count; i++) {
        const mr_command *command = a->now.list.items[i].command;
        for (uint32_t k = 0; command && k < command->operand_count; k++)
            if (command->operands[k].access & MR_WRITE) return command->operands[k].tensor->storage;
    }
    return NULL;
}

static void take_back_versions(const mr_auto *a) {
    for (size_t i = 0; i < a->now.list.count; i++) {
        const mr_command *command = a->now.list.items[i].command;
        for (uint32_t k = 0; command && k < command->operand_count; k++)
            if (command->operands[k].access & MR_WRITE)
                command->operands[k].tensor->storage->version--;
    }
}

/* Versions, which autograd needs, were counted while the call was held. A launch by the backend counts none. */
static mr_status launch(const mr_caller *caller, mr_auto *a) {
    const mr_storage *written = first_written(a);
    uint64_t version = written ? written->version : 0;
    mr_caller in_place = *caller;
    in_place.in_place = true;
    MR_TRY(mr_auto_tell(a));
    MR_TRY(surround(a, true));
    mr_status status = mr_executable_launch(&in_place, a->executable, a->begun.stream);
    if (written && written->version != version) take_back_versions(a);
    if (!status) status = surround(a, false);
    if (!status) status = record_events(a);
    if (!status) a->launches++;
    return status;
}

/* ---- the end of a call */

static void keep_why(mr_auto *a, const char *why) {
    snprintf(a->why, sizeof a->why, "%s", why);
}

/* The next call is compared with the commands of this one. */
static void keep_sequence(mr_auto *a, bool failed) {
    mr_auto_stop_recording(a);
    if (a->shortened) snprintf(a->reason, sizeof a->reason, "memory was out");
    if (failed) snprintf(a->reason, sizeof a->reason, "the function raised an error");
    if (a->reason[0]) keep_why(a, a->reason);
    else if (!a->why[0])
        keep_why(a, "this call was recorded, and the next one that submits the same is a graph");
    drop_graph(a);
    mr_sequence_clear(&a->last);
    a->last = a->now;
    a->now = (sequence){0};
    memcpy(a->last_reason, a->reason, sizeof a->reason);
    a->has_last = true;
}

static mr_status end_held(const mr_caller *caller, mr_auto *a, bool failed) {
    if (failed || !mr_sequence_same_end(&a->last, &a->now, a->why, sizeof a->why)) {
        mr_status status = mr_auto_give_up(a);
        if (a->phase == CALL_RECORDED) keep_sequence(a, failed);
        return status;
    }
    mr_auto_leave_hold(a);
    mr_status made = a->executable ? MR_OK : make_graph(caller, a);
    mr_status status;
    if (made) {
        snprintf(a->why, sizeof a->why, "no graph could be made: %s", made->message);
        mr_error_destroy(made);
        status = mr_auto_submit_held(a);
    } else {
        a->why[0] = 0;
        status = launch(caller, a);
        if (status)
            mr_text_format(a->why, sizeof a->why, "the launch raised an error: %s",
                           status->message);
    }
    mr_sequence_clear(&a->now);
    return status;
}

static mr_status end_call(const mr_caller *caller, mr_auto *a, bool failed) {
    if (a->epoch != caller->machine->epoch) { /* mr.reset() took it all */
        if (a->phase == CALL_RECORDED) mr_auto_stop_recording(a);
        mr_sequence_clear(&a->now);
        keep_why(a, "the function called mr.reset()");
        return MR_OK;
    }
    if (a->phase == CALL_HELD) return end_held(caller, a, failed);
    if (a->phase == CALL_RECORDED) keep_sequence(a, failed);
    return MR_OK;
}

mr_status mr_auto_end(const mr_caller *caller, mr_auto *a, bool failed) {
    captures *all = captures_of(caller->machine);
    a->depth--;
    if (all->call != a || a->depth) return MR_OK;
    mr_status status = end_call(caller, a, failed);
    set_call(caller->machine, NULL);
    drop_streams(a);
    return status;
}

mr_auto_facts mr_auto_facts_of(const mr_auto *a) {
    return (mr_auto_facts){
        .calls = a->calls,
        .launches = a->launches,
        .captures = a->captures,
        .nodes = a->executable ? mr_graph_count(mr_executable_graph(a->executable)) : 0,
        .why = a->why};
}
