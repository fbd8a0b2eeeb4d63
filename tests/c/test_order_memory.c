/* Rows about memory: who has which bytes next (R9, R28, R30, R33), and cudaFree (R27). Do the virtual GPU, a trace, the
 * explorer and the hazard checker take them from src/order?
 *
 * The queue and the trace: random programs on a device that has room for one large tensor. It is freed in one stream
 * and made anew in the next one, which so comes after it. A simple judge says from the text of docs/semantics.md what
 * comes before what. The explorer: functions whose classes of schedules and outcomes a person can count. For guarded
 * memory: functions of which a person can say what they read, and whether they have a hazard. Then each row is broken
 * in turn, and the judges must notice it. */
#include "order_mutants.h"

#include "explore/explore.h"
#include "hazard/hazard.h"
#include "model/observer.h"
#include "trace/order.h"
#include "trace/record/tracer.h"
#include "virtual_fixture.h"

enum { LANES = 4, STEPS = 18, NODES = 3 * STEPS, PROGRAMS = 40, SIZE = 1 << 20, SMALL = 4 };

typedef enum { DO_OP, DO_FREE, DO_ALLOC, DO_CUDA_FREE } do_kind;

typedef struct {
    do_kind kind;
    int lane;
    bool waited; /* DO_CUDA_FREE: the host had to; a trace tells only of waits that there were */
    uint64_t seq;
} program_step;

typedef struct {
    program_step step[STEPS];
    const mr_trace *trace;
} program;

static program programs[PROGRAMS];
static mr_stream *lane_stream[LANES];
static mr_stream *blocking; /* where functions are explored */
static mr_tensor *large, *small[STEPS];

static uint64_t random_state;
static int below(int count) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (int)((z ^ z >> 31) % (uint64_t)count);
}

/* A stream has work from when it has the memory on. Before the free it has some, so that the free is still to come. */
static void make_program(uint64_t seed, program *p) {
    random_state = seed;
    int holder = 0;
    for (int i = 0; i < STEPS; i++) {
        p->step[i] = (program_step){.kind = DO_OP, .lane = below(holder + 1)};
        int what = below(4);
        if (what == 0) p->step[i].kind = DO_CUDA_FREE;
        if (what > 1 || holder + 1 == LANES || i + 2 >= STEPS) continue;
        p->step[i++] = (program_step){.kind = DO_OP, .lane = holder};
        p->step[i++] = (program_step){.kind = DO_FREE, .lane = holder};
        p->step[i] = (program_step){.kind = DO_ALLOC, .lane = ++holder};
    }
}

/* ---- the judge: the call's begin and end, the work. A free takes no time, so that an allocation with its memory comes
 * after the work before it. */

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

static bool in_stream(const program_step *s) {
    return s->kind != DO_CUDA_FREE;
}

static void judge(const program *p, bool before[NODES][NODES]) {
    memset(before, 0, sizeof(bool[NODES][NODES]));
    for (int j = 0; j < STEPS; j++) {
        const program_step *b = &p->step[j];
        before[begin_of(j)][end_of(j)] = true;
        if (j) before[end_of(j - 1)][begin_of(j)] = true;
        if (in_stream(b)) before[begin_of(j)][work_of(j)] = true;
        for (int i = 0; i < j; i++) {
            const program_step *a = &p->step[i];
            if (!in_stream(a)) continue;
            if (!in_stream(b) && b->waited) before[work_of(i)][end_of(j)] = true;
            bool has_its_memory = b->kind == DO_ALLOC && i == j - 2;
            if (in_stream(b) && (a->lane == b->lane || has_its_memory))
                before[work_of(i)][work_of(j)] = true;
        }
    }
    close_order(before);
}

/* ---- carrying it out */

static const program *running;
static uint64_t first_ran[STEPS], last_ran[STEPS], moment;

static int step_of(const program *p, uint64_t seq) {
    for (int i = 0; i < STEPS; i++)
        if (p->step[i].seq == seq) return i;
    return -1;
}

