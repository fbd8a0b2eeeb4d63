/* The history of steps. Any sequence of steps and of going back ends, byte for byte, in the state that the remaining
 * steps give by themselves. The host's own actions meanwhile stay, and the history ends where it has to. */
#include "model/history.h" /* before the fixture, whose `machine` its parameters would shadow */

#include "virtual_programs.h"

enum {
    HOST_MAKES = STREAMS + 1,
    HOST_DROPS_DEVICE,
    HOST_DROPS_HOST,
    HOST_CLOSES_EVENT,
    PASS,
    ACTIONS
};

/* ---- host functions */

static int functions_run;

static mr_status count_up(void *context) {
    mr_tensor *t = context;
    MR_TRY(mr_host_access(&caller, "count_up", t, MR_WRITE));
    for (int64_t i = 0; i < t->numel; i += 7)
        values(t)[i] = (int32_t)((uint32_t)values(t)[i] * 3 + 1);
    functions_run++;
    return MR_OK;
}

static void submit_program(void) {
    for (uint32_t n = 10 + chance(50); n; n--) {
        submit_something();
        if (chance(8) == 0)
            OK(mr_stream_host_function(&caller, streams[chance(STREAMS)], count_up, NULL,
                                       chance(2) ? pinned : pageable));
    }
}

/* ---- what the test does: a list of actions; going back removes the newest steps */

typedef struct {
    uint32_t what; /* below STREAMS: a step of that stream; STREAMS: of the chooser's */
    uint32_t argument;
} action;

static mr_tensor *made_by_host;

static bool is_undoable(uint32_t what) {
    return what <= STREAMS || what == PASS;
}

static bool take(action a) {
    char text[256];
    bool moved = false;
    int64_t size = 100;
    switch (a.what) {
    case HOST_MAKES: /* as t:peek() does */
        if (made_by_host) break;
        made_by_host = tensor_of(MR_MEMORY_PAGEABLE, NULL, size);
        if (strcmp(simulator()->chooser(machine), "manual") == 0) /* others let the device move */
            OK(mr_host_access(&caller, "peek", made_by_host, MR_WRITE));
        memset(values(made_by_host), (int)a.argument, 400);
        break;
    case HOST_DROPS_HOST:
        if (made_by_host) drop(made_by_host);
        made_by_host = NULL;
        break;
    case HOST_DROPS_DEVICE: { /* the collector */
        mr_tensor *t = tensors[a.argument % TENSORS];
        if (t) drop(t);
        tensors[a.argument % TENSORS] = NULL;
        break;
    }
    case HOST_CLOSES_EVENT: {
        mr_event *e = events[a.argument % EVENTS];
        if (!e->closed) OK(mr_event_close(e));
        break;
    }
    case PASS: OK(mr_machine_pass(machine, a.argument * 1000)); return true;
    default:
        OK(mr_machine_step(machine, a.what == STREAMS ? NULL : streams[a.what], &moved, text,
                           sizeof text));
        return moved;
    }
    return true;
}

typedef MR_VEC(action) actions;

static void remove_steps(actions *list, uint32_t count) {
    for (size_t i = list->count; i-- > 0 && count;) {
        if (!is_undoable(list->items[i].what)) continue;
        memmove(&list->items[i], &list->items[i + 1], (list->count - i - 1) * sizeof(action));
        list->count--;
        count--;
    }
}

static void begin(int round) {
    state_of_chance = (uint64_t)round + 77;
    OK(mr_machine_set_chooser(machine, choosers[round % CHOOSERS]));
    mr_history_limits limits = {.always = true, .steps = 100000, .bytes = (uint64_t)1 << 30};
    OK(mr_machine_set_history(machine, &limits));
    made_by_host = NULL;
    make_objects();
    submit_program();
}

/* Objects that the collector dropped are freed once the history has ended, and freeing takes time: with them, times are
 * not compared. */
static uint64_t final_picture(bool dropped) {
    uint64_t hash = dropped ? 0 : picture();
    for (int i = 0; i < STREAMS; i++) OK(mr_stream_synchronize(&caller, streams[i]));
    return dropped ? hash_values(hash) : hash_bytes(hash, &(uint64_t){picture()}, sizeof hash);
}

static int rounds(int all) {
    return getenv("MILLRACE_LONG") ? all : all / 4;
}

