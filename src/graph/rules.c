/* The rules of capture (R35-R41): calls that may not be captured, calls that are prohibited meanwhile, and their
 * errors. A refused call invalidates the captures that it concerns (R38), and does nothing else. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/state.h"

/* ---- errors */

static const char *cuda_name(mr_code code) {
    switch (code) {
    case MR_CODE_ILLEGAL_STATE: return "cudaErrorIllegalState";
    case MR_CODE_CAPTURE_UNSUPPORTED: return "cudaErrorStreamCaptureUnsupported";
    case MR_CODE_CAPTURE_INVALIDATED: return "cudaErrorStreamCaptureInvalidated";
    case MR_CODE_CAPTURE_MERGE: return "cudaErrorStreamCaptureMerge";
    case MR_CODE_CAPTURE_UNJOINED: return "cudaErrorStreamCaptureUnjoined";
    case MR_CODE_CAPTURE_ISOLATION: return "cudaErrorStreamCaptureIsolation";
    case MR_CODE_CAPTURE_IMPLICIT: return "cudaErrorStreamCaptureImplicit";
    case MR_CODE_CAPTURED_EVENT: return "cudaErrorCapturedEvent";
    case MR_CODE_CAPTURE_WRONG_THREAD: return "cudaErrorStreamCaptureWrongThread";
    case MR_CODE_GRAPH_UPDATE: return "cudaErrorGraphExecUpdateFailure";
    default: return "cudaErrorInvalidValue";
    }
}

mr_status mr_capture_error(mr_code code, const char *name, const char *what, mr_site begun,
                           const char *cure) {
    char began[160] = "";
    if (begun.file)
        snprintf(began, sizeof began, " The capture began at %.100s:%d.", begun.file, begun.line);
    mr_status status = mr_fail(code, "%s: %s (%s, %d).%s %s", name, what, cuda_name(code),
                               mr_code_number(code), began, cure);
    mr_error *details = mr_error_details(status);
    if (details) snprintf(details->op, sizeof details->op, "%s", name);
    return status;
}

static void invalidate(mr_capture *capture, const mr_caller *caller, const char *name) {
    if (capture->invalidated) return;
    capture->invalidated = true;
    capture->reason_where = caller->where;
    snprintf(capture->reason, sizeof capture->reason, "%s", name);
}

/* Its error names the stream on which it began. */
static mr_status error_of(const mr_capture *capture, mr_code code, const char *name,
                          const char *what, const char *cure) {
    mr_status status = mr_capture_error(code, name, what, capture->graph->begun, cure);
    if (capture->streams.count) mr_stream_blame(capture->streams.items[0]->stream, status);
    return status;
}

mr_status mr_capture_refuse(mr_capture *capture, const mr_caller *caller, mr_code code,
                            const char *name, const char *what, const char *cure) {
    invalidate(capture, caller, name);
    return error_of(capture, code, name, what, cure);
}

mr_status mr_capture_usable(const mr_capture *capture, const char *name) {
    char what[200];
    if (!capture->invalidated) return MR_OK;
    if (capture->reason_where.file)
        mr_text_format(what, sizeof what, "the capture was invalidated by %s at %.100s:%d",
                       capture->reason, capture->reason_where.file, capture->reason_where.line);
    else mr_text_format(what, sizeof what, "the capture was invalidated by %s", capture->reason);
    return error_of(capture, MR_CODE_CAPTURE_INVALIDATED, name, what,
                    "Take that call out of the captured code, and capture again.");
}

/* ---- waits and queries of the host: R37, R40 */

static mr_status captured_event(const mr_caller *caller, const char *name, const mr_event *event) {
    const captured_record *record = event->captured;
    mr_capture *capture = capture_by_id(caller->machine, record->capture);
    char text[100], what[200];
    mr_text_format(what, sizeof what, "%s was last recorded in a capture, so it stands for no work",
                   mr_event_describe(event, text, sizeof text));
    const char *cure = "Record it on a stream that does not capture, or use another event.";
    if (capture)
        return mr_capture_refuse(capture, caller, MR_CODE_CAPTURED_EVENT, name, what, cure);
    return mr_capture_error(MR_CODE_CAPTURED_EVENT, name, what, (mr_site){0}, cure);
}

