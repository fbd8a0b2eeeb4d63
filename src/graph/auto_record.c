/* Calls that run normally, while an observer notes their work, and the reasons why they cannot be a graph.
 *
 * Easiest to break: an action of a recorded call that this file overlooks would be missing in the launch of a later
 * call. So an unknown action is an objection. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/auto_state.h"
#include "ops/params.h"

void mr_auto_object(mr_auto *a, mr_site where, const char *name, const char *what) {
    if (a->reason[0]) return;
    mr_text_format(a->reason, sizeof a->reason, "`%.40s` at %.100s:%d %s", name,
                   where.file ? where.file : "?", where.line, what);
}

const char mr_auto_meets[] = "is a collective, for which other ranks may not come";
const char mr_auto_frees[] = "frees memory, which a graph keeps: leave it to the collector";

/* ---- streams */

static bool has_stream(const mr_auto *a, const mr_stream *stream) {
    for (size_t i = 0; i < a->streams.count; i++)
        if (a->streams.items[i] == stream) return true;
    return false;
}

const char *mr_auto_apart(mr_auto *a, const mr_stream *stream) {
    if (stream->device == a->begun.stream->device)
        return "is on a stream that did not wait for the current one: let it wait for it, so that "
               "it is a part of the graph";
    snprintf(a->other_device, sizeof a->other_device,
             "is on device %d, and the current stream on device %d: a graph of mr.graph.auto has "
             "one device",
             stream->device->index, a->begun.stream->device->index);
    return a->other_device;
}

/* R3 orders a blocking stream and the default stream without an event, which a graph would not know. */
const char *mr_auto_join(mr_auto *a, mr_stream *stream) {
    if (has_stream(a, stream)) return NULL;
    bool beside = stream != a->begun.stream;
    if (beside && stream->kind == MR_STREAM_LEGACY)
        return "uses the default stream together with another stream";
    if (beside && a->begun.stream->kind == MR_STREAM_LEGACY && stream->blocking)
        return "uses a blocking stream together with the default stream, which order each other "
               "without events: make it with mr.stream()";
    if (stream->device != a->begun.stream->device) return mr_auto_apart(a, stream);
    if (!mr_vec_push(&a->streams, stream)) return "came when memory was out";
    mr_stream_retain(stream);
    return NULL;
}

/* ---- commands */

static const char *objection_to_copy(const mr_command *command) {
    const mr_storage *to = command->operands[0].tensor->storage;
    const mr_storage *from = command->operands[1].tensor->storage;
    if (command->u.copy.synchronous) return "makes the host wait";
    if (command->u.copy.direction == MR_COPY_PEER) return "copies between devices";
    if (to->kind == MR_MEMORY_PAGEABLE || from->kind == MR_MEMORY_PAGEABLE)
        return "copies to or from pageable host memory: use pinned memory, or copy before the "
               "call";
    return NULL;
}

const char *mr_auto_objection(const mr_command *command) {
    if (command->launch) return "is of a graph's launch: call g:launch() outside of the function";
    switch (command->kind) {
    case MR_COMMAND_OP: return NULL;
    case MR_COMMAND_COPY: return objection_to_copy(command);
    case MR_COMMAND_HOST_FUNCTION: return "runs a host function, which each call makes anew";
    case MR_COMMAND_FAULT:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return "is not done by graphs";
}

static const char *objection_to_draw(const mr_auto *a, const mr_command *command) {
    if (command->kind != MR_COMMAND_OP || !command->u.op.row->family->draws) return NULL;
    mr_random_params drawn = mr_params_of(command).random;
    bool as_expected =
        drawn.seed == a->now.seed && drawn.offset == a->now.first_draw + a->now.draws;
    return as_expected ? NULL
                       : "draws after another seed was set: mr.manual_seed() belongs before "
                         "the call";
}

static void note_work(mr_auto *a, const mr_command *command) {
    const char *objection = mr_auto_objection(command);
    if (command->meeting) objection = mr_auto_meets;
    if (!objection) objection = objection_to_draw(a, command);
    if (!objection && !has_stream(a, command->stream))
        objection = mr_auto_apart(a, command->stream);
    if (objection) mr_auto_object(a, command->where, command->name, objection);
    if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws) a->now.draws++;
    if (!mr_sequence_add_work(&a->now, (mr_command *)command, false)) a->shortened = true;
}

static void note_record(mr_auto *a, const mr_command *command) {
    mr_event *event = command->u.event.event;
    if (command->launch)
        mr_auto_object(a, command->where, command->name, mr_auto_objection(command));
    if (event->timing)
        mr_auto_object(a, command->where, command->name,
                       "records an event that takes times, which a graph has only at its end");
    if (!mr_sequence_add_record(&a->now, event, command->stream, command->where, false))
        a->shortened = true;
    else a->now.list.items[a->now.list.count - 1].record_seq = command->seq;
}

static void note_wait(mr_auto *a, const mr_command *command) {
    uint64_t seq = command->u.event.record_seq;
    const char *objection = "waits for an event that was recorded before the call: let the current "
                            "stream wait for it before the call";
    if (!seq) return; /* R13: never recorded, so it delays no stream */
    for (size_t i = a->now.list.count; i-- > 0;) {
        const submitted *entry = &a->now.list.items[i];
        if (entry->kind != SUBMITTED_RECORD || entry->record_seq != seq) continue;
        objection = mr_auto_join(a, command->stream);
        if (!mr_sequence_add_wait(&a->now, (uint32_t)i, command->stream, command->where))
            a->shortened = true;
        break;
    }
    if (objection) mr_auto_object(a, command->where, command->name, objection);
}

/* The collector's frees have no line, and come at any time. */
static void note_free(mr_auto *a, const mr_command *command) {
    if (command->where.file) mr_auto_object(a, command->where, command->name, mr_auto_frees);
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    mr_auto *a = (mr_auto *)observer;
    (void)host_waited;
    if (mr_auto_is_other_rank(a)) return;
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: note_work(a, command); break;
    case MR_COMMAND_RECORD: note_record(a, command); break;
    case MR_COMMAND_WAIT: note_wait(a, command); break;
    case MR_COMMAND_FREE: note_free(a, command); break;
    case MR_COMMAND_ALLOC:
        if (!mr_sequence_add_alloc(&a->now, command->u.storage, command->stream, command->where,
                                   false))
            a->shortened = true;
        break;
    case MR_COMMAND_STREAM_CREATE:
    /* a stream that only this call uses is noticed at its use */
    case MR_COMMAND_STREAM_CLOSE: break;
    case MR_COMMAND_STREAM_SYNC:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_DEVICE_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_RESET:
        MR_ACCOUNT_LIST(MR_COMMAND_CASE)
        mr_auto_object(a, command->where, command->name,
                       "is done by the host, which waits for the device or touches memory");
    }
}

mr_status mr_auto_record(mr_auto *a) {
    a->observer = (mr_observer){.name = "auto", .did = did};
    MR_TRY(mr_observer_add(a->machine, &a->observer));
    a->phase = CALL_RECORDED;
    return MR_OK;
}

void mr_auto_stop_recording(mr_auto *a) {
    mr_observer_remove(a->machine, &a->observer);
    a->phase = CALL_NONE;
}
