/* The orders that the data of a trace need: see data.h.
 *
 * Each span has a clock: of each stream, and of each host, the number of the last span that it comes after. A host, and
 * all its later submissions, come after the work for which it has waited. Each rank is a host of its own. It begins
 * where the outer host starts it, and the outer host goes on when all ranks have ended. A pair of spans can lose its
 * order only where a clock of the changed order is behind that of the trace, or one of the two has another stream. Only
 * those are compared. */
#include "trace/analysis/data.h"

#include <stdlib.h>
#include <string.h>

#include "model/meeting.h"

#define MOST_CLOCKS ((size_t)1 << 24) /* entries */
#define MOST_STEPS  ((uint64_t)1 << 24)

/* ---- accesses */

static bool meet(const mr_trace_access *a, const mr_trace_access *b) {
    return a->memory == b->memory && (a->writes || b->writes) && a->first < b->end &&
           b->first < a->end;
}

const mr_trace_access *mr_trace_conflict(const mr_trace *trace, uint32_t first, uint32_t second) {
    const mr_span *spans = mr_trace_spans(trace);
    const mr_trace_access *a = mr_trace_accesses(trace, &spans[first]);
    const mr_trace_access *b = mr_trace_accesses(trace, &spans[second]);
    for (uint32_t i = 0; i < spans[first].access_count; i++)
        for (uint32_t k = 0; k < spans[second].access_count; k++)
            if (meet(&a[i], &b[k])) return &a[i];
    return NULL;
}

/* ---- clocks */

typedef struct {
    const mr_span *spans;
    const mr_trace_order *order;
    size_t count, streams, chains; /* after those of the streams come those of the hosts */
    uint32_t *of;    /* of span i: from of[i * chains]; a span's number + 1; 0: none */
    uint32_t *hosts; /* likewise, of each host */
    bool begun[MR_MEETING_MOST + 1]; /* ranks */
    bool only_guaranteed; /* not what asynchronous copies of pageable memory wait for (R23) */
} clocks;

static size_t chain_of(const clocks *c, uint32_t span) {
    const mr_span *s = &c->spans[span];
    return s->stream == MR_TRACE_NONE ? c->streams + s->host : s->stream;
}

static void join(const clocks *c, uint32_t *clock, const uint32_t *other) {
    for (size_t s = 0; s < c->chains; s++)
        if (other[s] > clock[s]) clock[s] = other[s];
}

static void join_span(const clocks *c, uint32_t *clock, uint32_t span) {
    size_t chain = chain_of(c, span);
    join(c, clock, &c->of[span * c->chains]);
    if (clock[chain] < span + 1) clock[chain] = span + 1;
}

/* The clock of a host that calls something. */
static uint32_t *host_clock(clocks *c, size_t host) {
    size_t hosts = c->chains - c->streams;
    if (host && !c->begun[host]) {
        join(c, &c->hosts[host * c->chains], c->hosts);
        c->begun[host] = true;
    }
    for (size_t k = 1; k < hosts && !host; k++) {
        if (c->begun[k]) join(c, c->hosts, &c->hosts[k * c->chains]);
        c->begun[k] = false;
    }
    return &c->hosts[host * c->chains];
}

static void advance(clocks *c, uint32_t i) {
    const mr_span *span = &c->spans[i];
    uint32_t *clock = &c->of[i * c->chains], *host = host_clock(c, span->host);
    bool counts = !c->only_guaranteed || span->kind != MR_COMMAND_COPY || span->synchronous;
    if (span->called) join(c, clock, host);
    for (size_t e = c->order->first[i]; e < c->order->first[i + 1]; e++)
        if (c->order->edges[e].rule != MR_CAUSE_SYNCHRONIZE)
            join_span(c, clock, c->order->edges[e].from);
    for (size_t e = c->order->first[i]; e < c->order->first[i + 1]; e++)
        if (c->order->edges[e].rule == MR_CAUSE_SYNCHRONIZE && counts)
            join_span(c, host, c->order->edges[e].from);
    if (span->stream == MR_TRACE_NONE && span->called) {
        join(c, clock, host);
        join_span(c, host, i);
    }
}

static bool make_clocks(clocks *c) {
    c->of = calloc(c->count * c->chains + 1, sizeof *c->of);
    c->hosts = calloc((c->chains - c->streams) * c->chains, sizeof *c->hosts);
    if (!c->of || !c->hosts) return false;
    for (uint32_t i = 0; i < c->count; i++) advance(c, i);
    return true;
}

static void free_clocks(clocks *c) {
    free(c->of);
    free(c->hosts);
}

static bool is_before(const clocks *c, uint32_t i, uint32_t j) {
    return c->of[j * c->chains + chain_of(c, i)] > i;
}

/* ---- comparing both orders */

typedef struct {
    const mr_trace *trace;
    const mr_trace_edit *edit;
    clocks was, is;
    uint32_t unstaged; /* a copy whose source the host no longer copies in the call; or NONE */
    uint64_t steps;
    mr_trace_need need;
} comparison;

