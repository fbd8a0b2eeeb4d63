/* Works out the order of a trace from its commands: carries out the rows of order/order.h over spans. */
#include "trace/order.h"

#include <string.h>

#include "base/vec.h"
#include "order/order.h"

typedef struct {
    uint32_t tail; /* its last span so far, or NONE */
    /* the state of its device's `released` and `wall` that it last joined */
    uint32_t released_seen;
    uint32_t wall_seen;
    bool dirty; /* it has got work that the default stream's last span does not come after */
} stream_state;

typedef struct {
    uint32_t released; /* MR_PLACE_RELEASED, MR_PLACE_WALL: the last span there, or NONE */
    uint32_t wall;
} device_state;

#define MOST_DEVICES 64 /* bits of mr_order_walls */

typedef struct {
    const mr_span *spans;
    size_t count;
    const mr_trace_stream *streams;
    size_t stream_count;
    stream_state *states;
    device_state devices[MOST_DEVICES];
    MR_VEC(mr_trace_edge) edges;
    MR_VEC(uint32_t) before_meeting; /* by member: the last span of its stream */
    bool failed;
} maker;

static void add(maker *m, uint32_t from, mr_cause rule) {
    mr_trace_edge edge = {from, rule};
    if (from != MR_TRACE_NONE && !mr_vec_push(&m->edges, edge)) m->failed = true;
}

/* ---- facts */

static mr_order_facts facts_of_stream(const mr_trace_stream *s) {
    return mr_order_facts_of_stream(s->is_legacy_default ? MR_STREAM_LEGACY : MR_STREAM_USER,
                                    s->is_blocking);
}

static mr_order_facts facts_of(const maker *m, const mr_span *span) {
    if (span->kind == MR_COMMAND_FREE && span->host_waited) /* cudaFree (R27) */
        return MR_FACT_BY_HOST | MR_FACT_FOR_MEMORY;
    mr_order_facts stream =
        span->stream == MR_TRACE_NONE ? 0 : facts_of_stream(&m->streams[span->stream]);
    mr_order_facts facts = mr_order_facts_of_kind(span->kind, stream);
    if (span->walls && span->synchronous) facts |= MR_FACT_WALL;
    if (span->meeting) facts |= MR_FACT_MEETS;
    if (!(facts & MR_FACT_SUBMITTED) || !span->host_waited) return facts;
    /* It waited for itself, or (a copy that is staged) for what its stream had before. */
    if (span->ran && span->end <= span->returned) return facts | MR_FACT_FOR_ITSELF;
    return span->kind == MR_COMMAND_COPY ? facts | MR_FACT_FOR_EARLIER : facts;
}

/* ---- places */

/* Older work of these streams is after the last span that took them. */
static void join_gathered(maker *m, int device) {
    for (size_t s = 0; s < m->stream_count; s++)
        if (m->states[s].dirty && m->streams[s].device == device)
            add(m, m->states[s].tail, MR_CAUSE_DEFAULT_STREAM);
}

static void join_device(maker *m, int device, uint32_t but) {
    for (size_t s = 0; s < m->stream_count; s++)
        if (s != but && m->streams[s].device == device)
            add(m, m->states[s].tail, MR_CAUSE_PEER_COPY);
}

static void join_new(maker *m, uint32_t *seen, uint32_t now, mr_cause rule) {
    if (*seen != now) add(m, now, rule);
    *seen = now;
}

/* R61: all members begin together, so each comes after the last spans of all their streams. They are told one after
 * the other: the streams of those that are still to come have nothing of the meeting yet. */
static void meet(maker *m, uint32_t i) {
    const mr_span *span = &m->spans[i];
    uint32_t first = i;
    while (first && m->spans[first - 1].meeting == span->meeting) first--;
    if (first == i) mr_vec_free(&m->before_meeting);
    for (uint32_t k = first; k < m->count && m->spans[k].meeting == span->meeting; k++) {
        if (m->spans[k].stream == MR_TRACE_NONE) continue;
        uint32_t tail = m->states[m->spans[k].stream].tail;
        if (first == i && !mr_vec_push(&m->before_meeting, tail)) m->failed = true;
        if (k != i && k - first < m->before_meeting.count)
            add(m, m->before_meeting.items[k - first], MR_CAUSE_COLLECTIVE);
    }
}

/* That of its own device is taken by another row, the last spans of these devices' streams by join_device. */
static void join_walls(maker *m, const mr_span *span) {
    uint64_t others = span->walls & ~((uint64_t)1 << span->device);
    for (uint64_t rest = others; rest; rest &= rest - 1) {
        uint32_t wall = m->devices[__builtin_ctzll(rest)].wall;
        bool is_met = wall == MR_TRACE_NONE || (span->walls >> m->spans[wall].device & 1);
        if (!is_met) add(m, wall, MR_CAUSE_PEER_COPY);
    }
}