static void ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    (void)observer;
    (void)run;
    int i = step_of(running, command->seq);
    if (i < 0) return;
    last_ran[i] = ++moment;
    if (!first_ran[i]) first_ran[i] = moment;
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer;
    (void)command;
    (void)host_waited;
}

static mr_tensor *on_device(mr_stream *stream, int64_t size) {
    mr_tensor *t;
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, stream, MR_I32, 1, &size, &t));
    return t;
}

static void let_go_of(mr_tensor *t) {
    mr_storage_drop_handle(t->storage);
    mr_tensor_release(t);
}

static void one_step(const program_step *s, int number) {
    mr_stream *stream = lane_stream[s->lane];
    mr_storage *storage = s->kind == DO_FREE ? large->storage : small[number]->storage;
    switch (s->kind) {
    case DO_OP: OK(mr_spin(&caller, stream, 1000000)); break;
    case DO_FREE: OK(mr_storage_free(&caller, storage, MR_FREE_ON_STREAM, stream)); break;
    case DO_ALLOC:
        let_go_of(large);
        large = on_device(stream, SIZE);
        break;
    case DO_CUDA_FREE: OK(mr_storage_free(&caller, storage, MR_FREE_SYNC, NULL)); break;
    }
}

static void open_program(void) {
    mr_stream_options options = {.nonblocking = true};
    open_machine(NULL, NULL);
    set("memory_bytes", SIZE * 4 + STEPS * 512);
    set("free_waits", 1);
    for (int k = 0; k < LANES; k++)
        OK(mr_stream_create(&caller, device, &options, &lane_stream[k]));
    large = on_device(lane_stream[0], SIZE);
    for (int i = 0; i < STEPS; i++) small[i] = on_device(lane_stream[0], SMALL);
    OK(mr_device_synchronize(&caller, device));
}

static void close_program(void) {
    let_go_of(large);
    for (int i = 0; i < STEPS; i++) let_go_of(small[i]);
    for (int k = 0; k < LANES; k++) mr_stream_release(lane_stream[k]);
    mr_machine_close(machine);
    machine = NULL;
}

static void note_waits(program *p) {
    const mr_span *spans = mr_trace_spans(p->trace);
    for (size_t n = 0; n < mr_trace_count(p->trace); n++) {
        int i = step_of(p, spans[n].seq);
        if (i >= 0) p->step[i].waited = spans[n].host_waited;
    }
}

static void run_program(program *p) {
    mr_tracer *tracer;
    mr_trace *trace;
    mr_observer observer = {.name = "test", .did = did, .ran = ran};
    memset(first_ran, 0, sizeof first_ran);
    memset(last_ran, 0, sizeof last_ran);
    running = p;
    open_program();
    OK(mr_tracer_start(machine, 1000, &tracer));
    OK(mr_observer_add(machine, &observer));
    for (int i = 0; i < STEPS; i++) {
        p->step[i].seq = machine->counts.next_seq;
        one_step(&p->step[i], i);
    }
    OK(mr_device_synchronize(&caller, device));
    OK(mr_tracer_snapshot(tracer, 0, NULL, 0, &trace));
    p->trace = trace;
    note_waits(p);
    mr_observer_remove(machine, &observer);
    mr_tracer_stop(tracer);
    close_program();
}

/* ---- comparing */

static bool queue_differs(const program *p) {
    static bool before[NODES][NODES];
    judge(p, before);
    for (int j = 0; j < STEPS; j++)
        for (int i = 0; i < STEPS; i++)
            if (before[work_of(i)][work_of(j)] && last_ran[i] && first_ran[j] &&
                last_ran[i] > first_ran[j])
                return true;
    return false;
}

