/* Lowering: spreads the nodes of a graph over lanes, and finds the records and waits between them. A launch runs each
 * lane on a stream of its own. The lanes keep exactly the order of the edges: a node is appended only to a lane whose
 * last node it comes after anyway.
 *
 * Each lane notes the nodes of other lanes that it comes after (`seen`), and redundant waits are left out. */
#include <stdlib.h>
#include <string.h>

#include "graph/state.h"

#define NONE UINT32_MAX

typedef struct {
    const mr_graph *graph;
    lowered *out;
    uint32_t *lane_of;      /* by node */
    uint32_t *place;        /* by node: how many nodes its lane has up to it */
    uint32_t *event_of;     /* by node: its record, or NONE */
    MR_VEC(uint32_t) tails; /* by lane: its last node so far, or NONE */
    /* lane * lanes + other: how many nodes of `other` come before the lane's next one */
    uint32_t *seen;
    uint32_t **known; /* by event: `seen` of its lane at the record */
    bool failed;
} lowering;

static mr_device *device_of(const lowering *w, uint32_t i) {
    return w->graph->nodes.items[i].command->stream->device;
}

/* ---- which lane */

static uint32_t new_lane(lowering *w, mr_device *device) {
    if (!mr_vec_push(&w->out->lanes, device) || !mr_vec_push(&w->tails, NONE)) w->failed = true;
    return (uint32_t)w->out->lanes.count - 1;
}

/* The lane that ends with a predecessor of i. Among several, the lane of the stream on which i was captured. */
static uint32_t lane_for(lowering *w, uint32_t i) {
    const graph_node *n = &w->graph->nodes.items[i];
    uint32_t found = NONE;
    for (uint32_t k = 0; k < n->count; k++) {
        uint32_t before = w->graph->edges.items[n->first + k], lane = w->lane_of[before];
        if (w->tails.items[lane] != before || w->out->lanes.items[lane] != device_of(w, i))
            continue;
        bool same = w->graph->nodes.items[before].command->stream == n->command->stream;
        if (found == NONE || same) found = lane;
    }
    if (found != NONE) return found;
    bool origin_is_free = w->tails.items[0] == NONE && !n->count;
    if (origin_is_free && device_of(w, i) == w->graph->device) return 0;
    return new_lane(w, device_of(w, i));
}

static void choose_lanes(lowering *w) {
    new_lane(w, w->graph->device);
    for (uint32_t i = 0; i < w->graph->nodes.count && !w->failed; i++) {
        uint32_t lane = w->lane_of[i] = lane_for(w, i);
        if (w->failed) return;
        uint32_t tail = w->tails.items[lane];
        w->place[i] = tail == NONE ? 1 : w->place[tail] + 1;
        w->tails.items[lane] = i;
    }
}

/* ---- which records: one after each node that another lane waits for */

static void need_event(lowering *w, uint32_t i) {
    if (w->event_of[i] == NONE) w->event_of[i] = w->out->events++;
}

static void choose_events(lowering *w) {
    w->out->events = 1; /* 0: the beginning of the launch */
    for (uint32_t i = 0; i < w->graph->nodes.count; i++) {
        const graph_node *n = &w->graph->nodes.items[i];
        for (uint32_t k = 0; k < n->count; k++) {
            uint32_t before = w->graph->edges.items[n->first + k];
            if (w->lane_of[before] != w->lane_of[i]) need_event(w, before);
        }
    }
    for (uint32_t lane = 1; lane < w->tails.count; lane++) need_event(w, w->tails.items[lane]);
}

/* ---- the steps */

static void add(lowering *w, step_kind kind, uint32_t lane, uint32_t at) {
    step s = {kind, lane, at};
    if (!mr_vec_push(&w->out->steps, s)) w->failed = true;
}

static uint32_t *row(const lowering *w, uint32_t lane) {
    return w->seen + (size_t)lane * w->out->lanes.count;
}

static void wait_for(lowering *w, uint32_t lane, uint32_t before) {
    uint32_t from = w->lane_of[before];
    uint32_t *mine = row(w, lane);
    if (from == lane || mine[from] >= w->place[before]) return;
    const uint32_t *theirs = w->known[w->event_of[before]];
    add(w, STEP_WAIT, lane, w->event_of[before]);
    for (size_t l = 0; l < w->out->lanes.count && theirs; l++)
        if (mine[l] < theirs[l]) mine[l] = theirs[l];
}