static void gather_none(maker *m, int device) {
    for (size_t s = 0; s < m->stream_count; s++)
        if (m->streams[s].device == device) m->states[s].dirty = false;
}

static void enter(maker *m, uint32_t i, const mr_order_row *row) {
    const mr_span *span = &m->spans[i];
    stream_state *state = &m->states[span->stream];
    device_state *device = &m->devices[m->streams[span->stream].device];
    switch ((mr_place)row->from) {
    case MR_PLACE_LANE: add(m, state->tail, MR_CAUSE_STREAM); break;
    case MR_PLACE_GATHERED: join_gathered(m, span->device); break;
    case MR_PLACE_RELEASED:
        join_new(m, &state->released_seen, device->released, MR_CAUSE_DEFAULT_STREAM);
        break;
    case MR_PLACE_WALL:
        if (row->needs & MR_FACT_WALL) join_walls(m, span);
        else join_new(m, &state->wall_seen, device->wall, MR_CAUSE_PEER_COPY);
        break;
    case MR_PLACE_RECORD: add(m, span->record, MR_CAUSE_EVENT); break;
    case MR_PLACE_FREED: /* whose memory it is, only the pool knows */
        if (span->held_by == MR_CAUSE_MEMORY) add(m, span->holder, MR_CAUSE_MEMORY);
        break;
    case MR_PLACE_DEVICE:
        for (uint64_t rest = span->walls; rest; rest &= rest - 1)
            join_device(m, __builtin_ctzll(rest), span->stream);
        break;
    case MR_PLACE_MEETING: meet(m, i); break;
    case MR_PLACE_SOURCES: /* devices do more: MEETING */
    case MR_PLACE_HOST:    /* call_before */
    case MR_PLACE_USERS:
    case MR_PLACE_OWNER:
    case MR_PLACE_NODE: break;
    }
}

static void leave(maker *m, uint32_t i, const mr_order_row *row) {
    const mr_span *span = &m->spans[i];
    stream_state *state = &m->states[span->stream];
    switch ((mr_place)row->to) {
    case MR_PLACE_LANE: state->tail = i; break;
    case MR_PLACE_GATHERED:
        if (row->replaces) gather_none(m, span->device);
        state->dirty = true;
        break;
    case MR_PLACE_RELEASED:
        gather_none(m, span->device);
        m->devices[span->device].released = i;
        break;
    case MR_PLACE_WALL:
        for (uint64_t rest = span->walls; rest; rest &= rest - 1)
            m->devices[__builtin_ctzll(rest)].wall = i;
        state->wall_seen = i;
        break;
    case MR_PLACE_RECORD: /* a span names its record */
    case MR_PLACE_FREED:  /* and its holder; USERS, OWNER: no span waits for them, the pool does */
    case MR_PLACE_DEVICE: /* all its streams */
    case MR_PLACE_SOURCES:
    case MR_PLACE_MEETING:
    case MR_PLACE_USERS:
    case MR_PLACE_OWNER:
    case MR_PLACE_HOST:
    case MR_PLACE_NODE: break;
    }
}

/* The host waits in the call of span i. `before`: the tail of its stream when the call began. */
static void wait_for(maker *m, uint32_t i, const mr_order_row *row, uint32_t before) {
    const mr_span *span = &m->spans[i];
    uint32_t own = row->when == MR_AT_CALL ? before : MR_TRACE_NONE;
    if (row->when != MR_AT_CALL && span->stream != MR_TRACE_NONE)
        own = m->states[span->stream].tail;
    switch ((mr_place)row->from) {
    case MR_PLACE_NODE: add(m, i, MR_CAUSE_SYNCHRONIZE); break;
    case MR_PLACE_LANE: add(m, own, MR_CAUSE_SYNCHRONIZE); break;
    case MR_PLACE_RECORD: add(m, span->record, MR_CAUSE_SYNCHRONIZE); break;
    case MR_PLACE_GATHERED:
        for (size_t s = 0; s < m->stream_count; s++)
            if (m->streams[s].device == span->device &&
                mr_order_is_gathered(facts_of_stream(&m->streams[s])))
                add(m, m->states[s].tail, MR_CAUSE_SYNCHRONIZE);
        break;
    case MR_PLACE_DEVICE:
        for (size_t s = 0; s < m->stream_count; s++)
            if (m->streams[s].device == span->device)
                add(m, m->states[s].tail, MR_CAUSE_SYNCHRONIZE);
        break;
    case MR_PLACE_RELEASED:
    case MR_PLACE_WALL:
    case MR_PLACE_FREED:
    case MR_PLACE_USERS:
    case MR_PLACE_OWNER:
    case MR_PLACE_SOURCES:
    case MR_PLACE_MEETING:
    case MR_PLACE_HOST: break;
    }
}