static void steps_that_are_left_decide(void **state) {
    for (int round = 0; round < rounds(120); round++) {
        actions list = {0};
        begin(round);
        uint32_t depth = 0;
        bool dropped = false; /* such memory is freed at the end of a history, else at once */
        for (int n = 0; n < 120; n++) {
            uint32_t undone;
            if (chance(4) == 0) {
                uint32_t count = chance(depth + 2);
                OK(mr_machine_back(machine, count, &undone));
                assert_int_equal(undone, count < depth ? count : depth);
                remove_steps(&list, undone);
                depth -= undone;
                continue;
            }
            action a = {chance(3) ? chance(STREAMS + 1) : chance(ACTIONS), chance(1000)};
            if (a.what == HOST_DROPS_DEVICE && round % 2) continue;
            if (!take(a)) continue;
            dropped |= a.what == HOST_DROPS_DEVICE;
            assert_true(mr_vec_push(&list, a));
            depth += is_undoable(a.what);
        }
        uint64_t ended = final_picture(dropped);
        teardown(state);
        setup(state);
        begin(round);
        mr_history_limits none = {0};
        if (!dropped) OK(mr_machine_set_history(machine, &none));
        for (size_t i = 0; i < list.count; i++)
            if (!take(list.items[i]))
                fail_msg("round %d: %zu of %zu, what %u", round, i, list.count, list.items[i].what);
        if (final_picture(dropped) != ended) fail_msg("round %d", round);
        mr_vec_free(&list);
        teardown(state);
        setup(state);
    }
}

/* Every state on the way back is the one of the way there. */
static void each_state_comes_back(void **state) {
    for (int round = 0; round < rounds(60); round++) {
        begin(round);
        uint64_t pictures[400];
        int depth = 0;
        char text[256];
        bool moved = true;
        while (depth < 399 && moved) {
            pictures[depth] = picture();
            OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
            depth += moved;
        }
        while (depth) {
            uint32_t undone, count = 1 + chance(5);
            OK(mr_machine_back(machine, count, &undone));
            depth -= (int)undone;
            assert_true(depth == 0 || undone == count);
            assert_true(picture() == pictures[depth]);
        }
        teardown(state);
        setup(state);
    }
}

/* ---- one by one */

static uint32_t kept_steps(void) {
    const char *why;
    return mr_history_count(machine, &why);
}

static const char *why(void) {
    const char *text;
    mr_history_count(machine, &text);
    return text;
}

static void some_pending_work(void) {
    OK(mr_machine_set_chooser(machine, "manual"));
    make_objects();
    for (int i = 0; i < 8; i++) fill(streams[1], tensors[i], 10 + i);
    fill(streams[2], tensors[0], 99);
}

static bool step_of(mr_stream *stream) {
    char text[256];
    bool moved;
    OK(mr_machine_step(machine, stream, &moved, text, sizeof text));
    return moved;
}

static uint32_t back(uint32_t count) {
    uint32_t undone;
    OK(mr_machine_back(machine, count, &undone));
    return undone;
}

#define ENDS(expression)                                                                           \
    do {                                                                                           \
        assert_true(step_of(streams[1]));                                                          \
        assert_true(kept_steps() > 0);                                                             \
        expression;                                                                                \
        assert_int_equal(kept_steps(), 0);                                                         \
        assert_int_equal(back(1), 0);                                                              \
    } while (0)

#define STAYS(expression)                                                                          \
    do {                                                                                           \
        assert_true(step_of(streams[1]));                                                          \
        uint32_t kept_ = kept_steps();                                                             \
        expression;                                                                                \
        assert_int_equal(kept_steps(), kept_);                                                     \
        assert_int_equal(back(1), 1);                                                              \
    } while (0)

static void a_call_of_the_host_ends_it(void **state) {
    (void)state;
    some_pending_work();
    mr_event *idle = record(streams[0]);
    assert_true(step_of(streams[0]) || true);
    caller.where = (mr_site){"race.lua", 7};
    ENDS(fill(streams[2], tensors[1], 5));
    assert_non_null(strstr(why(), "`fill`"));
    assert_non_null(strstr(why(), "race.lua:7"));
    ENDS(OK(mr_event_record(&caller, events[0], streams[2])));
    ENDS(free_stream());
    ENDS(OK(mr_host_access(&caller, "write", pinned, MR_WRITE)));
    ENDS(OK(mr_device_trim(device)));
    ENDS(OK(mr_machine_set_setting(machine, "launch_queue_depth", 77)));
    ENDS(assert_true(event_done(idle)));
    ENDS(OK(mr_stream_synchronize(&caller, streams[0])));
    fill(streams[1], tensors[1], 5);
    ENDS(OK(mr_machine_set_chooser(machine, "manual")));
}

