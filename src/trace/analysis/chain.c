/* Steps from a span to what held it up: see chain.h. */
#include "trace/analysis/chain.h"

static bool takes_no_time(const mr_span *span) {
    return mr_kind_is(span->kind, MR_TRAIT_MARKER);
}

uint32_t mr_trace_work_behind(const mr_span *spans, uint32_t i, uint32_t *out_marker) {
    uint32_t at = i;
    *out_marker = i;
    /* A wait is held by a record, a record by work: never in a circle, since each is submitted before. */
    for (;;) {
        const mr_span *span = &spans[at];
        if (mr_cause_is_host(span->held_by) || span->holder == MR_TRACE_NONE) break;
        uint32_t holder = span->holder;
        if (!spans[holder].ran) break;
        if (!takes_no_time(&spans[holder])) return holder;
        if (spans[holder].seq >= span->seq && at != i) break;
        at = holder;
    }
    *out_marker = at;
    return MR_TRACE_NONE;
}

uint32_t mr_trace_waited_for(const mr_span *spans, const mr_trace_order *order, uint32_t i) {
    uint32_t last = MR_TRACE_NONE;
    for (size_t e = order->first[i]; e < order->first[i + 1]; e++) {
        uint32_t from = order->edges[e].from, marker;
        if (order->edges[e].rule != MR_CAUSE_SYNCHRONIZE || !spans[from].ran) continue;
        if (takes_no_time(&spans[from])) from = mr_trace_work_behind(spans, from, &marker);
        if (from == MR_TRACE_NONE) continue;
        if (last == MR_TRACE_NONE || spans[from].end > spans[last].end) last = from;
    }
    return last;
}
