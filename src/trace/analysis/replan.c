/* Replans a trace: see replan.h. The points of a trace (a call, a begin, a return) are gone through in the order in
 * which they happened. Each depends only on earlier ones, even if all of them move. Times come from the trace, the
 * order from the edited trace (edit.h). */
#include "trace/analysis/replan.h"

#include <stdlib.h>
#include <string.h>

#include "trace/analysis/data.h"

typedef enum { POINT_CALL, POINT_BEGIN, POINT_RETURN } point_kind;

typedef struct {
    uint64_t time;
    uint32_t span;
    uint8_t kind;
} point;

typedef struct {
    int64_t call, returned, ready, begin, end;
    int64_t work_end; /* of a marker: when the work ended that it waited for */
    uint8_t engine;   /* which that work ran on: mr_engine */
} moved;

#define CAUSE_COUNT (MR_CAUSE_CHOOSER + 1)

struct mr_trace_replan {
    const mr_trace *trace;
    mr_trace_order whole; /* of the unchanged trace */
    mr_trace_edit edit;
    mr_trace_order order; /* of the edited trace */
    mr_trace_removal removal;
    point *points;
    size_t point_count;
    moved *at;
    /* the least time from the end of the awaited work to the begin */
    int64_t usual_lag[CAUSE_COUNT];
    int64_t usual_latency
        [2]; /* to the begin: from a call; of a staged copy from its return; at least */
};

/* ---- what is usual */

static bool by_host(mr_cause cause) {
    return cause == MR_CAUSE_HOST || cause == MR_CAUSE_SYNCHRONIZE || cause == MR_CAUSE_PAGEABLE;
}

static void lower(int64_t *least, uint64_t from, uint64_t to) {
    int64_t lag = (int64_t)to - (int64_t)from;
    if (lag < *least) *least = lag;
}

/* The host copied it during the call, and submitted it then. */
static bool is_staged(const mr_span *span) {
    return span->kind == MR_COMMAND_COPY && span->worked > 0;
}

static void find_usual(mr_trace_replan *r) {
    const mr_span *spans = mr_trace_spans(r->trace);
    for (int i = 0; i < CAUSE_COUNT; i++) r->usual_lag[i] = INT64_MAX;
    r->usual_latency[0] = r->usual_latency[1] = INT64_MAX;
    for (size_t i = 0; i < r->whole.count; i++) {
        const mr_span *span = &spans[i];
        if (!span->ran) continue;
        if (span->called && span->stream != MR_TRACE_NONE)
            lower(&r->usual_latency[is_staged(span)], is_staged(span) ? span->returned : span->call,
                  span->ready);
        for (size_t e = r->whole.first[i]; e < r->whole.first[i + 1]; e++) {
            const mr_trace_edge *edge = &r->whole.edges[e];
            bool waited = span->held_by == edge->rule && spans[edge->from].ran;
            if (waited) lower(&r->usual_lag[edge->rule], spans[edge->from].end, span->ready);
        }
    }
    if (r->usual_latency[0] < r->usual_latency[1]) r->usual_latency[1] = r->usual_latency[0];
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (r->usual_lag[i] == INT64_MAX || r->usual_lag[i] < 0) r->usual_lag[i] = 0;
}

/* ---- one point */

static int64_t later(int64_t a, int64_t b) {
    return a > b ? a : b;
}

static bool may_wait(const mr_span *span) {
    return span->host_waited || mr_kind_waits(span->kind);
}

/* Whether the host itself writes bytes that the moved call reads, or reads bytes that it writes. */
static bool is_needed_by_move(const mr_trace_replan *r, uint32_t call) {
    const mr_trace_edit *edit = &r->edit;
    if (edit->spans[call].kind != MR_COMMAND_HOST_ACCESS) return false;
    for (uint32_t i = edit->early_first; i < edit->early_end; i++)
        if (mr_trace_conflict(r->trace, call, i)) return true;
    return false;
}

/* A call that comes right after another one: not before those that its commands depend on, nor before a wait of the
 * host, which would then wait for them, too. */