/* The host copies a source in pageable memory during the call, so its later actions come after that copy. */
static bool staged(const comparison *c, uint32_t i, const mr_trace_access *access, bool is_edited) {
    return access->by_host && !(is_edited && i == c->unstaged);
}

static bool loses(comparison *c, uint32_t i, uint32_t j) {
    const mr_trace_access *access = mr_trace_conflict(c->trace, i, j);
    c->steps++;
    if (!access) return false;
    bool was = staged(c, i, access, false) || is_before(&c->was, i, j);
    bool is = staged(c, i, access, true) || is_before(&c->is, i, j);
    if (!was || is) return false;
    c->need = (mr_trace_need){i, j, access};
    return true;
}

static bool is_behind(const comparison *c, uint32_t j) {
    const uint32_t *was = c->was.of + j * c->was.chains, *is = c->is.of + j * c->is.chains;
    for (size_t s = 0; s < c->was.streams; s++)
        if (is[s] < was[s]) return true;
    for (size_t h = 0; h < c->was.chains - c->was.streams; h++)
        if (is[c->is.streams + h] < was[c->was.streams + h]) return true;
    return false;
}

static bool has_moved(const comparison *c, uint32_t i) {
    return i == c->unstaged || c->is.spans[i].stream != c->was.spans[i].stream;
}

/* The pairs whose later one is `j`. */
static bool loses_before(comparison *c, uint32_t j, const uint32_t *moved, size_t moved_count) {
    if (!c->was.spans[j].access_count) return false;
    if (is_behind(c, j) || has_moved(c, j)) {
        for (uint32_t i = j; i-- > 0 && c->steps < MOST_STEPS;)
            if (loses(c, i, j)) return true;
        return false;
    }
    for (size_t m = 0; m < moved_count && moved[m] < j; m++)
        if (loses(c, moved[m], j)) return true;
    return false;
}

static mr_trace_order_state look(comparison *c, uint32_t *moved) {
    size_t moved_count = 0;
    for (uint32_t i = 0; i < c->was.count; i++)
        if (has_moved(c, i)) moved[moved_count++] = i;
    for (uint32_t j = 0; j < c->was.count && c->steps < MOST_STEPS; j++)
        if (loses_before(c, j, moved, moved_count)) return MR_TRACE_ORDER_BROKEN;
    return c->steps < MOST_STEPS ? MR_TRACE_ORDER_KEPT : MR_TRACE_ORDER_UNKNOWN;
}

static mr_trace_order_state compare(comparison *c, mr_trace_need asked, uint32_t *moved) {
    if (asked.first < asked.second && loses(c, asked.first, asked.second))
        return MR_TRACE_ORDER_BROKEN;
    return look(c, moved);
}

static size_t host_count(const mr_trace *trace) {
    size_t last = 0;
    for (size_t i = 0; i < mr_trace_count(trace); i++)
        if (mr_trace_spans(trace)[i].host > last) last = mr_trace_spans(trace)[i].host;
    return last + 1;
}

mr_status mr_trace_order_keeps(const mr_trace *trace, const mr_trace_order *whole,
                               const mr_trace_edit *edit, mr_trace_need asked,
                               mr_trace_order_state *out_state, mr_trace_need *out_need) {
    size_t count = mr_trace_count(trace), streams = mr_trace_stream_count(trace);
    size_t hosts = host_count(trace);
    mr_trace_order order;
    bool only = edit->unstaged == MR_TRACE_NONE;
    *out_state = MR_TRACE_ORDER_UNKNOWN;
    if (count * (edit->stream_count + hosts) > MOST_CLOCKS) return MR_OK;
    MR_TRY(
        mr_trace_order_make(edit->spans, edit->count, edit->streams, edit->stream_count, &order));
    comparison c = {.trace = trace,
                    .edit = edit,
                    .was = {.spans = mr_trace_spans(trace),
                            .order = whole,
                            .count = count,
                            .streams = streams,
                            .chains = streams + hosts,
                            .only_guaranteed = only},
                    .is = {.spans = edit->spans,
                           .order = &order,
                           .count = count,
                           .streams = edit->stream_count,
                           .chains = edit->stream_count + hosts,
                           .only_guaranteed = only},
                    .unstaged = edit->unstaged,
                    .need = {MR_TRACE_NONE, MR_TRACE_NONE, NULL}};
    uint32_t *moved = malloc((count + 1) * sizeof *moved);
    mr_status status = MR_OK;
    if (moved && make_clocks(&c.was) && make_clocks(&c.is)) {
        *out_state = compare(&c, asked, moved);
        *out_need = c.need;
    } else {
        status = mr_no_memory("to look at a trace");
    }
    free(moved);
    free_clocks(&c.was);
    free_clocks(&c.is);
    mr_trace_order_free(&order);
    return status;
}
