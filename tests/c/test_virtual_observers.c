/* The three moments at which an observer sees a command: may, did, ran. */
#include "model/observer.h"
#include "virtual_fixture.h"

enum { MOST = 512 };

typedef struct {
    mr_observer observer;
    mr_command_id refuse; /* refused while `refusing` */
    bool refusing;
    int count, ran_count;
    mr_command_id did[MOST];
    bool waited[MOST];
    uint64_t seq[MOST];
    struct {
        uint64_t seq;
        mr_run run;
    } ran[MOST];
} listener;

static mr_status may(mr_observer *observer, const mr_command *command) {
    listener *l = (listener *)observer;
    if (!l->refusing || command->kind != l->refuse) return MR_OK;
    return mr_fail(MR_CODE_HAZARD, "refused");
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    listener *l = (listener *)observer;
    assert_true(l->count < MOST);
    l->did[l->count] = command->kind;
    l->waited[l->count] = host_waited;
    l->seq[l->count++] = command->seq;
}

static void ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    listener *l = (listener *)observer;
    assert_true(l->ran_count < MOST);
    l->ran[l->ran_count].seq = command->seq;
    l->ran[l->ran_count++].run = *run;
}

static listener *listen(void) {
    static listener l;
    l = (listener){.observer = {.name = "listener", .may = may, .did = did, .ran = ran}};
    OK(mr_observer_add(machine, &l.observer));
    return &l;
}

static int told(const listener *l, mr_command_id kind) {
    int count = 0;
    for (int i = 0; i < l->count; i++) count += l->did[i] == kind;
    return count;
}

static void see_nothing(void *context, const mr_pending *pending) {
    (void)context, (void)pending;
}

static bool always(void *context) {
    (void)context;
    return true;
}

static void what_is_refused_leaves_no_trace(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8);
    fill(a, t, 1);
    OK(mr_stream_synchronize(&caller, a));
    listener *l = listen();
    l->refusing = true;
    mr_command_id kinds[] = {MR_COMMAND_OP, MR_COMMAND_RECORD, MR_COMMAND_STREAM_SYNC,
                             MR_COMMAND_HOST_ACCESS, MR_COMMAND_STREAM_CLOSE};
    mr_event *event = new_event();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        l->refuse = kinds[i];
        uint64_t last = a->last_seq;
        switch (kinds[i]) {
        case MR_COMMAND_OP: FAILS(MR_CODE_HAZARD, mr_spin(&caller, a, 1000)); break;
        case MR_COMMAND_RECORD: FAILS(MR_CODE_HAZARD, mr_event_record(&caller, event, a)); break;
        case MR_COMMAND_STREAM_SYNC:
            FAILS(MR_CODE_HAZARD, mr_stream_synchronize(&caller, a));
            break;
        case MR_COMMAND_HOST_ACCESS:
            FAILS(MR_CODE_HAZARD,
                  mr_host_access(&caller, "read", tensor_of(MR_MEMORY_PINNED, NULL, 4), MR_READ));
            break;
        default: FAILS(MR_CODE_HAZARD, mr_stream_close(&caller, a)); break;
        }
        assert_int_equal(l->count, 0);
        assert_int_equal(a->last_seq, last);
    }
    assert_int_equal(event->record_seq, 0);
    assert_false(a->closed);
    l->refusing = false;
    assert_true(stream_done(a)); /* nothing was enqueued */
    mr_observer_remove(machine, &l->observer);
}

static void a_query_is_told_only_when_it_says_yes(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(a);
    listener *l = listen();
    assert_false(stream_done(a));
    assert_false(event_done(e));
    assert_int_equal(l->count, 0);
    OK(mr_stream_synchronize(&caller, a));
    assert_true(stream_done(a));
    assert_true(event_done(e));
    assert_int_equal(told(l, MR_COMMAND_STREAM_QUERY), 1);
    assert_int_equal(told(l, MR_COMMAND_EVENT_QUERY), 1);
    mr_observer_remove(machine, &l->observer);
}

static void an_interrupted_wait_is_not_told(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8), *host = tensor_of(MR_MEMORY_PAGEABLE, NULL, 8);
    OK(mr_spin(&caller, a, ns(10)));
    mr_event *e = record(a);
    listener *l = listen();
    machine->hooks.interrupted = always;
    FAILS(MR_CODE_INTERRUPTED, mr_stream_synchronize(&caller, a));
    FAILS(MR_CODE_INTERRUPTED, mr_event_synchronize(&caller, e));
    FAILS(MR_CODE_INTERRUPTED, mr_device_synchronize(&caller, device));
    FAILS(MR_CODE_INTERRUPTED, mr_memcpy(&caller, host, t, a, true));
    assert_int_equal(l->count, 0);
    machine->hooks.interrupted = NULL;
    OK(mr_stream_synchronize(&caller, a));
    OK(mr_event_synchronize(&caller, e));
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(l->count, 3);
    mr_observer_remove(machine, &l->observer);
}

static void a_submit_that_fails_is_not_told(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8);
    OK(mr_stream_fault(&caller, a, MR_CODE_LAUNCH_FAILURE));
    listener *l = listen();
    machine->launch_blocking = true;
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_spin(&caller, a, 1000)); /* enqueued; the wait for it failed */
    assert_int_equal(told(l, MR_COMMAND_OP), 1);
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_memset(&caller, t, 1, a, false));
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_stream_synchronize(&caller, a));
    assert_int_equal(l->count, 1);
    mr_observer_remove(machine, &l->observer);
}