static void what_is_the_hosts_own_does_not_end_it(void **state) {
    (void)state;
    some_pending_work();
    mr_tensor *own = NULL;
    int64_t size = 5000;
    STAYS(OK(mr_host_access(&caller, "read", pinned, MR_READ)));
    STAYS(OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_I32, 1, &size, &own)));
    assert_true(step_of(streams[1]));
    mr_tensor *late;
    OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_I32, 1, &size, &late));
    OK(mr_host_access(&caller, "peek", late, MR_WRITE));
    memset(values(late), 7, 20000);
    assert_true(step_of(streams[1]));
    assert_int_equal(back(2), 2);
    assert_int_equal(values(late)[4999], 0x07070707); /* it is not taken back */
    mr_tensor_release(late);
    mr_tensor_release(own);
    STAYS(drop(tensors[7]));
    STAYS(OK(mr_stream_close(&caller, streams[1])); streams[1] = streams[2]);
    STAYS(mr_event_release(made_events.items[--made_events.count]));
    OK(mr_stream_synchronize(&caller, streams[2]));
}

/* A stream that is closed with work in it, and comes back to work with the step. */
static void work_of_a_closed_stream_comes_back(void **state) {
    (void)state;
    some_pending_work();
    char text[256];
    bool moved = true;
    uint32_t steps = 0;
    OK(mr_stream_close(&caller, streams[1]));
    while (true) {
        OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
        if (!moved) break;
        steps++;
    }
    assert_int_equal(values(tensors[3])[0], 13);
    assert_int_equal(back(steps), steps);
    assert_int_not_equal(values(tensors[3])[0], 13);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(tensors[3])[0], 13);
}

static void a_lost_device_is_well_again(void **state) {
    (void)state;
    some_pending_work();
    OK(mr_stream_fault(&caller, streams[2], MR_CODE_ASSERT));
    char text[256];
    bool moved;
    while (step_of(streams[1])) {}
    mr_status status = MR_OK;
    while (!status) status = mr_machine_step(machine, streams[2], &moved, text, sizeof text);
    mr_error_destroy(status);
    FAILS(MR_CODE_ASSERT, mr_machine_step(machine, NULL, &moved, text, sizeof text));
    assert_int_equal(back(1), 1);
    FAILS(MR_CODE_ASSERT, mr_machine_step(machine, streams[2], &moved, text, sizeof text));
    assert_int_equal(back(1000) > 1, 1);
    assert_true(step_of(streams[1]));
}

static void a_host_function_runs_again(void **state) {
    (void)state;
    OK(mr_machine_set_chooser(machine, "manual"));
    make_objects();
    functions_run = 0;
    int32_t before = values(pinned)[0];
    OK(mr_stream_host_function(&caller, streams[1], count_up, NULL, pinned));
    for (int i = 1; i <= 3; i++) {
        assert_true(step_of(streams[1]));
        assert_int_equal(functions_run, i);
        assert_int_equal(values(pinned)[0], (int32_t)((uint32_t)before * 3 + 1));
        assert_int_equal(back(1), 1);
        assert_int_equal(values(pinned)[0], before);
    }
}

static mr_status go_back(void *context) {
    return mr_machine_back(machine, 1, context);
}

static void not_in_a_host_function(void **state) {
    (void)state;
    uint32_t undone;
    OK(mr_machine_set_chooser(machine, "manual"));
    make_objects();
    OK(mr_stream_host_function(&caller, streams[1], go_back, NULL, &undone));
    char text[256];
    bool moved;
    FAILS(MR_CODE_NOT_PERMITTED, mr_machine_step(machine, streams[1], &moved, text, sizeof text));
}

static void it_is_bounded(void **state) {
    (void)state;
    some_pending_work();
    mr_history_limits limits = {.steps = 5, .bytes = (uint64_t)1 << 30};
    OK(mr_machine_set_history(machine, &limits));
    uint64_t pictures[9];
    for (int i = 0; i < 8; i++) {
        pictures[i] = picture();
        assert_true(step_of(streams[1]));
        assert_true(kept_steps() <= 5);
    }
    uint32_t kept = kept_steps();
    assert_true(kept >= 4);
    assert_int_equal(back(1), 1);
    assert_true(picture() == pictures[7]);
    assert_int_equal(back(100), kept - 1);
    assert_true(picture() == pictures[8 - kept]);
    assert_non_null(strstr(why(), "steps"));
    limits = (mr_history_limits){.steps = 5, .bytes = 1};
    OK(mr_machine_set_history(machine, &limits));
    assert_true(step_of(streams[1]));
    assert_int_equal(back(1), 0);
    assert_non_null(strstr(why(), "bytes"));
    OK(mr_device_synchronize(&caller, device));
}