static mr_status capturing_stream(const mr_caller *caller, const char *name,
                                  const mr_stream *stream) {
    mr_capture *capture = capture_of(stream);
    char text[100], what[200];
    MR_TRY(mr_capture_usable(capture, name));
    mr_text_format(what, sizeof what,
                   "%s is capturing: a capture records operations and does not run them, so they "
                   "never complete",
                   mr_stream_describe(stream, text, sizeof text));
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_UNSUPPORTED, name, what,
                             "Do it after the capture has ended and the graph was launched.");
}

static mr_status close_stream(const mr_caller *caller, const char *name, const mr_stream *stream) {
    mr_capture *capture = capture_of(stream);
    char text[100], what[200];
    if (capture->streams.items[0]->stream != stream) return MR_OK;
    mr_text_format(what, sizeof what, "%s began a capture, which only this stream can end",
                   mr_stream_describe(stream, text, sizeof text));
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_UNSUPPORTED, name, what,
                             "End the capture first: mr.graph.finish.");
}

static bool is_on(const mr_capture *capture, const mr_device *device) {
    for (size_t i = 0; i < capture->streams.count; i++)
        if (capture->streams.items[i]->stream->device == device) return true;
    return false;
}

/* R40: calls that may wait for any stream are refused during a capture that is not relaxed. R37: calls that certainly
 * include a capturing stream are always refused. */
static mr_status unsafe(const mr_caller *caller, const char *name, const mr_device *device) {
    mr_capture *found = NULL;
    bool covers = false;
    for (mr_capture *c = captures_of(caller->machine)->first; c; c = c->next) {
        bool on = device && is_on(c, device);
        if (!on && c->mode == MR_CAPTURE_RELAXED) continue;
        invalidate(c, caller, name);
        covers |= on;
        found = c;
    }
    if (!found) return MR_OK;
    return mr_capture_refuse(
        found, caller, MR_CODE_CAPTURE_UNSUPPORTED, name,
        covers ? "a stream of this device is capturing: a capture records operations and does not "
                 "run them, so they never complete"
               : "not permitted while a stream is capturing: the call may wait for that stream, "
                 "whose operations are recorded and not run",
        covers ? "Do it after the capture has ended."
               : "Do it after the capture has ended, or begin the capture with mode=\"relaxed\".");
}

mr_status mr_capture_check_host(const mr_caller *caller, mr_capture_ask ask, const char *name,
                                mr_stream *stream, mr_event *event, mr_device *device) {
    if (ask == MR_ASK_ACCESS || ask == MR_ASK_COLLECTIVE) return MR_OK;
    if (event && event->captured) return captured_event(caller, name, event);
    if (ask == MR_ASK_CLOSE) return stream->capture ? close_stream(caller, name, stream) : MR_OK;
    if (stream && stream->capture) return capturing_stream(caller, name, stream);
    return unsafe(caller, name, ask == MR_ASK_DEVICE ? device : NULL);
}

/* ---- the default stream: R37, R39 */

/* A blocking stream that captures on the device; NULL: there is none. */
static captured_stream *blocking_stream_on(const mr_device *device) {
    for (mr_capture *c = captures_of(device->machine)->first; c; c = c->next)
        for (size_t i = 0; i < c->streams.count; i++) {
            captured_stream *s = c->streams.items[i];
            if (s->stream->blocking && s->stream->device == device) return s;
        }
    return NULL;
}

mr_status mr_capture_check_live(const mr_command *command) {
    const mr_stream *stream = command->stream;
    if (stream->kind != MR_STREAM_LEGACY || command->kind == MR_COMMAND_FREE) return MR_OK;
    captured_stream *blocked = blocking_stream_on(stream->device);
    if (!blocked) return MR_OK;
    mr_caller caller = {.machine = command->machine, .where = command->where};
    char text[100], what[220];
    mr_text_format(what, sizeof what,
                   "the default stream would wait for %s, a blocking stream that captures",
                   mr_stream_describe(blocked->stream, text, sizeof text));
    return mr_capture_refuse(blocked->capture, &caller, MR_CODE_CAPTURE_IMPLICIT, command->name,
                             what,
                             "Use another stream, or capture on a non-blocking one (mr.stream() "
                             "makes these).");
}
