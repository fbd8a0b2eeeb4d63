/* The cause that held a span up, where the backend cannot know it (the host's actions) or does not say it (real
 * hardware).
 *
 * Adds the host as a cause: a stream was idle while the host stood in a wait before it submitted the next operation.
 * On hardware: the last predecessor by the rules that ended; if the operation began much later, the work that
 * released its engine. */
#include <string.h>

#include "trace/edit.h"
#include "trace/order.h"
#include "trace/record/kept.h"

/* Beyond this a start is late by more than launches and engines that hand over cost. */
#define LATE_NS 20000

/* ---- the host's part, on every backend */

/* The host's calls while the span's stream was idle. */
static void blame_host(mr_span *spans, size_t count, size_t i, uint32_t waited,
                       uint64_t idle_since) {
    mr_span *span = &spans[i];
    span->held_by = MR_CAUSE_HOST;
    span->holder = MR_TRACE_NONE;
    if (waited == MR_TRACE_NONE) return;
    const mr_span *wait = &spans[waited];
    uint64_t stood_since = wait->returned - wait->waited;
    if (stood_since < idle_since) stood_since = idle_since;
    if (wait->returned <= stood_since) return;
    if (span->call - wait->returned > wait->returned - stood_since)
        return; /* mostly otherwise busy */
    span->held_by = mr_trace_cause_of_wait(spans, count, waited);
    span->holder = waited;
}

static void find_host_causes(mr_span *spans, size_t count, uint64_t *stream_end) {
    uint32_t waited = MR_TRACE_NONE;
    for (size_t i = 0; i < count; i++) {
        mr_span *span = &spans[i];
        bool in_stream = span->stream != MR_TRACE_NONE && span->ran;
        if (in_stream && span->called && span->held_by == MR_CAUSE_HOST &&
            span->kind != MR_COMMAND_HOST_FUNCTION)
            blame_host(spans, count, i, waited, stream_end[span->stream]);
        if (in_stream && mr_span_is_work(span) && span->end > stream_end[span->stream])
            stream_end[span->stream] = span->end;
        if (span->host_waited) waited = (uint32_t)i;
    }
}

/* ---- hardware: only work has times, and no causes */

/* By when all is done that a span comes after, and the work that was it. */
typedef struct {
    uint64_t time;
    uint32_t work;   /* NONE: nothing in the trace */
    mr_cause rule;   /* of the edge that led there */
    uint32_t holder; /* as mr_span.holder */
    bool known;
} front;

typedef struct {
    mr_span *spans;
    const mr_trace_order *order;
    front *fronts;    /* at the end of each span */
    uint32_t *by_end; /* work, sorted by its end */
    size_t work_count;
} deriver;

static front before(const deriver *d, size_t i) {
    front latest = {.work = MR_TRACE_NONE, .holder = MR_TRACE_NONE, .known = true};
    for (size_t e = d->order->first[i]; e < d->order->first[i + 1]; e++) {
        const mr_trace_edge *edge = &d->order->edges[e];
        if (edge->rule == MR_CAUSE_SYNCHRONIZE || edge->from >= i) continue;
        const front *from = &d->fronts[edge->from];
        latest.known &= from->known;
        if (from->work == MR_TRACE_NONE || from->time <= latest.time) continue;
        latest.time = from->time;
        latest.work = from->work;
        bool is_event = edge->rule == MR_CAUSE_EVENT;
        bool handed_on = edge->rule == MR_CAUSE_STREAM && from->rule != MR_CAUSE_NONE;
        latest.rule = handed_on ? from->rule : edge->rule;
        latest.holder = is_event ? (uint32_t)i : handed_on ? from->holder : from->work;
    }
    return latest;
}

/* The last work that ended on the engine before `span` began, or NONE. */
static uint32_t engine_before(const deriver *d, const mr_span *span) {
    size_t low = 0, high = d->work_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (d->spans[d->by_end[middle]].end <= span->begin) low = middle + 1;
        else high = middle;
    }
    while (low--) {
        const mr_span *earlier = &d->spans[d->by_end[low]];
        if (span->begin - earlier->end > LATE_NS) return MR_TRACE_NONE;
        if (earlier->engine == span->engine && earlier->device == span->device &&
            earlier->stream != span->stream)
            return d->by_end[low];
    }
    return MR_TRACE_NONE;
}