static void carry_out(maker *m, uint32_t i) {
    const mr_span *span = &m->spans[i];
    mr_order_facts facts = facts_of(m, span);
    bool in_stream = facts & MR_FACT_SUBMITTED;
    uint32_t before = in_stream ? m->states[span->stream].tail : MR_TRACE_NONE;
    mr_order_set set;
    for (set = mr_order_find(facts, MR_AT_ENTER, MR_ALLOCATOR); in_stream && set; set &= set - 1)
        enter(m, i, mr_order_first(set));
    for (set = mr_order_find(facts, MR_AT_LEAVE, MR_ALLOCATOR); in_stream && set; set &= set - 1)
        leave(m, i, mr_order_first(set));
    set = mr_order_find(facts, MR_AT_CALL, MR_ALLOCATOR) |
          mr_order_find(facts, MR_AT_RETURN, MR_ALLOCATOR);
    for (; set; set &= set - 1) wait_for(m, i, mr_order_first(set), before);
}

#define HOSTS (MR_MEETING_MOST + 1)

/* The last calls of all hosts so far: the outer one's, and by rank from 1. */
typedef struct {
    uint32_t last[HOSTS];
} hosts;

static void forget_ranks(hosts *h) {
    for (int k = 1; k < HOSTS; k++) h->last[k] = MR_TRACE_NONE;
}

/* Ranks go on where the outer host has started them, and that goes on when the last rank has ended. */
static void begin_host(const mr_span *spans, hosts *h, uint16_t host) {
    if (host && h->last[host] == MR_TRACE_NONE) h->last[host] = h->last[0];
    if (host) return;
    for (int k = 1; k < HOSTS; k++) {
        uint32_t outer = h->last[0], call = h->last[k];
        if (call == MR_TRACE_NONE) continue;
        if (outer == MR_TRACE_NONE || spans[outer].returned <= spans[call].returned)
            h->last[0] = call;
    }
    forget_ranks(h);
}

/* Calls of a host function lie inside the call that runs it. They are told of with higher numbers. */
static void find_calls_before(const mr_span *spans, size_t count, uint32_t *call_before) {
    hosts h = {{MR_TRACE_NONE}};
    forget_ranks(&h);
    for (size_t i = 0; i < count; i++) {
        call_before[i] = MR_TRACE_NONE;
        if (!spans[i].called) continue;
        uint16_t host = spans[i].host < HOSTS ? spans[i].host : 0;
        begin_host(spans, &h, host);
        uint32_t last = h.last[host];
        bool inside = last != MR_TRACE_NONE && spans[last].host == host &&
                      spans[i].call < spans[last].returned;
        call_before[i] = inside ? call_before[last] : last;
        if (!inside) h.last[host] = (uint32_t)i;
    }
}

static mr_status fill(maker *m, mr_trace_order *order) {
    for (uint32_t i = 0; i < order->count; i++) {
        order->first[i] = m->edges.count;
        carry_out(m, i);
    }
    order->first[order->count] = m->edges.count;
    order->edges = m->edges.items;
    find_calls_before(m->spans, order->count, order->call_before);
    return m->failed ? mr_no_memory("for the order of a trace") : MR_OK;
}

mr_status mr_trace_order_make(const mr_span *spans, size_t count, const mr_trace_stream *streams,
                              size_t stream_count, mr_trace_order *out_order) {
    maker m = {.spans = spans,
               .count = count,
               .streams = streams,
               .stream_count = stream_count,
               .states = malloc((stream_count + 1) * sizeof *m.states)};
    *out_order = (mr_trace_order){.count = count,
                                  .first = malloc((count + 1) * sizeof(size_t)),
                                  .call_before = malloc((count + 1) * sizeof(uint32_t))};
    mr_status status = MR_OK;
    if (!m.states || !out_order->first || !out_order->call_before) {
        status = mr_no_memory("for the order of a trace");
    } else {
        for (size_t s = 0; s < stream_count; s++)
            m.states[s] = (stream_state){MR_TRACE_NONE, MR_TRACE_NONE, MR_TRACE_NONE, false};
        for (int d = 0; d < MOST_DEVICES; d++)
            m.devices[d] = (device_state){MR_TRACE_NONE, MR_TRACE_NONE};
        status = fill(&m, out_order);
    }
    free(m.states);
    mr_vec_free(&m.before_meeting);
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
