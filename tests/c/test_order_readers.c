/* The virtual GPU's queue and the order of a trace, on random programs for three devices. A simple judge says, from the
 * text of docs/semantics.md, which steps come before which. No operation may run before one that it comes after,
 * whatever the chooser does; and a trace must know exactly this order. Then each row of src/order is broken in turn,
 * and the judge must notice it in both. */
#include "order_mutants.h"

#include "model/observer.h"
#include "trace/order.h"
#include "trace/record/tracer.h"
#include "virtual_fixture.h"

enum { DEVICES = 3, LANES = 8, EVENTS = 3, STEPS = 14, NODES = 3 * STEPS };

typedef enum { LEGACY_LANE, BLOCKING_LANE, FREE_LANE } lane_kind;

typedef enum {
    DO_OP,
    DO_RECORD,
    DO_WAIT,
    DO_PEER, /* a synchronous copy between devices */
    DO_PEER_ASYNC,
    DO_OUT, /* a synchronous copy to pinned memory */
    DO_IN,  /* a synchronous copy from pageable memory */
    DO_SYNC_STREAM,
    DO_SYNC_EVENT,
    DO_SYNC_DEVICE,
    DO_KINDS
} do_kind;

typedef struct {
    do_kind kind;
    int lane, event, device, from, current;
    int record; /* of DO_WAIT, DO_SYNC_EVENT: the step that it is bound to, or -1 */
    /* DO_IN, DO_OUT: the host had to wait; a trace tells only of waits that there were: */
    bool waited;
    bool done; /* for the copy itself, or for what its stream had before */
    uint64_t seq;
} program_step;

static const struct {
    lane_kind kind;
    int device;
} lanes[LANES] = {{LEGACY_LANE, 0}, {BLOCKING_LANE, 0}, {BLOCKING_LANE, 0}, {FREE_LANE, 0},
                  {LEGACY_LANE, 1}, {BLOCKING_LANE, 1}, {FREE_LANE, 1},     {FREE_LANE, 2}};

static program_step steps[STEPS];
static mr_stream *lane_stream[LANES];
static mr_event *events[EVENTS];
static mr_tensor *on_device[DEVICES], *pinned, *pageable;

static uint64_t random_state;
static int below(int count) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int)((z ^ z >> 31) % (uint64_t)count);
}

static const int nonblocking_lane[DEVICES] = {3, 6, 7};

static int legacy_lane(int d) {
    return d == 1 ? 4 : 0;
}

/* Device 2 has no default stream among the lanes, so that a copy of devices 0 and 1 can leave it out. */
static void make_program(uint64_t seed) {
    random_state = seed;
    int recorded[EVENTS] = {-1, -1, -1};
    for (int i = 0; i < STEPS; i++) {
        program_step *s = &steps[i];
        *s = (program_step){.kind = (do_kind)below(DO_KINDS), .lane = below(LANES), .record = -1};
        if (below(3) == 0) s->kind = DO_OP;
        s->event = lanes[s->lane].device;
        if (s->kind == DO_WAIT || s->kind == DO_SYNC_EVENT) s->event = below(EVENTS);
        s->device = below(DEVICES);
        s->current = below(DEVICES);
        if (s->kind == DO_PEER || s->kind == DO_PEER_ASYNC) {
            s->from = below(2);
            s->device = below(3) ? 1 - s->from : 2;
            s->lane = s->kind == DO_PEER ? legacy_lane(s->from) : nonblocking_lane[s->device];
        }
        if (s->kind == DO_OUT || s->kind == DO_IN) {
            s->device = below(2);
            s->lane = legacy_lane(s->device);
        }
        if (s->kind == DO_RECORD) recorded[s->event] = i;
        if (s->kind == DO_WAIT || s->kind == DO_SYNC_EVENT) s->record = recorded[s->event];
    }
}

/* ---- the judge */

static bool in_stream(const program_step *s) {
    return s->kind < DO_SYNC_STREAM;
}