static int64_t earliest_call(const mr_trace_replan *r) {
    const mr_trace_edit *edit = &r->edit;
    int64_t time = r->at[edit->early_after].returned;
    for (uint32_t c = r->order.call_before[edit->early_first]; c != MR_TRACE_NONE;
         c = r->order.call_before[c])
        if (may_wait(&edit->spans[c]) || is_needed_by_move(r, c)) {
            time = later(time, r->at[c].returned);
            break;
        }
    for (uint32_t i = edit->early_first; i < edit->early_end; i++)
        for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
            uint32_t from = r->order.edges[e].from;
            bool inside = from >= edit->early_first && from < edit->early_end;
            if (!inside && edit->spans[from].called) time = later(time, r->at[from].returned);
        }
    return time;
}

static void move_call(mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace);
    const mr_trace_edit *edit = &r->edit;
    uint32_t before = r->order.call_before[i];
    int64_t shift = 0;
    while (before != MR_TRACE_NONE && before >= edit->early_first && before < edit->early_end)
        before = r->order.call_before[before]; /* the calls after it do not come sooner */
    if (before != MR_TRACE_NONE) shift = r->at[before].returned - (int64_t)spans[before].returned;
    r->at[i].call = (int64_t)spans[i].call + shift;
    if (edit->early_after == MR_TRACE_NONE || i < edit->early_first || i >= edit->early_end) return;
    int64_t early = i > edit->early_first ? r->at[i - 1].returned : earliest_call(r);
    if (early < r->at[i].call) r->at[i].call = early;
}

/* The one of the edges to `i` that ended last in the trace: if the order held it up, then this one. */
static uint32_t latest_before(const mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace);
    uint32_t latest = MR_TRACE_NONE;
    for (size_t e = r->whole.first[i]; e < r->whole.first[i + 1]; e++) {
        uint32_t from = r->whole.edges[e].from;
        if (r->whole.edges[e].rule == MR_CAUSE_SYNCHRONIZE || !spans[from].ran) continue;
        if (latest == MR_TRACE_NONE || spans[from].end > spans[latest].end) latest = from;
    }
    return latest;
}

/* ---- when nothing of the order holds a span up any longer: as the device model says */

/* The host's part of the call alone. */
static int64_t own_time(const mr_span *span) {
    int64_t own = (int64_t)(span->returned - span->call) - (int64_t)span->waited;
    return later(0, own);
}

/* When the call had submitted it. */
static int64_t submitted(const mr_trace_replan *r, uint32_t i) {
    const mr_span *span = &mr_trace_spans(r->trace)[i];
    return is_staged(span) ? r->at[i].returned : r->at[i].call + own_time(span);
}

static bool begins_with_call(const mr_span *span) {
    return mr_kind_is(span->kind, MR_TRAIT_LAUNCH);
}

static mr_engine sort_of_engine(mr_engine engine) {
    if (engine == MR_ENGINE_NONE) return MR_ENGINE_NONE;
    bool is_kernel = engine == MR_ENGINE_SM || engine == MR_ENGINE_COPY_DEVICE;
    return is_kernel ? MR_ENGINE_SM : MR_ENGINE_COPY_IN;
}

/* A copy inside a device is a kernel. */
static bool is_bus_copy(const mr_span *span) {
    return span->kind == MR_COMMAND_COPY && sort_of_engine(span->engine) != MR_ENGINE_SM;
}

static int64_t exact_after_call(const mr_trace_replan *r, uint32_t i) {
    const mr_span *span = &mr_trace_spans(r->trace)[i];
    const mr_lags *lags = &mr_trace_facts_of(r->trace)->lags;
    int64_t last = 0, time = submitted(r, i);
    if (begins_with_call(span))
        last = (int64_t)(is_bus_copy(span) ? lags->copy_call : lags->launch);
    int64_t begin = time - last;
    if (begin < r->at[i].call) begin = r->at[i].call;
    return begin + (int64_t)lags->latency;
}

