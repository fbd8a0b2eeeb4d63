/* R61: do the checker, its explanations and a trace take it from the rows of src/order? Random programs of three
 * devices, each with a stream: copies to and from shared memory, and collectives. A simple judge says from the text of
 * docs/semantics.md what comes before what. Then the rows are broken in turn, and the judge must notice it. */
#include "order_mutants.h"

#include "collective/comm.h"
#include "hazard/hazard.h"
#include "trace/order.h"
#include "trace/record/tracer.h"
#include "virtual_fixture.h"

enum { RANKS = 3, STEPS = 10, NODES = STEPS * RANKS };

typedef enum { DO_OUT, DO_IN, DO_ALL, DO_FROM_ROOT, DO_TO_ROOT, DO_KINDS } do_kind;

typedef struct {
    do_kind kind;
    int rank;     /* of a collective: its root */
    int shared;   /* of a copy: which memory */
    uint64_t seq; /* of the copy */
} program_step;

static program_step steps[STEPS];

static uint64_t random_state;
static int below(int count) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int)((z ^ z >> 31) % (uint64_t)count);
}

static void make_program(uint64_t seed) {
    random_state = seed;
    for (int i = 0; i < STEPS; i++)
        steps[i] = (program_step){
            .kind = (do_kind)below(DO_KINDS), .rank = below(RANKS), .shared = below(2)};
}

/* ---- the judge: node i * RANKS + r is what rank r has in step i */

static bool is_copy(const program_step *s) {
    return s->kind == DO_OUT || s->kind == DO_IN;
}

static bool takes_part(const program_step *s, int rank) {
    return !is_copy(s) || s->rank == rank;
}

/* Whether `to` gets data of `from`; a device ends all members together, whoever gets whose data. */
static bool gets(const program_step *s, int to, int from, bool on_device) {
    if (on_device || s->kind == DO_ALL) return true;
    return s->kind == DO_FROM_ROOT ? from == s->rank : to == s->rank;
}

/* What each node comes after. Streams are the ranks; operations of the communicator are in one order anyway, since
 * each rank has one stream. */
static void judge(bool before[NODES][NODES], bool on_device) {
    static bool past[RANKS][NODES], now[RANKS][NODES];
    memset(past, 0, sizeof past);
    memset(before, 0, NODES * sizeof *before);
    for (int i = 0; i < STEPS; i++) {
        memcpy(now, past, sizeof now);
        for (int to = 0; to < RANKS; to++) {
            if (!takes_part(&steps[i], to)) continue;
            for (int from = 0; from < RANKS && !is_copy(&steps[i]); from++)
                for (int n = 0; n < NODES && gets(&steps[i], to, from, on_device); n++)
                    now[to][n] |= past[from][n];
            for (int n = 0; n < NODES; n++) before[n][i * RANKS + to] = now[to][n];
            now[to][i * RANKS + to] = true;
        }
        memcpy(past, now, sizeof past);
    }
}

static bool has_hazard(bool before[NODES][NODES]) {
    for (int j = 0; j < STEPS; j++)
        for (int i = 0; i < j; i++) {
            const program_step *a = &steps[i], *b = &steps[j];
            bool touch = is_copy(a) && is_copy(b) && a->shared == b->shared;
            bool writes = a->kind == DO_OUT || b->kind == DO_OUT;
            if (touch && writes && !before[i * RANKS + a->rank][j * RANKS + b->rank]) return true;
        }
    return false;
}

/* ---- the machine */

static mr_stream *streams[RANKS];
static mr_tensor *own[RANKS], *shared[2];
static mr_comm *comms[RANKS];
static mr_collectives *collectives;

static void open_program(void) {
    mr_stream_options options = {.nonblocking = true};
    mr_device *devices[RANKS];
    open_machine("virtual:3", "random:1");
    for (int k = 0; k < RANKS; k++) {
        devices[k] = machine->devices[k];
        OK(mr_stream_create(&caller, devices[k], &options, &streams[k]));
        assert_true(mr_vec_push(&made_streams, streams[k]));
        own[k] = tensor(streams[k], 4);
    }
    for (int i = 0; i < 2; i++) shared[i] = tensor_of(MR_MEMORY_PINNED, NULL, 4);
    OK(mr_collectives_new(machine, &collectives));
    OK(mr_comms_create(collectives, devices, RANKS, NULL, comms));
    for (int k = 0; k < RANKS; k++) OK(mr_device_synchronize(&caller, devices[k]));
}

static void close_program(void) {
    for (int k = 0; k < RANKS; k++) {
        mr_error_destroy(mr_device_synchronize(&caller, machine->devices[k]));
        mr_comm_release(comms[k]);
    }
    mr_collectives_free(collectives);
    assert_int_equal(teardown(NULL), 0);
}

static void call(const program_step *s, int rank) {
    bool is_root = rank == s->rank;
    mr_collective_call ask = {.comm = comms[rank], .stream = streams[rank]};
    ask.what = s->kind == DO_ALL         ? MR_COLLECTIVE_ALL_REDUCE
               : s->kind == DO_FROM_ROOT ? MR_COLLECTIVE_BROADCAST
                                         : MR_COLLECTIVE_REDUCE;
    ask.root = s->kind == DO_ALL ? 0 : (uint32_t)s->rank;
    ask.in = s->kind == DO_FROM_ROOT && !is_root ? NULL : own[rank];
    ask.out = s->kind == DO_TO_ROOT && !is_root    ? NULL
              : s->kind == DO_FROM_ROOT && is_root ? NULL
                                                   : own[rank];
    OK(mr_collective_ask(collectives, &caller, &ask));
}

