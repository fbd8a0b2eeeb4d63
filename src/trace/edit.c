/* A trace's commands without one of the things that held them up: see edit.h. */
#include "trace/edit.h"

#include <stdlib.h>
#include <string.h>

/* ---- the commands of one call of the script */

static bool same_call(const mr_span *a, const mr_span *b) {
    return a->called && b->called && a->where.file && a->where.file == b->where.file &&
           a->where.line == b->where.line && strcmp(a->name, b->name) == 0;
}

typedef struct {
    uint32_t first, end;
} range;

/* A call like item(), which ends with a wait of the host, and its earlier submissions. */
static range call_that_waits(const mr_span *spans, size_t count, uint32_t i) {
    range r = {i, i + 1};
    while (r.first && same_call(&spans[r.first - 1], &spans[i]) &&
           !mr_kind_waits(spans[r.first - 1].kind))
        r.first--;
    while (!mr_kind_waits(spans[r.end - 1].kind)) {
        if (r.end == count || !same_call(&spans[r.end], &spans[i])) return (range){i, i};
        r.end++;
    }
    return r;
}

/* Whether span `i` is part of a call of the script that ends with a wait of the host, such as item(). */
static bool is_of_waiting_call(const mr_span *spans, size_t count, uint32_t i) {
    range call = call_that_waits(spans, count, i);
    return call.first < call.end;
}

mr_cause mr_trace_cause_of_wait(const mr_span *spans, size_t count, uint32_t i) {
    bool async_copy = spans[i].kind == MR_COMMAND_COPY && !spans[i].synchronous &&
                      !is_of_waiting_call(spans, count, i);
    return async_copy ? MR_CAUSE_PAGEABLE : MR_CAUSE_SYNCHRONIZE;
}

/* A wait with the record that the same call made for it: of wait_stream the one before it, of a barrier all. */
static range call_with_record(const mr_trace_edit *edit, uint32_t wait) {
    const mr_span *spans = edit->spans;
    uint32_t record = spans[wait].record;
    range r = {wait, wait + 1};
    if (record == MR_TRACE_NONE || !same_call(&spans[record], &spans[wait])) return r;
    if (strcmp(spans[wait].name, "barrier") != 0)
        return record + 1 == wait ? (range){record, wait + 1} : r;
    while (r.first && same_call(&spans[r.first - 1], &spans[wait])) r.first--;
    while (r.end < edit->count && same_call(&spans[r.end], &spans[wait])) r.end++;
    return r;
}

/* An operation with the memory that its call made for the result. */
static range call_with_memory(const mr_trace_edit *edit, uint32_t i) {
    const mr_span *spans = edit->spans;
    range r = {i, i + 1};
    while (r.first && spans[r.first - 1].kind == MR_COMMAND_ALLOC && spans[r.first - 1].called &&
           spans[r.first - 1].stream == spans[i].stream &&
           spans[r.first - 1].where.line == spans[i].where.line &&
           spans[r.first - 1].where.file == spans[i].where.file)
        r.first--;
    return r;
}

/* ---- edits */

static void take_away(mr_trace_edit *edit, range r) {
    edit->gone_first = r.first;
    edit->gone_end = r.end;
    for (uint32_t i = r.first; i < r.end; i++) {
        mr_span *span = &edit->spans[i];
        span->kind = MR_COMMAND_HOST_ACCESS; /* which orders nothing */
        span->engine = MR_ENGINE_NONE;
        span->stream = MR_TRACE_NONE;
        span->record = MR_TRACE_NONE;
        span->ran = span->host_waited = false;
    }
}

static void remove_host_wait(mr_trace_edit *edit, uint32_t i, mr_cause rule) {
    range call = call_that_waits(edit->spans, edit->count, i);
    if (rule == MR_CAUSE_SYNCHRONIZE && call.first < call.end) {
        take_away(edit, (range){call.end - 1, call.end});
        call.end--;
    } else {
        call = (range){i, i + 1};
    }
    edit->free_first = call.first;
    edit->free_end = call.end;
    for (uint32_t k = call.first; k < call.end; k++) edit->spans[k].host_waited = false;
}

static void move_to_own_stream(mr_trace_edit *edit, uint32_t i) {
    mr_trace_stream *own = &edit->streams[edit->stream_count];
    *own = edit->streams[edit->spans[i].stream];
    own->is_legacy_default = own->is_blocking = false;
    range call =
        call_that_waits(edit->spans, edit->count, i); /* which then waits for that stream */
    if (call.first == call.end) call = (range){i, i + 1};
    for (uint32_t k = call.first; k < call.end; k++)
        edit->spans[k].stream = (uint32_t)edit->stream_count;
    edit->stream_count++;
}

static void unblock(mr_trace_edit *edit, uint32_t span) {
    if (span == MR_TRACE_NONE || edit->spans[span].stream == MR_TRACE_NONE) return;
    mr_trace_stream *stream = &edit->streams[edit->spans[span].stream];
    if (!stream->is_legacy_default) stream->is_blocking = false;
}

static void change(mr_trace_edit *edit, mr_trace_removal removal) {
    uint32_t i = removal.span;
    mr_span *span = &edit->spans[i];
    switch (removal.rule) {
    case MR_CAUSE_STREAM:
        if (span->stream != MR_TRACE_NONE) move_to_own_stream(edit, i);
        break;
    case MR_CAUSE_EVENT: take_away(edit, call_with_record(edit, i)); break;
    case MR_CAUSE_DEFAULT_STREAM:
        unblock(edit, i);
        unblock(edit, removal.holder);
        break;
    case MR_CAUSE_PEER_COPY:
        if (removal.holder != MR_TRACE_NONE) edit->spans[removal.holder].synchronous = false;
        span->synchronous = false;
        break;
    case MR_CAUSE_COLLECTIVE: span->meeting = 0; break;
    case MR_CAUSE_MEMORY: span->held_by = MR_CAUSE_NONE; break;
    case MR_CAUSE_PAGEABLE: edit->unstaged = i; /* fall through */
    case MR_CAUSE_SYNCHRONIZE: remove_host_wait(edit, i, removal.rule); break;
    case MR_CAUSE_HOST:
        if (!span->called || removal.holder == MR_TRACE_NONE) break;
        edit->early_first = call_with_memory(edit, i).first;
        edit->early_end = i + 1;
        edit->early_after = removal.holder;
        break;
    default: break;
    }
}

mr_status mr_trace_edit_make(const mr_trace *trace, mr_trace_removal removal,
                             mr_trace_edit *out_edit) {
    size_t count = mr_trace_count(trace), streams = mr_trace_stream_count(trace);
    mr_trace_edit edit = {.spans = malloc((count + 1) * sizeof *edit.spans),
                          .count = count,
                          .streams = malloc((streams + 1) * sizeof *edit.streams),
                          .stream_count = streams,
                          .unstaged = MR_TRACE_NONE,
                          .early_after = MR_TRACE_NONE};
    *out_edit = edit;
    if (!edit.spans || !edit.streams) {
        mr_trace_edit_free(out_edit);
        return mr_no_memory("to look at a trace");
    }
    if (count) memcpy(edit.spans, mr_trace_spans(trace), count * sizeof *edit.spans);
    for (size_t i = 0; i < streams; i++) edit.streams[i] = *mr_trace_stream_at(trace, (uint32_t)i);
    if (removal.span < count) change(&edit, removal);
    *out_edit = edit;
    return MR_OK;
}

void mr_trace_edit_free(mr_trace_edit *edit) {
    free(edit->spans);
    free(edit->streams);
    *edit = (mr_trace_edit){0};
}
