/* Works out the order of a trace from its commands: see order.h. The rules are those of docs/semantics.md; the virtual
 * GPU carries them out in virtual/queue.c. */
#include "trace/order.h"

#include <string.h>

#include "base/vec.h"

typedef struct {
    uint32_t tail;        /* its last span so far, or NONE */
    uint32_t legacy_seen; /* the last span of the default stream that it comes after */
    uint32_t barrier_seen;
    bool dirty; /* it has got work since the default stream's last span */
} stream_state;

typedef struct {
    const mr_span *spans;
    const mr_trace_stream *streams;
    size_t stream_count;
    stream_state *states;
    uint32_t last_barrier; /* R60: the last synchronous copy between devices, or NONE */
    MR_VEC(mr_trace_edge) edges;
    bool failed;
} maker;

static void add(maker *m, uint32_t from, mr_cause rule) {
    mr_trace_edge edge = {from, rule};
    if (from != MR_TRACE_NONE && !mr_vec_push(&m->edges, edge)) m->failed = true;
}

static bool same_device(const maker *m, size_t stream, int device) {
    return m->streams[stream].device == device;
}

static uint32_t legacy_tail(const maker *m, int device) {
    for (size_t s = 0; s < m->stream_count; s++)
        if (m->streams[s].is_legacy_default && same_device(m, s, device)) return m->states[s].tail;
    return MR_TRACE_NONE;
}

/* R3: after what blocking streams have got since its last span; older work is behind that one. */
static void join_blocking(maker *m, const mr_span *span) {
    for (size_t s = 0; s < m->stream_count; s++) {
        stream_state *state = &m->states[s];
        if (!state->dirty || !same_device(m, s, span->device)) continue;
        add(m, state->tail, MR_CAUSE_DEFAULT_STREAM);
        state->dirty = false;
    }
}

static void join_legacy(maker *m, const mr_span *span, stream_state *state) {
    uint32_t tail = legacy_tail(m, span->device);
    if (tail != state->legacy_seen) add(m, tail, MR_CAUSE_DEFAULT_STREAM);
    state->legacy_seen = tail;
    state->dirty = true;
}

static bool is_peer_barrier(const mr_span *span) {
    return span->kind == MR_COMMAND_COPY && span->engine == MR_ENGINE_COPY_PEER &&
           span->synchronous;
}

static void join_all(maker *m, uint32_t but) {
    for (size_t s = 0; s < m->stream_count; s++)
        if (s != but) add(m, m->states[s].tail, MR_CAUSE_PEER_COPY);
}

static bool is_stream_work(const mr_span *span) {
    bool at_once = span->kind == MR_COMMAND_FREE && span->host_waited;
    return (mr_command_kinds[span->kind].traits & MR_TRAIT_SUBMITTED) != 0 && !at_once;
}

static void add_submitted(maker *m, uint32_t i) {
    const mr_span *span = &m->spans[i];
    const mr_trace_stream *stream = &m->streams[span->stream];
    stream_state *state = &m->states[span->stream];
    add(m, state->tail, MR_CAUSE_STREAM);
    if (stream->is_legacy_default) join_blocking(m, span);
    else if (stream->is_blocking) join_legacy(m, span, state);
    if (state->barrier_seen != m->last_barrier) add(m, m->last_barrier, MR_CAUSE_PEER_COPY);
    if (span->kind == MR_COMMAND_WAIT) add(m, span->record, MR_CAUSE_EVENT);
    if (span->held_by == MR_CAUSE_MEMORY) add(m, span->holder, MR_CAUSE_MEMORY);
    if (is_peer_barrier(span)) {
        join_all(m, span->stream);
        m->last_barrier = i;
    }
    state->barrier_seen = m->last_barrier;
    state->tail = i;
}