static bool trace_differs(const program *p) {
    static bool before[NODES][NODES], found[NODES][NODES];
    const mr_span *spans = mr_trace_spans(p->trace);
    size_t count = mr_trace_count(p->trace), stream_count = mr_trace_stream_count(p->trace);
    mr_trace_stream *streams = calloc(stream_count + 1, sizeof *streams);
    for (size_t s = 0; s < stream_count; s++) streams[s] = *mr_trace_stream_at(p->trace, s);
    mr_trace_order order;
    OK(mr_trace_order_make(spans, count, streams, stream_count, &order));
    memset(found, 0, sizeof found);
    for (size_t n = 0; n < count; n++) {
        int j = step_of(p, spans[n].seq);
        if (j < 0) continue;
        found[begin_of(j)][end_of(j)] = true;
        if (in_stream(&p->step[j])) found[begin_of(j)][work_of(j)] = true;
        if (j) found[end_of(j - 1)][begin_of(j)] = true;
        for (size_t e = order.first[n]; e < order.first[n + 1]; e++) {
            int i = step_of(p, spans[order.edges[e].from].seq);
            bool host = order.edges[e].rule == MR_CAUSE_SYNCHRONIZE;
            if (i >= 0) found[work_of(i)][host ? end_of(j) : work_of(j)] = true;
        }
    }
    mr_trace_order_free(&order);
    free(streams);
    close_order(found);
    judge(p, before);
    return memcmp(found, before, sizeof found) != 0;
}

/* ---- exploring */

/* A stream reads memory that another one frees, not behind the read. Once the free is over, a third stream has the
 * memory and may write to it before the read (R30). */
static void reuse(mr_explore_value *out) {
    mr_tensor *x = on_device(lane_stream[0], SMALL), *y;
    mr_tensor *read = tensor_of(MR_MEMORY_PINNED, NULL, SMALL);
    fill(lane_stream[0], x, 7);
    OK(mr_stream_wait_stream(&caller, lane_stream[2], lane_stream[0]));
    copy(lane_stream[2], read, x);
    OK(mr_storage_free(&caller, x->storage, MR_FREE_ON_STREAM, lane_stream[0]));
    let_go_of(x);
    y = on_device(lane_stream[1], SMALL);
    fill(lane_stream[1], y, 100);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_host_access(&caller, "read", read, MR_READ));
    mr_buffer_printf(&out->text, "%d", values(read)[0]);
    let_go_of(y);
    drop(read);
}

static mr_explore_race free_race; /* of give_back */

/* The host's read comes after the copy where cudaFree waits, which CUDA does not guarantee (R27). */
static void give_back(mr_explore_value *out) {
    mr_tensor *x = on_device(lane_stream[0], SMALL), *other = on_device(lane_stream[0], SMALL);
    mr_tensor *read = tensor_of(MR_MEMORY_PINNED, NULL, SMALL);
    OK(mr_host_access(&caller, "clear", read, MR_WRITE));
    memset(values(read), 0, sizeof(int32_t[SMALL]));
    fill(lane_stream[0], x, 7);
    free_race.first = machine->counts.next_seq;
    copy(lane_stream[0], read, x);
    OK(mr_storage_free(&caller, other->storage, MR_FREE_SYNC, NULL));
    free_race.second = machine->counts.next_seq;
    OK(mr_host_access(&caller, "read", read, MR_READ));
    mr_buffer_printf(&out->text, "%d", values(read)[0]);
    let_go_of(x);
    let_go_of(other);
    drop(read);
}

/* Until the allocation of a blocking stream is over, a query of the default stream may say no, too (R5). */
static void ask(mr_explore_value *out, mr_stream *allocates, mr_stream *stream) {
    mr_tensor *x = on_device(allocates, SMALL);
    bool done;
    OK(mr_stream_query(&caller, stream, &done));
    mr_buffer_printf(&out->text, "%d", done);
    let_go_of(x);
}
static void ask_behind_blocking(mr_explore_value *out) {
    ask(out, blocking, device->legacy);
}
static void ask_behind_nonblocking(mr_explore_value *out) {
    ask(out, lane_stream[0], device->legacy);
}
static void ask_another(mr_explore_value *out) {
    ask(out, blocking, lane_stream[0]);
}

/* A stream reads memory that is freed, not behind the read, and that the stream of the free gets next. */
typedef enum { NAMED, UNNAMED, CLOSED, CLOSED_AT_ONCE } guard;

static void read_late(mr_stream *stream, mr_tensor *x, mr_tensor *read) {
    OK(mr_spin(&caller, stream, 5000000));
    copy(stream, read, x);
}

