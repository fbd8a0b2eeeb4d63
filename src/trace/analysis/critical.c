/* The critical path: from the end of the trace back, always to what made the span or the call begin, or return, no
 * sooner. */
#include <stdlib.h>

#include "trace/analysis.h"
#include "trace/analysis/chain.h"

typedef struct {
    const mr_trace *trace;
    const mr_span *spans;
    mr_trace_order order;
    mr_trace_path *path; /* the last link first, while it is made */
    bool failed;
} walk;

/* The next step: the device's part of a span, the call that submitted it, or a call that returned. */
typedef enum { AT_END, AT_DEVICE, AT_CALL, AT_RETURN } place_kind;

typedef struct {
    place_kind kind;
    uint32_t span;
} place;

static void add(walk *w, uint32_t span, bool is_host, uint64_t begin, uint64_t end,
                mr_cause cause) {
    mr_trace_link link = {span, is_host, begin, end, cause};
    if (!mr_vec_push(w->path, link)) w->failed = true;
}

static place at_call(const walk *w, uint32_t span) {
    return (place){w->spans[span].called ? AT_CALL : AT_END, span};
}

static place at_return_before(const walk *w, uint32_t span) {
    uint32_t before = w->order.call_before[span];
    return (place){before == MR_TRACE_NONE ? AT_END : AT_RETURN, before};
}

static place device(walk *w, uint32_t i) {
    const mr_span *span = &w->spans[i];
    uint32_t marker;
    add(w, i, false, span->begin, span->end, span->held_by);
    uint32_t holder = mr_trace_work_behind(w->spans, i, &marker);
    if (holder != MR_TRACE_NONE) return (place){AT_DEVICE, holder};
    return at_call(w,
                   marker); /* the span itself, or the record of an event that was submitted late */
}

static place call(walk *w, uint32_t i) {
    const mr_span *span = &w->spans[i];
    uint64_t end = span->returned;
    if (span->ran && span->begin < end) end = span->begin;
    add(w, i, true, span->call, end, MR_CAUSE_HOST);
    return at_return_before(w, i);
}

/* A call that waited, or that only took its time. */
static place call_returned(walk *w, uint32_t i) {
    const mr_span *span = &w->spans[i];
    uint32_t last = span->host_waited ? mr_trace_waited_for(w->spans, &w->order, i) : MR_TRACE_NONE;
    if (last == MR_TRACE_NONE) {
        add(w, i, true, span->call, span->returned, MR_CAUSE_HOST);
        return at_return_before(w, i);
    }
    uint64_t end = w->spans[last].end < span->returned ? w->spans[last].end : span->returned;
    add(w, i, true, end, span->returned, MR_CAUSE_SYNCHRONIZE);
    return (place){AT_DEVICE, last};
}

static place last_of_all(const walk *w) {
    place last = {AT_END, 0};
    uint64_t time = 0;
    for (uint32_t i = 0; i < w->order.count; i++) {
        const mr_span *span = &w->spans[i];
        if (span->ran && mr_span_is_work(span) && span->end >= time) {
            last = (place){AT_DEVICE, i};
            time = span->end;
        }
        if (span->called && span->returned >= time) {
            last = (place){AT_RETURN, i};
            time = span->returned;
        }
    }
    return last;
}

static void reverse(mr_trace_path *path) {
    for (size_t i = 0, j = path->count; i + 1 < j; i++) {
        mr_trace_link link = path->items[i];
        path->items[i] = path->items[--j];
        path->items[j] = link;
    }
}

mr_status mr_trace_critical_path(const mr_trace *trace, mr_trace_path *out_path) {
    walk w = {.trace = trace, .spans = mr_trace_spans(trace), .path = out_path};
    size_t streams = mr_trace_stream_count(trace);
    *out_path = (mr_trace_path){0};
    MR_TRY(mr_trace_order_make(w.spans, mr_trace_count(trace),
                               streams ? mr_trace_stream_at(trace, 0) : NULL, streams, &w.order));
    place at = last_of_all(&w);
    /* Each step leads to an earlier time, but for spans without a length: so the number of steps is bounded, too. */
    for (size_t steps = 0; at.kind != AT_END && steps < 4 * w.order.count + 4; steps++) {
        if (at.kind == AT_DEVICE) at = device(&w, at.span);
        else if (at.kind == AT_CALL) at = call(&w, at.span);
        else at = call_returned(&w, at.span);
    }
    mr_trace_order_free(&w.order);
    if (w.failed) {
        mr_vec_free(out_path);
        return mr_no_memory("for a critical path");
    }
    reverse(out_path);
    return MR_OK;
}