static bool is_wall_of(const program_step *s, int d) {
    return s->kind == DO_PEER && (d == s->device || d == s->from || d == s->current);
}

/* Both are work of such a device. */
static bool walls_meet(const program_step *a, const program_step *b) {
    for (int d = 0; d < DEVICES; d++)
        if (is_wall_of(a, d) && is_wall_of(b, d)) return true;
    return false;
}

/* Work of lane b comes after earlier work of lane a: R1, R3. */
static bool lane_order(int a, int b) {
    if (a == b) return true;
    if (lanes[a].device != lanes[b].device) return false;
    if (lanes[a].kind == FREE_LANE || lanes[b].kind == FREE_LANE) return false;
    return lanes[a].kind == LEGACY_LANE || lanes[b].kind == LEGACY_LANE;
}

/* The host waits for all of a lane: R10, and of a default stream as seen (R5, R20). */
static bool waits_for_lane(int waited, int lane) {
    if (waited == lane) return true;
    return lanes[waited].kind == LEGACY_LANE && lanes[lane].kind == BLOCKING_LANE &&
           lanes[waited].device == lanes[lane].device;
}

/* Whether the host has waited for step i when it goes on from step j, or in j before the copy enters. */
static bool host_waits(int i, int j) {
    const program_step *a = &steps[i], *b = &steps[j];
    if (i == j) return b->waited && b->done;
    if (!in_stream(a)) return false;
    switch (b->kind) {
    case DO_SYNC_STREAM: return waits_for_lane(b->lane, a->lane);
    case DO_OUT:
    case DO_IN: return b->waited && !b->done && waits_for_lane(b->lane, a->lane);
    case DO_SYNC_EVENT: return b->record == i;
    case DO_SYNC_DEVICE: return lanes[a->lane].device == b->device;
    default: return false;
    }
}

/* Nodes: the call's begin and end, the work. */
static int begin_of(int i) {
    return 3 * i;
}
static int end_of(int i) {
    return 3 * i + 1;
}
static int work_of(int i) {
    return 3 * i + 2;
}

static void close_order(bool before[NODES][NODES]) {
    for (int k = 0; k < NODES; k++)
        for (int i = 0; i < NODES; i++)
            for (int j = 0; j < NODES && before[i][k]; j++)
                if (before[k][j]) before[i][j] = true;
}

static void judge(bool before[NODES][NODES]) {
    memset(before, 0, sizeof(bool[NODES][NODES]));
    for (int j = 0; j < STEPS; j++) {
        const program_step *b = &steps[j];
        before[begin_of(j)][end_of(j)] = true;
        if (j) before[end_of(j - 1)][begin_of(j)] = true;
        if (in_stream(b)) before[begin_of(j)][work_of(j)] = true;
        for (int i = 0; i <= j; i++)
            if (host_waits(i, j)) before[work_of(i)][end_of(j)] = true;
        for (int i = 0; i < j && in_stream(b); i++) {
            const program_step *a = &steps[i];
            bool orders = lane_order(a->lane, b->lane) || is_wall_of(a, lanes[b->lane].device) ||
                          is_wall_of(b, lanes[a->lane].device) || walls_meet(a, b);
            if (in_stream(a) && (orders || (b->kind == DO_WAIT && b->record == i)))
                before[work_of(i)][work_of(j)] = true;
        }
    }
    close_order(before);
}

/* ---- carrying it out */

static uint64_t first_ran[STEPS], last_ran[STEPS], moment;

static int step_of(uint64_t seq) {
    for (int i = 0; i < STEPS; i++)
        if (steps[i].seq == seq) return i;
    return -1;
}

static void ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    (void)observer;
    (void)run;
    int i = step_of(command->seq);
    if (i < 0) return;
    last_ran[i] = ++moment;
    if (!first_ran[i]) first_ran[i] = moment;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer;
    (void)command;
    (void)host_waited;
}

