/* Replans a trace: see replan.h. The points of a trace (a call, a begin, a return) are gone through in the order in which
 * they happened: each depends only on earlier ones, also when all move. */
#include "trace/replan.h"

#include <stdlib.h>
#include <string.h>

typedef enum { POINT_CALL, POINT_BEGIN, POINT_RETURN } point_kind;

typedef struct {
    uint64_t time;
    uint32_t span;
    uint8_t kind;
} point;

typedef struct {
    int64_t call, returned, begin, end;
} moved;

#define CAUSE_COUNT (MR_CAUSE_CHOOSER + 1)

struct mr_trace_replan {
    const mr_trace *trace;
    mr_trace_order order;
    point *points;
    size_t point_count;
    moved *at;
    int64_t usual_lag[CAUSE_COUNT]; /* from the end of what was waited for to the begin, at least */
    int64_t usual_latency;          /* from a call to the begin, at least */
};

/* ---- what is usual */

static bool by_host(mr_cause cause) {
    return cause == MR_CAUSE_HOST || cause == MR_CAUSE_SYNCHRONIZE || cause == MR_CAUSE_PAGEABLE;
}

static void lower(int64_t *least, uint64_t from, uint64_t to) {
    int64_t lag = (int64_t)to - (int64_t)from;
    if (lag < *least) *least = lag;
}

static void find_usual(mr_trace_replan *r) {
    const mr_span *spans = mr_trace_spans(r->trace);
    for (int i = 0; i < CAUSE_COUNT; i++) r->usual_lag[i] = INT64_MAX;
    r->usual_latency = INT64_MAX;
    for (size_t i = 0; i < r->order.count; i++) {
        const mr_span *span = &spans[i];
        if (!span->ran) continue;
        if (span->called && mr_span_is_work(span))
            lower(&r->usual_latency, span->call, span->ready);
        for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
            const mr_trace_edge *edge = &r->order.edges[e];
            bool waited = span->held_by == edge->rule && spans[edge->from].ran;
            if (waited) lower(&r->usual_lag[edge->rule], spans[edge->from].end, span->ready);
        }
    }
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (r->usual_lag[i] == INT64_MAX || r->usual_lag[i] < 0) r->usual_lag[i] = 0;
}

/* ---- one point */

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static void move_call(mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace);
    uint32_t before = r->order.call_before[i];
    int64_t shift = 0;
    if (before != MR_TRACE_NONE) shift = r->at[before].returned - (int64_t)spans[before].returned;
    r->at[i].call = (int64_t)spans[i].call + shift;
}

/* The one of the edges to `i` that ended last in the trace: if the order held it up, then this one. */
static uint32_t latest_before(const mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace);
    uint32_t latest = MR_TRACE_NONE;
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        uint32_t from = r->order.edges[e].from;
        if (r->order.edges[e].rule == MR_CAUSE_SYNCHRONIZE || !spans[from].ran) continue;
        if (latest == MR_TRACE_NONE || spans[from].end > spans[latest].end) latest = from;
    }
    return latest;
}

static int64_t after_call(const mr_trace_replan *r, uint32_t i) {
    const mr_span *span = &mr_trace_spans(r->trace)[i];
    int64_t latency = (int64_t)span->ready - (int64_t)span->call;
    if (!by_host(span->held_by) && latency > r->usual_latency) latency = r->usual_latency;
    return r->at[i].call + latency;
}

/* When all that `i` comes after has ended. */
static int64_t end_before(const mr_trace_replan *r, uint32_t i) {
    int64_t end = 0;
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule != MR_CAUSE_SYNCHRONIZE) end = later(end, r->at[edge->from].end);
    }
    return end;
}

/* When `i` lets go what comes after it by this edge. A span that moves to another stream leaves its place to what is
 * before it, so that all other waits of its stream stay. A removed wait is no longer a part of its stream: behind a wait in
 * the default stream, other streams do not come after what that wait alone joined (R3). */
static int64_t end_for(const mr_trace_replan *r, const mr_trace_edge *edge,
                       mr_trace_removal removal) {
    uint32_t from = edge->from;
    if (from == removal.span && removal.rule == MR_CAUSE_STREAM && edge->rule == MR_CAUSE_STREAM)
        return end_before(r, from);
    if (from != removal.span || removal.rule != MR_CAUSE_EVENT || edge->rule == MR_CAUSE_STREAM)
        return r->at[from].end;
    for (size_t e = r->order.first[from]; e < r->order.first[from + 1]; e++)
        if (r->order.edges[e].rule == MR_CAUSE_STREAM) return r->at[r->order.edges[e].from].end;
    return 0;
}

static int64_t after_edges(const mr_trace_replan *r, uint32_t i, mr_trace_removal removal) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    uint32_t latest = by_host(span->held_by) ? MR_TRACE_NONE : latest_before(r, i);
    int64_t time = INT64_MIN;
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule == MR_CAUSE_SYNCHRONIZE || !spans[edge->from].ran) continue;
        bool moves = removal.rule == MR_CAUSE_STREAM;
        if (removal.span == i && removal.rule == edge->rule && !moves) continue;
        int64_t lag = (int64_t)span->ready - (int64_t)spans[edge->from].end;
        if (edge->from != latest && lag > r->usual_lag[edge->rule]) lag = r->usual_lag[edge->rule];
        time = later(time, end_for(r, edge, removal) + lag);
    }
    return time;
}