static void one_step(program_step *s) {
    if (is_copy(s)) {
        mr_tensor *to = s->kind == DO_OUT ? shared[s->shared] : own[s->rank];
        mr_tensor *from = s->kind == DO_OUT ? own[s->rank] : shared[s->shared];
        s->seq = machine->counts.next_seq;
        OK(mr_memcpy(&caller, to, from, streams[s->rank], false));
        return;
    }
    mr_collectives_begin(collectives);
    for (int k = 0; k < RANKS; k++) call(s, k);
    OK(mr_collectives_end(collectives));
}

/* ---- the readers */

static int node_of(uint64_t seq) {
    for (int i = 0; i < STEPS; i++)
        if (is_copy(&steps[i]) && steps[i].seq == seq) return i * RANKS + steps[i].rank;
    return -1;
}

/* Copies alone are compared: whether one is before another, over any spans. */
static bool trace_differs(const mr_trace *trace, bool before[NODES][NODES]) {
    const mr_span *spans = mr_trace_spans(trace);
    size_t count = mr_trace_count(trace), stream_count = mr_trace_stream_count(trace);
    mr_trace_stream *kept = calloc(stream_count + 1, sizeof *kept);
    bool *found = calloc(count * count + 1, sizeof *found), differs = false;
    for (size_t s = 0; s < stream_count; s++) kept[s] = *mr_trace_stream_at(trace, s);
    mr_trace_order order;
    OK(mr_trace_order_make(spans, count, kept, stream_count, &order));
    for (size_t n = 0; n < count; n++)
        for (size_t e = order.first[n]; e < order.first[n + 1]; e++) {
            size_t from = order.edges[e].from;
            found[from * count + n] = true;
            for (size_t k = 0; k < count; k++) found[k * count + n] |= found[k * count + from];
        }
    for (size_t a = 0; a < count; a++)
        for (size_t b = a + 1; b < count; b++) {
            int i = node_of(spans[a].seq), j = node_of(spans[b].seq);
            if (i >= 0 && j >= 0 && found[a * count + b] != before[i][j]) differs = true;
        }
    mr_trace_order_free(&order);
    free(found);
    free(kept);
    return differs;
}

/* Copies alone, too: mr.hazard.why of each two. */
static bool why_differs(mr_hazard *hazard, bool before[NODES][NODES]) {
    bool differs = false;
    for (int j = 0; j < STEPS; j++)
        for (int i = 0; i < j; i++) {
            const program_step *a = &steps[i], *b = &steps[j];
            mr_buffer text = {0};
            if (is_copy(a) && is_copy(b) &&
                mr_hazard_why(hazard, a->seq, b->seq, &text) !=
                    before[i * RANKS + a->rank][j * RANKS + b->rank])
                differs = true;
            mr_buffer_free(&text);
        }
    return differs;
}

enum { CHECKER = 1, TRACE = 2, WHY = 4 };

static unsigned differs(uint64_t seed) {
    static bool before[NODES][NODES];
    mr_hazard *hazard;
    mr_tracer *tracer;
    mr_trace *trace;
    make_program(seed);
    open_program();
    OK(mr_hazard_create(machine, NULL, &hazard));
    OK(mr_hazard_set_mode(hazard, MR_HAZARD_COLLECT));
    OK(mr_tracer_start(machine, 1000, &tracer));
    for (int i = 0; i < STEPS; i++) one_step(&steps[i]);
    judge(before, false);
    unsigned result =
        (mr_hazard_get_totals(hazard, true).hazards != 0) == has_hazard(before) ? 0 : CHECKER;
    if (why_differs(hazard, before)) result |= WHY;
    OK(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    judge(before, true);
    if (trace_differs(trace, before)) result |= TRACE;
    mr_trace_release(trace);
    mr_tracer_stop(tracer);
    mr_hazard_destroy(hazard);
    close_program();
    return result;
}

static void they_know_the_order(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        unsigned found = differs(seed);
        if (found)
            fail_msg("seed %d: %s", (int)seed,
                     found & TRACE ? "the trace"
                     : found & WHY ? "the explanation"
                                   : "the checker");
    }
}

static unsigned asked;
static bool notices(void) {
    for (uint64_t seed = 1; seed <= 300; seed++)
        if (differs(seed) & asked) return true;
    return false;
}

/* The other rows are those of test_order_checker.c, test_hazard_why.c and test_order_readers.c. */
static void count_row(mr_order_id id, mr_strength strength, unsigned reader) {
    asked = reader;
    assert_int_equal(mr_order_rows[id].rule, 61);
    assert_int_equal(order_row_unnoticed(id, strength, NULL, notices), 0);
}

static void both_rows_count(void **unused) {
    (void)unused;
    count_row(MR_ORDER_MEET, MR_GUARANTEED, CHECKER);
    count_row(MR_ORDER_MEET, MR_GUARANTEED, WHY);
    count_row(MR_ORDER_MEET_ALL, MR_ALLOCATOR, TRACE);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(they_know_the_order),
                                       cmocka_unit_test(both_rows_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