static mr_status one_step(program_step *s) {
    machine->current_device = machine->devices[s->current];
    mr_stream *stream = lane_stream[s->lane];
    switch (s->kind) {
    case DO_OP: return mr_spin(&caller, stream, 1000000);
    case DO_RECORD: return mr_event_record(&caller, events[s->event], stream);
    case DO_WAIT: return mr_stream_wait_event(&caller, stream, events[s->event]);
    case DO_PEER: return mr_memcpy(&caller, on_device[s->device], on_device[s->from], NULL, true);
    case DO_PEER_ASYNC:
        return mr_memcpy(&caller, on_device[s->device], on_device[s->from], stream, false);
    case DO_OUT: return mr_memcpy(&caller, pinned, on_device[s->device], NULL, true);
    case DO_IN: return mr_memcpy(&caller, on_device[s->device], pageable, NULL, true);
    case DO_SYNC_STREAM: return mr_stream_synchronize(&caller, stream);
    case DO_SYNC_EVENT: return mr_event_synchronize(&caller, events[s->event]);
    case DO_SYNC_DEVICE: return mr_device_synchronize(&caller, machine->devices[s->device]);
    case DO_KINDS: break;
    }
    return MR_OK;
}

static void open_program(uint64_t seed) {
    char chooser[32];
    snprintf(chooser, sizeof chooser, seed % 4 ? "random:%d" : "adversarial", (int)(seed % 1000));
    open_machine("virtual:3", chooser);
    for (int d = 0; d < DEVICES; d++)
        OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, machine->devices[d]->legacy, MR_F32, 1,
                            (int64_t[]){4}, &on_device[d]));
    OK(mr_tensor_create(&caller, MR_MEMORY_PINNED, NULL, MR_F32, 1, (int64_t[]){4}, &pinned));
    OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_F32, 1, (int64_t[]){4}, &pageable));
    for (int i = 0; i < LANES; i++) {
        mr_device *on = machine->devices[lanes[i].device];
        mr_stream_options options = {.nonblocking = lanes[i].kind == FREE_LANE};
        lane_stream[i] = on->legacy;
        if (lanes[i].kind != LEGACY_LANE)
            OK(mr_stream_create(&caller, on, &options, &lane_stream[i]));
    }
    mr_event_options timed = {0};
    for (int e = 0; e < EVENTS; e++) OK(mr_event_create(&caller, &timed, &events[e]));
    for (int d = 0; d < DEVICES; d++) OK(mr_device_synchronize(&caller, machine->devices[d]));
}

static void close_program(void) {
    for (int d = 0; d < DEVICES; d++) {
        mr_storage_drop_handle(on_device[d]->storage);
        mr_tensor_release(on_device[d]);
    }
    mr_tensor *of_host[] = {pinned, pageable};
    for (int i = 0; i < 2; i++) {
        mr_storage_drop_handle(of_host[i]->storage);
        mr_tensor_release(of_host[i]);
    }
    for (int e = 0; e < EVENTS; e++) mr_event_release(events[e]);
    for (int i = 0; i < LANES; i++)
        if (lanes[i].kind != LEGACY_LANE) mr_stream_release(lane_stream[i]);
    mr_machine_close(machine);
    machine = NULL;
}

/* ---- comparing */

static bool queue_differs(bool before[NODES][NODES]) {
    for (int j = 0; j < STEPS; j++)
        for (int i = 0; i < STEPS; i++)
            if (before[work_of(i)][work_of(j)] && last_ran[i] && first_ran[j] &&
                last_ran[i] > first_ran[j])
                return true;
    return false;
}

static void note_waits(const mr_trace *trace) {
    const mr_span *spans = mr_trace_spans(trace);
    for (size_t n = 0; n < mr_trace_count(trace); n++) {
        int i = step_of(spans[n].seq);
        if (i < 0 || (steps[i].kind != DO_IN && steps[i].kind != DO_OUT)) continue;
        steps[i].waited = spans[n].host_waited;
        steps[i].done = spans[n].ran && spans[n].end <= spans[n].returned;
    }
}