/* Forgetting the oldest leaves the others as they were, whatever host and device did in between. */
static void forgetting_leaves_the_rest(void **state) {
    for (int round = 0; round < rounds(60); round++) {
        begin(round);
        mr_history_limits limits = {
            .always = true, .steps = 3 + chance(20), .bytes = (uint64_t)200000 << chance(8)};
        OK(mr_machine_set_history(machine, &limits));
        uint64_t pictures[400];
        int depth = 0;
        char text[256];
        bool moved = true;
        for (int n = 0; n < 200 && moved; n++) {
            pictures[depth] = picture();
            OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
            depth += moved;
            if (chance(4)) continue;
            uint32_t undone = back(chance(4));
            depth -= (int)undone;
            assert_true(picture() == pictures[depth] || !undone);
        }
        uint32_t undone = back(1000);
        depth -= (int)undone;
        assert_true(!undone || picture() == pictures[depth]);
        teardown(state);
        setup(state);
    }
}

/* ---- observers */

typedef struct {
    mr_observer observer;
    uint64_t runs, told;
} counter;

static void count_did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)command, (void)host_waited;
}

static void count_ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    (void)command, (void)run;
    ((counter *)observer)->runs++;
}

static void count_back(mr_observer *observer, uint64_t runs_told) {
    counter *c = (counter *)observer;
    assert_true(runs_told <= c->runs);
    c->runs = runs_told;
    c->told++;
}

static void observers_are_told(void **state) {
    (void)state;
    counter c = {
        {.name = "counter", .did = count_did, .ran = count_ran, .went_back = count_back}, 0, 0};
    some_pending_work();
    OK(mr_observer_add(machine, &c.observer));
    while (step_of(streams[1])) {}
    uint64_t all = c.runs;
    uint32_t undone = back(3);
    assert_int_equal(undone, 3);
    assert_int_equal(c.told, 1);
    assert_true(c.runs < all);
    while (step_of(streams[1])) {}
    assert_int_equal(c.runs, all);
    mr_observer_remove(machine, &c.observer);
}

/* ---- why a stream stands still */

typedef struct {
    const mr_stream *stream;
    mr_pending first;
    bool found;
} head;

static void find_head(void *context, const mr_pending *pending) {
    head *h = context;
    if (h->found || pending->command->stream != h->stream) return;
    h->first = *pending;
    h->found = true;
}

static mr_pending head_of(const mr_stream *stream) {
    head h = {.stream = stream};
    mr_machine_pending(machine, find_head, &h);
    assert_true(h.found);
    return h.first;
}

static void a_head_says_what_holds_it(void **state) {
    (void)state;
    OK(mr_machine_set_chooser(machine, "manual"));
    make_objects();
    fill(streams[1], tensors[0], 1);
    mr_event *e = record(streams[1]);
    OK(mr_stream_wait_event(&caller, streams[2], e));
    fill(streams[2], tensors[0], 2);
    mr_pending p = head_of(streams[2]);
    assert_int_equal(p.held_by, MR_CAUSE_EVENT);
    assert_int_equal(p.waits_for->seq, e->record_seq);
    assert_int_equal(head_of(streams[1]).held_by, MR_CAUSE_NONE);
    while (step_of(streams[1])) {}
    assert_int_equal(head_of(streams[2]).held_by, MR_CAUSE_NONE);
    OK(mr_device_synchronize(&caller, device));
    mr_stream *blocking = blocking_stream();
    fill(device->legacy, tensors[0], 1);
    fill(blocking, tensors[1], 2);
    p = head_of(blocking);
    assert_int_equal(p.held_by, MR_CAUSE_DEFAULT_STREAM);
    assert_ptr_equal(p.waits_for->stream, device->legacy);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_machine_set_chooser(machine, "timed"));
    occupy(streams[1], 5, (uint32_t)device->properties.sm_count);
    occupy(streams[2], 5, 1);
    OK(mr_machine_pass(machine, ns(1)));
    p = head_of(streams[2]);
    assert_int_equal(p.held_by, MR_CAUSE_MULTIPROCESSORS);
    assert_ptr_equal(p.waits_for->stream, streams[1]);
    OK(mr_device_synchronize(&caller, device));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(steps_that_are_left_decide),
        TEST(each_state_comes_back),
        TEST(a_call_of_the_host_ends_it),
        TEST(what_is_the_hosts_own_does_not_end_it),
        TEST(work_of_a_closed_stream_comes_back),
        TEST(a_lost_device_is_well_again),
        TEST(a_host_function_runs_again),
        TEST(not_in_a_host_function),
        TEST(it_is_bounded),
        TEST(forgetting_leaves_the_rest),
        TEST(observers_are_told),
        TEST(a_head_says_what_holds_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