/* Each command of the stream is told once as done, its parts in order, none before its predecessor's end. */
static void runs_tell_when_and_where(void **state) {
    (void)state;
    static const char *const choosers[] = {"timed", "adversarial", "random:7", "manual"};
    for (size_t c = 0; c < sizeof choosers / sizeof *choosers; c++) {
        choose(choosers[c]);
        mr_stream *a = free_stream();
        mr_tensor *t = tensor(a, 1000), *pinned = tensor_of(MR_MEMORY_PINNED, NULL, 1000);
        OK(mr_stream_synchronize(&caller, a)); /* the allocation is done */
        listener *l = listen();
        fill(a, t, 3);
        occupy(a, 5, 300); /* more blocks than SMs: in waves */
        copy(a, pinned, t);
        record(a);
        OK(mr_stream_synchronize(&caller, a));
        uint64_t end = 0;
        int done = 0;
        for (int i = 0; i < l->ran_count; i++) {
            const mr_run *run = &l->ran[i].run;
            assert_true(run->begin <= run->end && run->ready <= run->begin);
            assert_true(run->part < run->parts);
            if (i && l->ran[i].seq != l->ran[i - 1].seq) assert_true(run->begin >= end);
            if (run->end > end) end = run->end;
            done += run->last;
        }
        assert_int_equal(done, 4);
        assert_int_equal(told(l, MR_COMMAND_OP), 2);
        assert_int_equal(l->ran[0].run.engine, MR_ENGINE_SM);
        assert_int_equal(l->ran[l->ran_count - 2].run.engine, MR_ENGINE_COPY_OUT);
        assert_int_equal(l->ran[l->ran_count - 1].run.engine, MR_ENGINE_NONE);
        mr_observer_remove(machine, &l->observer);
    }
}

static int failures[2]; /* queries that said no, errors */

static void failed(mr_observer *observer, const mr_command *command, const mr_error *status) {
    (void)observer, (void)command;
    failures[status != NULL]++;
}

/* All that a backend is asked for: with the trait ACCOUNT, for those who want to hear it. */
static void everything_is_told_to_who_asks_for_it(void **state) {
    (void)state;
    static const mr_command_id accounts[] = {
        MR_COMMAND_EVENT_CREATE, MR_COMMAND_EVENT_CLOSE, MR_COMMAND_HOST_ALLOC,
        MR_COMMAND_HOST_FREE,    MR_COMMAND_HOST_WORK,   MR_COMMAND_HOST_READ,
        MR_COMMAND_ELAPSED,      MR_COMMAND_FREE_WAIT,   MR_COMMAND_RECORD_STREAM,
        MR_COMMAND_DRAIN,        MR_COMMAND_TRIM,        MR_COMMAND_MEMORY_LOOK,
        MR_COMMAND_HOST_TIME,    MR_COMMAND_DEVICE_TIME, MR_COMMAND_LAUNCH_BLOCKING,
        MR_COMMAND_CHOOSER,      MR_COMMAND_SETTING,     MR_COMMAND_STEP,
        MR_COMMAND_LOOK,         MR_COMMAND_STREAM_DROP, MR_COMMAND_MODEL};
    listener *usual = listen();
    static listener l;
    l = (listener){.observer = {.name = "all", .everything = true, .did = did, .failed = failed}};
    failures[0] = failures[1] = 0;
    OK(mr_observer_add(machine, &l.observer));

    mr_stream *s = free_stream();
    mr_tensor *t = tensor(s, 4), *host = tensor_of(MR_MEMORY_PINNED, NULL, 4), *read;
    mr_event *e = record(s);
    assert_false(event_done(e));
    double ms;
    FAILS(MR_CODE_NOT_READY, mr_event_elapsed(e, e, &ms));
    OK(mr_device_drain(device));
    OK(mr_event_elapsed(e, e, &ms));
    fill(NULL, host, 7);
    OK(mr_to_host(&caller, t, &read));
    mr_storage_drop_handle(read->storage);
    mr_tensor_release(read);
    OK(mr_storage_record_stream(t->storage, free_stream()));
    OK(mr_storage_free(&caller, t->storage, MR_FREE_SYNC, NULL));
    OK(mr_device_trim(device));
    mr_device_memory(device);
    mr_machine_time(machine);
    mr_machine_device_time(machine);
    mr_machine_set_launch_blocking(machine, false);
    OK(mr_machine_set_chooser(machine, "manual"));
    OK(mr_machine_set_setting(machine, "launch_queue_depth", 100));
    char text[200];
    bool moved;
    OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
    mr_machine_pending(machine, see_nothing, NULL);
    FAILS(MR_CODE_INVALID_ARGUMENT, mr_machine_set_model(machine, "no such model"));
    drop(t);
    drop(host);
    OK(mr_machine_set_model(machine, "a100"));
    mr_event_close(e);
    mr_stream_release(mr_vec_pop(&made_streams));

    for (size_t i = 0; i < sizeof accounts / sizeof *accounts; i++) {
        if (!told(&l, accounts[i])) fail_msg("%s is not told", mr_command_kinds[accounts[i]].name);
        assert_int_equal(told(usual, accounts[i]), 0);
    }
    assert_int_equal(failures[0], 1);
    assert_int_equal(failures[1], 2);
    mr_observer_remove(machine, &l.observer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_refused_leaves_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_query_is_told_only_when_it_says_yes, setup, teardown),
        cmocka_unit_test_setup_teardown(an_interrupted_wait_is_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(a_submit_that_fails_is_not_told, setup, teardown),
        cmocka_unit_test_setup_teardown(runs_tell_when_and_where, setup, teardown),
        cmocka_unit_test_setup_teardown(everything_is_told_to_who_asks_for_it, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