static bool trace_differs(const mr_trace *trace, bool before[NODES][NODES]) {
    static bool found[NODES][NODES];
    const mr_span *spans = mr_trace_spans(trace);
    size_t count = mr_trace_count(trace), stream_count = mr_trace_stream_count(trace);
    mr_trace_stream *streams = calloc(stream_count + 1, sizeof *streams);
    for (size_t s = 0; s < stream_count; s++) streams[s] = *mr_trace_stream_at(trace, s);
    mr_trace_order order;
    OK(mr_trace_order_make(spans, count, streams, stream_count, &order));
    memset(found, 0, sizeof found);
    for (size_t n = 0; n < count; n++) {
        int j = step_of(spans[n].seq);
        if (j < 0) continue;
        found[begin_of(j)][end_of(j)] = true;
        if (in_stream(&steps[j])) found[begin_of(j)][work_of(j)] = true;
        if (order.call_before[n] != MR_TRACE_NONE) {
            int earlier = step_of(spans[order.call_before[n]].seq);
            if (earlier >= 0) found[end_of(earlier)][begin_of(j)] = true;
        }
        for (size_t e = order.first[n]; e < order.first[n + 1]; e++) {
            int i = step_of(spans[order.edges[e].from].seq);
            bool host = order.edges[e].rule == MR_CAUSE_SYNCHRONIZE;
            if (i >= 0) found[work_of(i)][host ? end_of(j) : work_of(j)] = true;
        }
    }
    mr_trace_order_free(&order);
    free(streams);
    close_order(found);
    return memcmp(found, before, sizeof found) != 0;
}

typedef enum { QUEUE = 1, TRACE = 2 } reader;

static bool did_fail(mr_status status) {
    mr_error_destroy(status);
    return status != NULL;
}

/* The readers that the judge contradicts in this program. */
static unsigned differs(uint64_t seed) {
    static bool before[NODES][NODES];
    mr_tracer *tracer;
    mr_trace *trace;
    mr_observer observer = {.name = "test", .did = did, .ran = ran};
    make_program(seed);
    memset(first_ran, 0, sizeof first_ran);
    memset(last_ran, 0, sizeof last_ran);
    open_program(seed);
    OK(mr_tracer_start(machine, 1000, &tracer));
    OK(mr_observer_add(machine, &observer));
    bool failed = false; /* a broken row may make works that wait for each other */
    for (int i = 0; i < STEPS && !failed; i++) {
        steps[i].seq = machine->counts.next_seq;
        failed = did_fail(one_step(&steps[i]));
    }
    OK(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    note_waits(trace);
    judge(before);
    unsigned result = trace_differs(trace, before) ? TRACE : 0;
    mr_trace_release(trace);
    for (int d = 0; d < DEVICES; d++)
        failed |= did_fail(mr_device_synchronize(&caller, machine->devices[d]));
    if (failed || queue_differs(before)) result |= QUEUE;
    mr_observer_remove(machine, &observer);
    mr_tracer_stop(tracer);
    close_program();
    return result;
}

static void they_know_the_order(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        unsigned found = differs(seed);
        if (found) fail_msg("seed %d: %s", (int)seed, found & QUEUE ? "the queue" : "the trace");
    }
}

/* A command may only take the place of what it comes after, so that nothing is lost; but for a record (R11). The
 * release by a default stream is the end of its lane. */
static void what_is_replaced_is_known(void **unused) {
    (void)unused;
    for (unsigned i = 0; i < MR_ORDER_ROWS; i++) {
        const mr_order_row *row = &mr_order_rows[i];
        if (!row->replaces) continue;
        assert_int_equal(row->when, MR_AT_LEAVE);
        mr_order_facts facts = row->needs;
        mr_place at = row->to == MR_PLACE_RELEASED ? MR_PLACE_LANE : (mr_place)row->to;
        assert_int_not_equal(mr_place_in(mr_order_taken(facts, MR_GUARANTEED), at),
                             row->to == MR_PLACE_RECORD);
        mr_order_set of_wall = mr_order_of_wall(MR_AT_ENTER, MR_GUARANTEED);
        bool meets = false;
        for (; of_wall; of_wall &= of_wall - 1) meets |= mr_order_first(of_wall)->from == at;
        if (row->needs & MR_FACT_WALL) assert_true(meets);
    }
}