static void derive_work(deriver *d, size_t i, const front *order) {
    mr_span *span = &d->spans[i];
    uint64_t free = order->time;
    span->held_by = order->rule;
    span->holder = order->holder;
    if (order->work == MR_TRACE_NONE || (span->called && span->call > order->time)) {
        span->held_by = MR_CAUSE_HOST;
        span->holder = MR_TRACE_NONE;
        if (span->called) free = span->call;
    }
    span->ready = free < span->begin ? free : span->begin;
    if (span->begin - span->ready < LATE_NS) return;
    uint32_t holder = engine_before(d, span);
    if (holder == MR_TRACE_NONE || d->spans[holder].end <= span->ready) return;
    span->held_by = span->engine == MR_ENGINE_SM ? MR_CAUSE_MULTIPROCESSORS : MR_CAUSE_COPY_ENGINE;
    span->holder = holder;
}

/* A record or a wait is over when all before it is. */
static void derive_marker(mr_span *spans, size_t i, const front *order) {
    mr_span *span = &spans[i];
    if (!span->called || !order->known) return;
    bool late = span->returned >= order->time;
    uint64_t time = late ? span->returned : order->time;
    span->ran = true;
    span->ready = span->begin = span->end = time;
    span->held_by = late ? MR_CAUSE_HOST : order->rule;
    span->holder = late ? MR_TRACE_NONE : order->holder;
    if (span->holder == i) span->holder = span->record; /* later work waits for the wait itself */
}

static void derive_all(deriver *d, size_t count) {
    for (size_t i = 0; i < count; i++) {
        mr_span *span = &d->spans[i];
        front *f = &d->fronts[i];
        *f = before(d, i);
        if (mr_span_is_work(span)) {
            if (span->ran) derive_work(d, i, f);
            *f = (front){.time = span->end,
                         .work = span->ran ? (uint32_t)i : MR_TRACE_NONE,
                         .holder = (uint32_t)i,
                         .known = span->ran};
        } else if (span->stream != MR_TRACE_NONE && mr_kind_is(span->kind, MR_TRAIT_MARKER)) {
            derive_marker(d->spans, i, f);
        }
    }
}

static int by_end(const void *a, const void *b, void *context) {
    const mr_span *spans = context;
    uint64_t left = spans[*(const uint32_t *)a].end, right = spans[*(const uint32_t *)b].end;
    return left < right ? -1 : left > right;
}

static mr_status derive(mr_span *spans, size_t count, const mr_trace_stream *streams,
                        size_t stream_count) {
    mr_trace_order order;
    MR_TRY(mr_trace_order_make(spans, count, streams, stream_count, &order));
    deriver d = {.spans = spans,
                 .order = &order,
                 .fronts = malloc(count * sizeof *d.fronts),
                 .by_end = malloc(count * sizeof *d.by_end)};
    mr_status status = MR_OK;
    if (d.fronts && d.by_end) {
        for (size_t i = 0; i < count; i++)
            if (mr_span_is_work(&spans[i]) && spans[i].ran) d.by_end[d.work_count++] = (uint32_t)i;
        qsort_r(d.by_end, d.work_count, sizeof *d.by_end, by_end, spans);
        derive_all(&d, count);
    } else {
        status = mr_no_memory("for the causes of a trace");
    }
    free(d.fronts);
    free(d.by_end);
    mr_trace_order_free(&order);
    return status;
}

/* Whether something ran, and its backend named no cause. */
static bool has_no_causes(const mr_span *spans, size_t count) {
    bool ran = false;
    for (size_t i = 0; i < count; i++) {
        if (spans[i].held_by != MR_CAUSE_NONE) return false;
        ran |= spans[i].ran;
    }
    return ran;
}

mr_status mr_trace_find_causes(mr_span *spans, size_t count, const mr_trace_stream *streams,
                               size_t stream_count) {
    if (has_no_causes(spans, count)) MR_TRY(derive(spans, count, streams, stream_count));
    uint64_t *stream_end = calloc(stream_count + 1, sizeof *stream_end);
    if (!stream_end) return mr_no_memory("for the causes of a trace");
    find_host_causes(spans, count, stream_end);
    free(stream_end);
    return MR_OK;
}