static bool by_engine(mr_cause cause) {
    return cause == MR_CAUSE_MULTIPROCESSORS || cause == MR_CAUSE_COPY_ENGINE;
}

static void move_begin(mr_trace_replan *r, uint32_t i, mr_trace_removal removal) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    int64_t ready = after_edges(r, i, removal);
    bool submitted = span->called && !(removal.span == i && removal.rule == MR_CAUSE_HOST);
    if (submitted) ready = later(ready, after_call(r, i));
    else if (!span->called) ready = (int64_t)span->ready; /* of before the trace */
    else if (ready == INT64_MIN) ready = 0;
    int64_t begin = ready + (int64_t)(span->begin - span->ready);
    if (by_engine(span->held_by)) {
        begin = ready;
        uint32_t holder = span->holder;
        bool removed = removal.span == i && removal.rule == span->held_by;
        if (!removed && holder != MR_TRACE_NONE && spans[holder].begin <= span->begin)
            begin =
                later(ready, r->at[holder].end + (int64_t)span->begin - (int64_t)spans[holder].end);
        else if (!removed) begin = ready + (int64_t)(span->begin - span->ready);
    }
    r->at[i].begin = begin;
    r->at[i].end = begin + (int64_t)(span->end - span->begin);
}

static void move_return(mr_trace_replan *r, uint32_t i, mr_trace_removal removal) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    int64_t own = (int64_t)(span->returned - span->call), last = INT64_MIN, last_now = INT64_MIN;
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule != MR_CAUSE_SYNCHRONIZE || !spans[edge->from].ran) continue;
        last = later(last, (int64_t)spans[edge->from].end);
        last_now = later(last_now, r->at[edge->from].end);
    }
    bool removed = removal.span == i &&
                   (removal.rule == MR_CAUSE_SYNCHRONIZE || removal.rule == MR_CAUSE_PAGEABLE);
    if (last == INT64_MIN && !removed) {
        r->at[i].returned = r->at[i].call + own;
        return;
    }
    own -= (int64_t)(span->waited < (uint64_t)own ? span->waited : (uint64_t)own);
    int64_t woken = span->host_waited ? later(0, (int64_t)span->returned - last) : 0;
    r->at[i].returned = r->at[i].call + own;
    if (!removed) r->at[i].returned = later(r->at[i].returned, last_now + woken);
}

/* ---- all */

static int by_time(const void *a, const void *b) {
    const point *left = a, *right = b;
    if (left->time != right->time) return left->time < right->time ? -1 : 1;
    if (left->span != right->span) return left->span < right->span ? -1 : 1;
    return (int)left->kind - (int)right->kind;
}

int64_t mr_trace_replan_begin(mr_trace_replan *r, mr_trace_removal removal, uint32_t span) {
    for (size_t i = 0; i < r->point_count; i++) {
        const point *p = &r->points[i];
        if (p->kind == POINT_CALL) move_call(r, p->span);
        else if (p->kind == POINT_BEGIN) move_begin(r, p->span, removal);
        else move_return(r, p->span, removal);
    }
    return r->at[span].begin;
}

int64_t mr_trace_replan_end(mr_trace_replan *r) {
    const mr_span *spans = mr_trace_spans(r->trace);
    int64_t end = 0;
    for (size_t i = 0; i < r->order.count; i++) {
        if (spans[i].called) end = later(end, r->at[i].returned);
        if (spans[i].ran) end = later(end, r->at[i].end);
    }
    return end;
}

static void list_points(mr_trace_replan *r) {
    const mr_span *spans = mr_trace_spans(r->trace);
    for (uint32_t i = 0; i < r->order.count; i++) {
        const mr_span *span = &spans[i];
        if (span->called) {
            r->points[r->point_count++] = (point){span->call, i, POINT_CALL};
            r->points[r->point_count++] = (point){span->returned, i, POINT_RETURN};
        }
        if (span->ran) r->points[r->point_count++] = (point){span->begin, i, POINT_BEGIN};
    }
    qsort(r->points, r->point_count, sizeof *r->points, by_time);
}

mr_status mr_trace_replan_open(const mr_trace *trace, mr_trace_replan **out_replan) {
    size_t count = mr_trace_count(trace), streams = mr_trace_stream_count(trace);
    mr_trace_replan *r = calloc(1, sizeof *r);
    *out_replan = NULL;
    mr_status status = mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to look at a trace");
    if (!r) return status;
    r->trace = trace;
    r->points = malloc((3 * count + 1) * sizeof *r->points);
    r->at = calloc(count + 1, sizeof *r->at);
    if (r->points && r->at) {
        mr_error_destroy(status);
        status =
            mr_trace_order_make(mr_trace_spans(trace), count,
                                streams ? mr_trace_stream_at(trace, 0) : NULL, streams, &r->order);
    }
    if (status) {
        mr_trace_replan_close(r);
        return status;
    }
    find_usual(r);
    list_points(r);
    *out_replan = r;
    return MR_OK;
}

void mr_trace_replan_close(mr_trace_replan *r) {
    if (!r) return;
    mr_trace_order_free(&r->order);
    free(r->points);
    free(r->at);
    free(r);
}

const mr_trace_order *mr_trace_replan_order(const mr_trace_replan *r) {
    return &r->order;
}