static int guarded(guard by) {
    bool closes = by == CLOSED || by == CLOSED_AT_ONCE;
    mr_stream_options options = {.nonblocking = true};
    mr_stream *own = lane_stream[0], *user = lane_stream[2], *next = closes ? device->legacy : own;
    if (closes) OK(mr_stream_create(&caller, device, &options, &own));
    mr_tensor *x = on_device(own, SMALL), *read = tensor_of(MR_MEMORY_PINNED, NULL, SMALL), *y;
    fill(own, x, 7);
    if (!closes) OK(mr_stream_wait_stream(&caller, user, own));
    read_late(closes ? own : user, x, read);
    if (by == NAMED) OK(mr_storage_record_stream(x->storage, user));
    if (closes) OK(mr_stream_close(&caller, own));
    if (by == CLOSED_AT_ONCE) OK(mr_storage_free(&caller, x->storage, MR_FREE_SYNC, NULL));
    let_go_of(x);
    y = on_device(next, SMALL);
    fill(next, y, 100);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_host_access(&caller, "read", read, MR_READ));
    int value = values(read)[0];
    let_go_of(y);
    drop(read);
    if (closes) mr_stream_release(own);
    return value;
}

static void explore_guarded(mr_explore_value *out, guard by) {
    mr_buffer_printf(&out->text, "%d", guarded(by));
}
static void reuse_behind_user(mr_explore_value *out) {
    explore_guarded(out, NAMED);
}
static void reuse_behind_owner(mr_explore_value *out) {
    explore_guarded(out, CLOSED);
}

static mr_status begin_function(void *context) {
    (void)context;
    return mr_device_drain(device);
}

static mr_status run_function(void *context, mr_explore_value *out) {
    (*(void (**)(mr_explore_value *))context)(out);
    return mr_device_drain(device);
}

static size_t races_of(void *context, const mr_explore_race **out_races) {
    *out_races = &free_race;
    return *(void (**)(mr_explore_value *))context == give_back;
}

/* `complete`: the schedules are all that CUDA permits. */
static bool has(void (*function)(mr_explore_value *), bool free_waits, uint64_t classes,
                size_t outcomes, bool complete) {
    mr_explore_result result;
    mr_explore_options options = {.overtaking = -1, .full = true};
    open_machine(NULL, NULL);
    set("free_waits", free_waits);
    for (int k = 0; k < 3; k++) lane_stream[k] = free_stream();
    blocking = blocking_stream();
    mr_explore_subject subject = {.context = &function,
                                  .machine = machine,
                                  .begin = begin_function,
                                  .run = run_function,
                                  .races = races_of};
    mr_status status = mr_explore(&subject, &options, &result);
    bool as_expected = !status && result.schedules == classes &&
                       result.outcomes.count == outcomes && result.complete == complete;
    mr_error_destroy(status);
    mr_explore_result_free(&result);
    assert_int_equal(teardown(NULL), 0);
    return as_expected;
}

/* The stream gets the memory, and writes before or after the read; or other memory. A free that waits leaves one order
 * of two. */
static bool explorer_differs(void) {
    return !has(reuse, false, 3, 2, true) || !has(give_back, true, 1, 1, false) ||
           !has(give_back, false, 2, 2, true);
}

/* The memory is got once the read is over, or other memory. */
static bool explorer_differs_of_guards(void) {
    return !has(reuse_behind_user, false, 2, 1, true) ||
           !has(reuse_behind_owner, false, 2, 1, true);
}

static bool guarded_differs(guard by, int expected, bool is_hazard, bool of_checker) {
    mr_hazard *hazard;
    open_machine(NULL, NULL);
    for (int k = 0; k < 3; k++) lane_stream[k] = free_stream();
    OK(mr_hazard_create(machine, NULL, &hazard));
    if (of_checker) OK(mr_hazard_set_mode(hazard, MR_HAZARD_COLLECT));
    int value = guarded(by);
    bool found = mr_hazard_get_totals(hazard, true).hazards != 0;
    mr_hazard_destroy(hazard);
    assert_int_equal(teardown(NULL), 0);
    return of_checker ? found != is_hazard : value != expected;
}

