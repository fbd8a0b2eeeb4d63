/* Events of captures: the copy that a record keeps and a wait adds (R36, R37), and external records and waits, which
 * each launch carries out (R45).
 *
 * A record keeps a copy of its stream's frontier, and a wait adds that copy to another stream's.
 *
 * Easiest to break: an event may outlive the capture of its last record. It refers to that by number. */
#include <stdlib.h>

#include "base/text.h"
#include "graph/state.h"

void mr_capture_forget_event(mr_event *event) {
    captured_record *record = event->captured;
    event->captured = NULL;
    mr_vec_free(&record->nodes);
    free(record);
}

mr_status mr_capture_record(const mr_caller *caller, mr_event *event, mr_stream *stream) {
    captured_stream *s = stream->capture;
    (void)caller;
    MR_TRY(mr_capture_usable(s->capture, "record_event"));
    captured_record *made = calloc(1, sizeof *made);
    bool ok = made != NULL;
    for (size_t i = 0; i < s->frontier.count && ok; i++)
        ok = mr_index_add(&made->nodes, s->frontier.items[i]);
    if (!ok) {
        if (made) mr_vec_free(&made->nodes);
        free(made);
        return mr_capture_no_memory("an event");
    }
    made->capture = s->capture->graph->id;
    if (event->captured) mr_capture_forget_event(event);
    event->captured = made;
    event->device = stream->device;
    return MR_OK;
}

/* wait_stream and copies make an event that the script does not have, so messages cannot name it. */
static bool is_of_this_call(const mr_caller *caller, const mr_event *event) {
    return !event->name && event->where.file && event->where.file == caller->where.file &&
           event->where.line == caller->where.line;
}

static mr_status crosses(const mr_caller *caller, mr_capture *capture, const mr_stream *stream,
                         const mr_event *event) {
    char on[100], name[100], what[260];
    mr_stream_describe(stream, on, sizeof on);
    if (event->device && event->device != stream->device)
        mr_text_format(what, sizeof what,
                       "%s captures, and the call waits for device %d, where no stream captures (a "
                       "copy between devices does)",
                       on, event->device->index);
    else if (is_of_this_call(caller, event))
        mr_text_format(what, sizeof what,
                       "%s captures, and the stream that it waits for does not: that work is "
                       "outside of the capture",
                       on);
    else
        mr_text_format(what, sizeof what, "%s captures, and %s was recorded outside of the capture",
                       on, mr_event_describe(event, name, sizeof name));
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_ISOLATION, "wait_event", what,
                             "Let the stream on which the graph is launched wait for it, or record "
                             "it inside of the capture.");
}

static mr_status merges(const mr_caller *caller, mr_capture *capture, mr_capture *other,
                        const mr_stream *stream, const mr_event *event) {
    char on[100], name[100], what[320];
    mr_text_format(
        what, sizeof what,
        "%s captures, and %s belongs to another capture, which began at %.80s:%d",
        mr_stream_describe(stream, on, sizeof on), mr_event_describe(event, name, sizeof name),
        other->graph->begun.file ? other->graph->begun.file : "?", other->graph->begun.line);
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_MERGE, "wait_event", what,
                             "Capture both parts in one capture, or launch one graph after the "
                             "other.");
}

static mr_status ended(const mr_event *event) {
    char name[100], what[200];
    mr_text_format(what, sizeof what, "%s was recorded in a capture that has ended",
                   mr_event_describe(event, name, sizeof name));
    return mr_capture_error(MR_CODE_CAPTURE_ISOLATION, "wait_event", what, (mr_site){0},
                            "Record an event on the stream on which the graph was launched.");
}

mr_status mr_capture_wait(const mr_caller *caller, mr_stream *stream, mr_event *event,
                          bool *out_taken) {
    captured_stream *s = stream->capture;
    const captured_record *found = event->captured;
    mr_capture *capture = s ? s->capture : NULL;
    mr_capture *other = found ? capture_by_id(caller->machine, found->capture) : NULL;
    if (capture) MR_TRY(mr_capture_usable(capture, "wait_event"));
    if (other) MR_TRY(mr_capture_usable(other, "wait_event"));
    *out_taken = true;
    if (capture && !found) /* R13: never recorded, so it delays no stream */
        return event->record_seq ? crosses(caller, capture, stream, event) : MR_OK;
    if (capture && !other) return crosses(caller, capture, stream, event);
    if (!other) return ended(event);
    if (capture && capture != other) return merges(caller, capture, other, stream, event);
    if (!capture && stream->kind == MR_STREAM_LEGACY)
        return mr_capture_refuse(other, caller, MR_CODE_CAPTURE_IMPLICIT, "wait_event",
                                 "the default stream cannot be captured",
                                 "Let another stream wait for the event.");
    if (!capture) return mr_capture_join(other, stream, &found->nodes);
    for (size_t i = 0; i < found->nodes.count; i++)
        if (!mr_index_add(&s->frontier, found->nodes.items[i]))
            return mr_capture_no_memory("a wait");
    return MR_OK;
}

mr_status mr_capture_external(const mr_caller *caller, mr_command_id kind, mr_event *event,
                              mr_stream *stream) {
    bool records = kind == MR_COMMAND_RECORD;
    MR_TRY(stop_holding(caller, records ? "record_event" : "wait_event"));
    if (!stream->capture)
        return records ? mr_event_record(caller, event, stream)
                       : mr_stream_wait_event(caller, stream, event);
    captured_stream *s = stream->capture;
    const char *name = records ? "record_event" : "wait_event";
    char text[100];
    mr_command *command;
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_capture_usable(s->capture, name));
    if (records && event->device && event->device != stream->device)
        return mr_fail(MR_CODE_INVALID_HANDLE, "record: %s belongs to device %d (R14)",
                       mr_event_describe(event, text, sizeof text), event->device->index);
    MR_TRY(mr_command_create(caller, kind, stream, name, 0, &command));
    mr_event_retain(event);
    command->u.event.event = event;
    MR_TRY(mr_capture_add_node(s, command));
    if (records) event->device = stream->device;
    return MR_OK;
}
