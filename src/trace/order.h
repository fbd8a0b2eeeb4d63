/* The order of a trace, private to this folder: which spans each span comes after by the rules, whether or not it had
 * to wait for them.
 *
 * Host: the calls in turn, each after the one before. A call in which the host waits comes after the spans that it
 * waits for. */
#ifndef MR_TRACE_ORDER_H
#define MR_TRACE_ORDER_H

#include "trace/trace.h"

typedef struct {
    uint32_t from;
    /* STREAM, EVENT, DEFAULT_STREAM, PEER_COPY, MEMORY; SYNCHRONIZE: the host waits in its call,
     * which may be for the span itself */
    mr_cause rule;
} mr_trace_edge;

typedef struct {
    size_t count;
    size_t *first; /* of span i: edges from first[i] to first[i + 1] */
    mr_trace_edge *edges;
    /* of span i: the call that ended before its own began; NONE: the first, or it has no call */
    uint32_t *call_before;
} mr_trace_order;

mr_status mr_trace_order_make(const mr_span *spans, size_t count, const mr_trace_stream *streams,
                              size_t stream_count, mr_trace_order *out_order);
void mr_trace_order_free(mr_trace_order *order);

/* The work that a device or a copy engine is busy with; records, waits and the like take no
 * time. */
static inline bool mr_span_is_work(const mr_span *span) {
    return span->engine != MR_ENGINE_NONE || mr_kind_is(span->kind, MR_TRAIT_WORK);
}

#endif