/* As virtual/queue.c has it: what had ended by the time of the submission lets it begin at once. */
static int64_t exact_after_edge(mr_trace_replan *r, uint32_t i, uint32_t from) {
    const mr_span *spans = r->edit.spans, *span = &spans[i];
    const mr_lags *lags = &mr_trace_facts_of(r->trace)->lags;
    const moved *before = &r->at[from];
    moved *it = &r->at[i];
    int64_t asked = submitted(r, i), time = before->end;
    if (time <= asked) return time;
    if (spans[from].stream != span->stream) time += (int64_t)lags->wait;
    if (!begins_with_call(span)) {
        if (it->work_end < before->work_end) {
            it->work_end = before->work_end;
            it->engine = before->engine;
        }
    } else if (it->engine && before->engine && it->engine != before->engine &&
               before->work_end > asked) {
        time = later(time, before->work_end + (int64_t)lags->handover);
    }
    return time;
}

static int64_t exact_ready(mr_trace_replan *r, uint32_t i) {
    int64_t time = exact_after_call(r, i);
    r->at[i].work_end = 0;
    r->at[i].engine = (uint8_t)sort_of_engine(r->edit.spans[i].engine);
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule != MR_CAUSE_SYNCHRONIZE && r->edit.spans[edge->from].ran)
            time = later(time, exact_after_edge(r, i, edge->from));
    }
    return time;
}

/* ---- the same, as the trace tells */

static int64_t after_call(const mr_trace_replan *r, uint32_t i) {
    const mr_span *span = &mr_trace_spans(r->trace)[i];
    bool staged = is_staged(span);
    int64_t latency = (int64_t)span->ready - (int64_t)(staged ? span->returned : span->call);
    int64_t usual = r->usual_latency[staged];
    if (!by_host(span->held_by) && latency > usual) latency = usual;
    return (staged ? r->at[i].returned : r->at[i].call) + latency;
}

static int64_t after_edges(const mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    uint32_t latest = by_host(span->held_by) ? MR_TRACE_NONE : latest_before(r, i);
    int64_t time = INT64_MIN;
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule == MR_CAUSE_SYNCHRONIZE || !r->edit.spans[edge->from].ran) continue;
        int64_t lag = (int64_t)span->ready - (int64_t)spans[edge->from].end;
        if (edge->from != latest && lag > r->usual_lag[edge->rule]) lag = r->usual_lag[edge->rule];
        time = later(time, r->at[edge->from].end + lag);
    }
    return time;
}

static int64_t ready_time(mr_trace_replan *r, uint32_t i) {
    const mr_span *span = &mr_trace_spans(r->trace)[i];
    if (!span->called) { /* of before the trace */
        r->at[i].engine = (uint8_t)sort_of_engine(span->engine);
        return (int64_t)span->ready;
    }
    if (mr_trace_facts_of(r->trace)->exact) return exact_ready(r, i);
    return later(after_edges(r, i), after_call(r, i));
}

static bool by_engine(mr_cause cause) {
    return cause == MR_CAUSE_MULTIPROCESSORS || cause == MR_CAUSE_COPY_ENGINE;
}

static void move_begin(mr_trace_replan *r, uint32_t i, mr_trace_removal removal) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    int64_t ready = ready_time(r, i);
    int64_t begin = ready + (int64_t)(span->begin - span->ready);
    if (by_engine(span->held_by)) {
        begin = ready;
        uint32_t holder = span->holder;
        bool removed = removal.span == i && removal.rule == span->held_by;
        bool there = holder != MR_TRACE_NONE && r->edit.spans[holder].ran;
        if (!removed && there && spans[holder].begin <= span->begin)
            begin =
                later(ready, r->at[holder].end + (int64_t)span->begin - (int64_t)spans[holder].end);
        else if (!removed && holder == MR_TRACE_NONE)
            begin = ready + (int64_t)(span->begin - span->ready);
    }
    r->at[i].ready = ready;
    r->at[i].begin = begin;
    r->at[i].end = begin + (int64_t)(span->end - span->begin);
    if (mr_span_is_work(span)) r->at[i].work_end = r->at[i].end;
}