static unsigned asked;
static bool notices(void) {
    for (uint64_t seed = 1; seed <= 2000; seed++)
        if (differs(seed) & asked) return true;
    return false;
}

static void every_row_counts_in_the_queue(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_CALL, "what the host has waited for is done", EVERY_MUTANT},
        {MR_ORDER_TO_HOST, "likewise", EVERY_MUTANT},
        {MR_ORDER_STREAM, "a queue is its list of works", EVERY_MUTANT},
        {MR_ORDER_TO_STREAM, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_DEVICE, "a device is all its queues", EVERY_MUTANT},
        {MR_ORDER_REUSE, "the programs allocate nothing: test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_TO_FREED, "the pool holds the free", EVERY_MUTANT},
        {MR_ORDER_USERS, "the programs free nothing: test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_OWNER, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_RELEASED, "the place is the default stream's queue; the row saves edges",
         EVERY_MUTANT},
        {MR_ORDER_EARLIER, "submit.c waits by the rules of copies", EVERY_MUTANT},
        {MR_ORDER_EARLIER_BLOCKING, "likewise", EVERY_MUTANT},
        {MR_ORDER_ITSELF, "likewise", EVERY_MUTANT},
        {MR_ORDER_SYNC_STREAM, "wait.c waits until the queue is empty", EVERY_MUTANT},
        {MR_ORDER_SYNC_RECORD, "until the record is done", EVERY_MUTANT},
        {MR_ORDER_SYNC_DEVICE, "until nothing is pending", EVERY_MUTANT},
        {MR_ORDER_TO_RECORD, "the event holds its record", EVERY_MUTANT},
        {MR_ORDER_GIVE_BACK, "a setting decides", EVERY_MUTANT},
        {MR_ORDER_MEET, "the works of a meeting end together: meet.c", EVERY_MUTANT},
        {MR_ORDER_MEET_ALL, "likewise", EVERY_MUTANT},
        {MR_ORDER_GATHER, "the judge permits a device more order", ONLY_WIDENED},
        {MR_ORDER_RELEASE, "likewise", ONLY_WIDENED},
        {MR_ORDER_TO_GATHERED, "likewise", ONLY_WIDENED},
        {MR_ORDER_SYNC_BLOCKING, "likewise", ONLY_WIDENED},
        {MR_ORDER_ROWS, NULL, 0}};
    asked = QUEUE;
    assert_int_equal(order_unnoticed(MR_ALLOCATOR, inherent, notices), 0);
}

static void every_row_counts_in_a_trace(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_CALL, "calls are in turn", EVERY_MUTANT},
        {MR_ORDER_TO_HOST, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_DEVICE, "a device is all its streams", EVERY_MUTANT},
        {MR_ORDER_TO_RECORD, "a span names its record", EVERY_MUTANT},
        {MR_ORDER_REUSE, "test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_TO_FREED, "a span names its holder", EVERY_MUTANT},
        {MR_ORDER_USERS, "no span waits for them, the pool does", EVERY_MUTANT},
        {MR_ORDER_OWNER, "likewise", EVERY_MUTANT},
        {MR_ORDER_GIVE_BACK, "test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_MEET, "MEET_ALL is more", EVERY_MUTANT},
        {MR_ORDER_MEET_ALL, "test_order_meetings.c", EVERY_MUTANT},
        {MR_ORDER_EARLIER_BLOCKING, "all staged copies of the programs are of default streams",
         ONLY_WIDENED},
        {MR_ORDER_ROWS, NULL, 0}};
    asked = TRACE;
    assert_int_equal(order_unnoticed(MR_ALLOCATOR, inherent, notices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_replaced_is_known),
        cmocka_unit_test(they_know_the_order),
        cmocka_unit_test(every_row_counts_in_the_queue),
        cmocka_unit_test(every_row_counts_in_a_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