static bool device_differs(void) {
    return guarded_differs(NAMED, 7, false, false) || guarded_differs(UNNAMED, 100, true, false) ||
           guarded_differs(CLOSED, 7, false, false) ||
           guarded_differs(CLOSED_AT_ONCE, 100, true, false);
}
static bool checker_differs(void) {
    return guarded_differs(NAMED, 7, false, true) || guarded_differs(UNNAMED, 100, true, true) ||
           guarded_differs(CLOSED, 7, false, true) ||
           guarded_differs(CLOSED_AT_ONCE, 100, true, true);
}

static bool answers_differ(void) {
    return !has(ask_behind_blocking, false, 2, 2, true) ||
           !has(ask_behind_nonblocking, false, 1, 1, true) || !has(ask_another, false, 1, 1, true);
}

/* ---- the tests */

static void they_know_the_order(void **unused) {
    (void)unused;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        program *p = &programs[seed];
        make_program(seed + 1, p);
        run_program(p);
        if (queue_differs(p)) fail_msg("program %d: the queue", (int)seed);
        if (trace_differs(p)) fail_msg("program %d: the trace", (int)seed);
    }
    assert_false(explorer_differs());
    assert_false(answers_differ());
    assert_false(explorer_differs_of_guards());
    assert_false(device_differs());
    assert_false(checker_differs());
}

static bool queue_notices(void) {
    for (uint64_t seed = 1; seed <= PROGRAMS; seed++) {
        static program p;
        make_program(seed, &p);
        run_program(&p);
        mr_trace_release(p.trace);
        if (queue_differs(&p)) return true;
    }
    return false;
}

/* The programs ran with all rows as they are: the trace takes from the virtual GPU who held whom up. */
static bool trace_notices(void) {
    for (int i = 0; i < PROGRAMS; i++)
        if (trace_differs(&programs[i])) return true;
    return false;
}

/* The other rows are those of test_order_readers.c and test_order_explorer.c. */
static void rows_of_memory_count(void **unused) {
    (void)unused;
    assert_int_equal(order_row_unnoticed(MR_ORDER_REUSE, MR_ALLOCATOR, NULL, queue_notices), 0);
    assert_int_equal(order_row_unnoticed(MR_ORDER_REUSE, MR_ALLOCATOR, NULL, trace_notices), 0);
    assert_int_equal(order_row_unnoticed(MR_ORDER_GIVE_BACK, MR_ALLOCATOR, NULL, trace_notices), 0);
    assert_int_equal(order_row_unnoticed(MR_ORDER_GIVE_BACK, MR_ALLOCATOR, NULL, explorer_differs),
                     0);
    assert_int_equal(order_row_unnoticed(MR_ORDER_TO_FREED, MR_ALLOCATOR, NULL, explorer_differs),
                     0);
    for (int i = 0; i < PROGRAMS; i++) mr_trace_release(programs[i].trace);
}

static void guards_of_memory_count(void **unused) {
    (void)unused;
    static const mr_order_id rows[] = {MR_ORDER_USERS, MR_ORDER_OWNER};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(order_row_unnoticed(rows[i], MR_ALLOCATOR, NULL, device_differs), 0);
        assert_int_equal(order_row_unnoticed(rows[i], MR_GUARANTEED, NULL, checker_differs), 0);
        assert_int_equal(
            order_row_unnoticed(rows[i], MR_ALLOCATOR, NULL, explorer_differs_of_guards), 0);
    }
}

static void what_a_query_waits_for_counts(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_TO_GATHERED, "what is gathered is the union of streams", ONLY_KEPT},
        {MR_ORDER_ROWS, NULL, 0}};
    static const mr_order_id rows[] = {MR_ORDER_SYNC_BLOCKING, MR_ORDER_TO_GATHERED};
    for (int i = 0; i < 2; i++)
        assert_int_equal(order_row_unnoticed(rows[i], MR_ALLOCATOR, inherent, answers_differ), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_know_the_order), cmocka_unit_test(rows_of_memory_count),
        cmocka_unit_test(guards_of_memory_count), cmocka_unit_test(what_a_query_waits_for_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