static void move_return(mr_trace_replan *r, uint32_t i) {
    const mr_span *spans = mr_trace_spans(r->trace), *span = &spans[i];
    int64_t own = (int64_t)(span->returned - span->call), last = INT64_MIN, last_now = INT64_MIN;
    if (mr_trace_edit_is_gone(&r->edit, i)) {
        r->at[i].returned = r->at[i].call;
        return;
    }
    if (mr_trace_edit_is_free(&r->edit, i)) {
        int64_t gone = (int64_t)(span->waited + span->worked);
        r->at[i].returned = r->at[i].call + later(0, own - gone);
        return;
    }
    for (size_t e = r->order.first[i]; e < r->order.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->order.edges[e];
        if (edge->rule != MR_CAUSE_SYNCHRONIZE || !r->edit.spans[edge->from].ran) continue;
        last_now = later(last_now, r->at[edge->from].end);
    }
    for (size_t e = r->whole.first[i]; e < r->whole.first[i + 1]; e++) {
        const mr_trace_edge *edge = &r->whole.edges[e];
        if (edge->rule != MR_CAUSE_SYNCHRONIZE || !spans[edge->from].ran) continue;
        last = later(last, (int64_t)spans[edge->from].end);
    }
    if (last == INT64_MIN) {
        r->at[i].returned = r->at[i].call + own;
        return;
    }
    own -= (int64_t)(span->waited < (uint64_t)own ? span->waited : (uint64_t)own);
    int64_t woken = span->host_waited ? later(0, (int64_t)span->returned - last) : 0;
    r->at[i].returned =
        later(r->at[i].call + own, last_now == INT64_MIN ? last_now : last_now + woken);
}

/* ---- all */

static int by_time(const void *a, const void *b) {
    const point *left = a, *right = b;
    if (left->time != right->time) return left->time < right->time ? -1 : 1;
    if (left->span != right->span) return left->span < right->span ? -1 : 1;
    return (int)left->kind - (int)right->kind;
}

static void drop_edit(mr_trace_replan *r) {
    mr_trace_order_free(&r->order);
    mr_trace_edit_free(&r->edit);
}

mr_status mr_trace_replan_without(mr_trace_replan *r, mr_trace_removal removal) {
    drop_edit(r);
    r->removal = removal;
    MR_TRY(mr_trace_edit_make(r->trace, removal, &r->edit));
    MR_TRY(mr_trace_order_make(r->edit.spans, r->edit.count, r->edit.streams, r->edit.stream_count,
                               &r->order));
    for (size_t i = 0; i < r->point_count; i++) {
        const point *p = &r->points[i];
        if (p->kind == POINT_CALL) move_call(r, p->span);
        else if (p->kind == POINT_RETURN) move_return(r, p->span);
        else if (r->edit.spans[p->span].ran) move_begin(r, p->span, removal);
    }
    return MR_OK;
}

const mr_trace_edit *mr_trace_replan_edit(const mr_trace_replan *r) {
    return &r->edit;
}

int64_t mr_trace_replan_begin(const mr_trace_replan *r, uint32_t span) {
    return r->at[span].begin;
}

int64_t mr_trace_replan_ready(const mr_trace_replan *r, uint32_t span) {
    return r->at[span].ready;
}

bool mr_trace_replan_is_gone(const mr_trace_replan *r, uint32_t span) {
    return mr_trace_edit_is_gone(&r->edit, span);
}

const mr_trace *mr_trace_replan_trace(const mr_trace_replan *r) {
    return r->trace;
}

static void list_points(mr_trace_replan *r) {
    const mr_span *spans = mr_trace_spans(r->trace);
    for (uint32_t i = 0; i < r->whole.count; i++) {
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
    mr_status status = mr_no_memory("to look at a trace");
    if (!r) return status;
    r->trace = trace;
    r->points = malloc((3 * count + 1) * sizeof *r->points);
    r->at = calloc(count + 1, sizeof *r->at);
    if (r->points && r->at) {
        mr_error_destroy(status);
        status =
            mr_trace_order_make(mr_trace_spans(trace), count,
                                streams ? mr_trace_stream_at(trace, 0) : NULL, streams, &r->whole);
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
    drop_edit(r);
    mr_trace_order_free(&r->whole);
    free(r->points);
    free(r->at);
    free(r);
}

const mr_trace_order *mr_trace_replan_order(const mr_trace_replan *r) {
    return &r->whole;
}