static void record(lowering *w, uint32_t i) {
    uint32_t event = w->event_of[i], lane = w->lane_of[i];
    size_t size = w->out->lanes.count * sizeof **w->known;
    w->known[event] = malloc(size);
    if (!w->known[event]) {
        w->failed = true;
        return;
    }
    memcpy(w->known[event], row(w, lane), size);
    add(w, STEP_RECORD, lane, event);
}

/* Nodes from i on that are launched as one: the calls of a group of collectives. */
static uint32_t size_of_unit(const mr_graph *graph, uint32_t i) {
    const mr_captured_call *call = captured_call_of(graph->nodes.items[i].command);
    uint32_t size = call ? call->count - call->place : 1, left = (uint32_t)graph->nodes.count - i;
    return size < left ? size : left;
}

static void add_waits(lowering *w, uint32_t i) {
    const graph_node *n = &w->graph->nodes.items[i];
    uint32_t lane = w->lane_of[i];
    if (!n->count && lane) add(w, STEP_WAIT, lane, 0);
    for (uint32_t k = 0; k < n->count; k++) wait_for(w, lane, w->graph->edges.items[n->first + k]);
}

/* The calls of a group are submitted with its last one: all waits come before, and all records after. */
static void add_unit(lowering *w, uint32_t first, uint32_t size) {
    for (uint32_t i = first; i < first + size; i++) add_waits(w, i);
    for (uint32_t i = first; i < first + size; i++) add(w, STEP_NODE, w->lane_of[i], i);
    for (uint32_t i = first; i < first + size && !w->failed; i++) {
        uint32_t lane = w->lane_of[i];
        row(w, lane)[lane] = w->place[i];
        if (w->event_of[i] != NONE) record(w, i);
    }
}

static void add_steps(lowering *w) {
    const mr_graph *graph = w->graph;
    bool forks = false;
    for (uint32_t i = 0; i < graph->nodes.count; i++)
        forks |= w->lane_of[i] != 0 && !graph->nodes.items[i].count;
    if (forks) add(w, STEP_RECORD, 0, 0);
    for (uint32_t i = 0, size; i < graph->nodes.count && !w->failed; i += size) {
        size = size_of_unit(graph, i);
        add_unit(w, i, size);
    }
    for (uint32_t lane = 1; lane < w->tails.count && !w->failed; lane++)
        wait_for(w, 0, w->tails.items[lane]);
}

/* ---- all of it */

static bool make_tables(lowering *w) {
    size_t count = w->graph->nodes.count + 1;
    w->lane_of = calloc(count, sizeof *w->lane_of);
    w->place = calloc(count, sizeof *w->place);
    w->event_of = malloc(count * sizeof *w->event_of);
    if (w->event_of) memset(w->event_of, 0xff, count * sizeof *w->event_of);
    return w->lane_of && w->place && w->event_of;
}

static bool make_seen(lowering *w) {
    size_t lanes = w->out->lanes.count;
    w->seen = calloc(lanes * lanes, sizeof *w->seen);
    w->known = calloc(w->out->events, sizeof *w->known);
    return w->seen && w->known;
}

mr_status mr_graph_lower(const mr_graph *graph, lowered *out) {
    lowering w = {.graph = graph, .out = out};
    *out = (lowered){0};
    w.failed = !make_tables(&w);
    if (!w.failed) choose_lanes(&w);
    if (!w.failed) choose_events(&w);
    if (!w.failed) w.failed = !make_seen(&w);
    if (!w.failed) add_steps(&w);
    for (uint32_t i = 0; i < out->events && w.known; i++) free(w.known[i]);
    free(w.known);
    free(w.seen);
    free(w.lane_of);
    free(w.place);
    free(w.event_of);
    mr_vec_free(&w.tails);
    if (!w.failed) return MR_OK;
    mr_lowered_free(out);
    return mr_no_memory("to instantiate a graph");
}

void mr_lowered_free(lowered *l) {
    mr_vec_free(&l->steps);
    mr_vec_free(&l->lanes);
    l->events = 0;
}
