/* Graphs below Lua: the thread rule of captures, and the lanes of a launch. Their order must be exactly that of the
 * edges, compared pair by pair with the transitive closure of random graphs. */
#include <pthread.h>

#include "graph/state.h"

#include "virtual_fixture.h"

/* ---- R40: who may end a capture */

typedef struct {
    mr_stream *stream;
    mr_graph *graph;
    mr_status status;
} ending;

static void *end_it(void *context) {
    ending *e = context;
    e->status = mr_capture_finish(&caller, e->stream, &e->graph);
    return NULL;
}

static mr_code end_in_another_thread(mr_capture_mode mode) {
    ending e = {.stream = free_stream()};
    pthread_t thread;
    OK(mr_capture_begin(&caller, e.stream, &(mr_capture_options){.mode = mode}));
    assert_int_equal(pthread_create(&thread, NULL, end_it, &e), 0);
    pthread_join(thread, NULL);
    mr_code code = e.status ? e.status->code : MR_CODE_COUNT;
    mr_error_destroy(e.status);
    if (code == MR_CODE_CAPTURE_WRONG_THREAD) {
        assert_true(mr_capture_facts_of(e.stream).capturing);
        OK(mr_capture_finish(&caller, e.stream, &e.graph));
    }
    mr_graph_release(e.graph);
    return code;
}

static void a_capture_ends_in_the_thread_of_its_begin(void **state) {
    (void)state;
    assert_int_equal(end_in_another_thread(MR_CAPTURE_GLOBAL), MR_CODE_CAPTURE_WRONG_THREAD);
    assert_int_equal(end_in_another_thread(MR_CAPTURE_THREAD), MR_CODE_CAPTURE_WRONG_THREAD);
    assert_int_equal(end_in_another_thread(MR_CAPTURE_RELAXED), MR_CODE_COUNT);
}

/* ---- the order of a launch */

enum { STREAMS = 5, MOST_NODES = 40, MOST_STEPS = 400, PROGRAMS = 2000 };

static unsigned random_state;

static unsigned below(unsigned bound) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 16) % bound;
}

/* A random capture over some streams, which are all joined at the end. */
static mr_graph *random_graph(mr_stream *const *streams) {
    mr_graph *graph;
    unsigned steps = 1 + below(MOST_NODES);
    OK(mr_capture_begin(&caller, streams[0], &(mr_capture_options){0}));
    for (unsigned i = 0; i < steps; i++) {
        mr_stream *s = streams[below(STREAMS)], *other = streams[below(STREAMS)];
        if (!s->capture) OK(mr_stream_wait_stream(&caller, s, streams[0]));
        if (below(3) == 0 && other->capture && other != s)
            OK(mr_stream_wait_stream(&caller, s, other));
        OK(mr_spin(&caller, s, 1000));
    }
    for (int i = 1; i < STREAMS; i++)
        if (streams[i]->capture) OK(mr_stream_wait_stream(&caller, streams[0], streams[i]));
    OK(mr_capture_finish(&caller, streams[0], &graph));
    return graph;
}

typedef bool order[MOST_NODES + 1][MOST_NODES + 1]; /* [a][b]: a comes before b */

static void close_order(uint32_t count, order o) {
    for (uint32_t k = 0; k < count; k++)
        for (uint32_t a = 0; a < count; a++)
            for (uint32_t b = 0; b < count; b++) o[a][b] = o[a][b] || (o[a][k] && o[k][b]);
}

static void order_of_edges(const mr_graph *graph, order o) {
    uint32_t count = mr_graph_count(graph);
    for (uint32_t i = 0; i < count; i++) {
        mr_graph_node n = mr_graph_node_at(graph, i);
        for (uint32_t k = 0; k < n.after_count; k++) o[n.after[k]][i] = true;
    }
    close_order(count, o);
}

/* What streams and events say: each lane and each event knows the nodes that come before. */
static void order_of_steps(const lowered *l, uint32_t count, order o, bool *end) {
    bool lanes[MOST_NODES + 1][MOST_NODES + 1] = {{false}};
    bool events[MOST_STEPS][MOST_NODES + 1] = {{false}};
    for (size_t i = 0; i < l->steps.count; i++) {
        const step *s = &l->steps.items[i];
        bool *lane = lanes[s->lane];
        assert_true(s->kind == STEP_NODE || s->at < MOST_STEPS);
        if (s->kind == STEP_RECORD) memcpy(events[s->at], lane, sizeof events[0]);
        for (uint32_t k = 0; k < count && s->kind == STEP_WAIT; k++) lane[k] |= events[s->at][k];
        if (s->kind != STEP_NODE) continue;
        for (uint32_t k = 0; k < count; k++) o[k][s->at] = lane[k];
        lane[s->at] = true;
    }
    memcpy(end, lanes[0], sizeof lanes[0]);
}

static void lanes_have_the_order_of_the_edges(void **state) {
    (void)state;
    mr_stream *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) streams[i] = free_stream();
    for (random_state = 0; random_state < PROGRAMS;) {
        unsigned program = random_state;
        order edges = {{false}}, steps = {{false}};
        bool end[MOST_NODES + 1];
        lowered l;
        mr_graph *graph = random_graph(streams);
        uint32_t count = mr_graph_count(graph);
        OK(mr_graph_lower(graph, &l));
        order_of_edges(graph, edges);
        order_of_steps(&l, count, steps, end);
        for (uint32_t a = 0; a < count; a++) {
            assert_true(end[a]); /* the launch's stream waits for all of them */
            for (uint32_t b = 0; b < count; b++)
                if (edges[a][b] != steps[a][b]) fail_msg("program %u: %u and %u", program, a, b);
        }
        mr_lowered_free(&l);
        mr_graph_release(graph);
        random_state = program + 1;
    }
}

/* An event waits for another launch only by one record: the beginning is not recorded where nothing forks. */
static void a_chain_needs_no_events(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_graph *graph;
    lowered l;
    OK(mr_capture_begin(&caller, s, &(mr_capture_options){0}));
    for (int i = 0; i < 50; i++) OK(mr_spin(&caller, s, 1000));
    OK(mr_capture_finish(&caller, s, &graph));
    OK(mr_graph_lower(graph, &l));
    assert_int_equal(l.steps.count, 50);
    assert_int_equal(l.lanes.count, 1);
    mr_lowered_free(&l);
    mr_graph_release(graph);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_capture_ends_in_the_thread_of_its_begin),
        T(lanes_have_the_order_of_the_edges),
        T(a_chain_needs_no_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