/* A call that submits `i` and waits: for itself, or (a copy that is staged) for what its stream had before. */
static void add_waited_in_submission(maker *m, uint32_t i, uint32_t before) {
    const mr_span *span = &m->spans[i];
    bool itself = span->ran && span->end <= span->returned;
    if (itself) add(m, i, MR_CAUSE_SYNCHRONIZE);
    else if (span->kind == MR_COMMAND_COPY) add(m, before, MR_CAUSE_SYNCHRONIZE);
}

/* What a call comes after in which the host waits. */
static void add_waited(maker *m, uint32_t i) {
    const mr_span *span = &m->spans[i];
    bool all = false;
    switch (mr_command_kinds[span->kind].after) {
    case MR_AFTER_RECORD: add(m, span->record, MR_CAUSE_SYNCHRONIZE); return;
    case MR_AFTER_DEVICE: all = true; break;
    case MR_AFTER_STREAM:
        if (span->stream == MR_TRACE_NONE) return;
        all = false;
        break;
    case MR_AFTER_NOTHING:
        if (!span->host_waited || span->kind != MR_COMMAND_FREE) return;
        all = true; /* cudaFree (R27) */
        break;
    }
    bool legacy =
        !all && span->stream != MR_TRACE_NONE && m->streams[span->stream].is_legacy_default;
    for (size_t s = 0; s < m->stream_count; s++) {
        bool waited = s == span->stream || (all && same_device(m, s, span->device)) ||
                      (legacy && m->streams[s].is_blocking && same_device(m, s, span->device));
        if (waited) add(m, m->states[s].tail, MR_CAUSE_SYNCHRONIZE);
    }
}

/* Calls of a host function lie inside the call that runs it. They are told of with higher numbers. */
static void find_calls_before(const mr_span *spans, size_t count, uint32_t *call_before) {
    uint32_t last = MR_TRACE_NONE;
    for (size_t i = 0; i < count; i++) {
        call_before[i] = MR_TRACE_NONE;
        if (!spans[i].called) continue;
        bool inside = last != MR_TRACE_NONE && spans[i].call < spans[last].returned;
        call_before[i] = inside ? call_before[last] : last;
        if (!inside) last = (uint32_t)i;
    }
}

static mr_status fill(maker *m, mr_trace_order *order) {
    for (uint32_t i = 0; i < order->count; i++) {
        const mr_span *span = &m->spans[i];
        order->first[i] = m->edges.count;
        if (span->stream != MR_TRACE_NONE && is_stream_work(span)) {
            uint32_t before = m->states[span->stream].tail;
            add_submitted(m, i);
            if (span->host_waited) add_waited_in_submission(m, i, before);
        } else {
            add_waited(m, i);
        }
    }
    order->first[order->count] = m->edges.count;
    order->edges = m->edges.items;
    find_calls_before(m->spans, order->count, order->call_before);
    return m->failed ? mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the order of a trace") : MR_OK;
}

mr_status mr_trace_order_make(const mr_span *spans, size_t count, const mr_trace_stream *streams,
                              size_t stream_count, mr_trace_order *out_order) {
    maker m = {.spans = spans,
               .streams = streams,
               .stream_count = stream_count,
               .states = malloc((stream_count + 1) * sizeof *m.states),
               .last_barrier = MR_TRACE_NONE};
    *out_order = (mr_trace_order){.count = count,
                                  .first = malloc((count + 1) * sizeof(size_t)),
                                  .call_before = malloc((count + 1) * sizeof(uint32_t))};
    mr_status status = MR_OK;
    if (!m.states || !out_order->first || !out_order->call_before) {
        status = mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for the order of a trace");
    } else {
        for (size_t s = 0; s < stream_count; s++)
            m.states[s] = (stream_state){MR_TRACE_NONE, MR_TRACE_NONE, MR_TRACE_NONE, false};
        status = fill(&m, out_order);
    }
    free(m.states);
    if (status) {
        if (!out_order->edges) mr_vec_free(&m.edges);
        mr_trace_order_free(out_order);
    }
    return status;
}

void mr_trace_order_free(mr_trace_order *order) {
    free(order->first);
    free(order->edges);
    free(order->call_before);
    *order = (mr_trace_order){0};
}
