/* The times of commands on a GPU, as observers get them, with CUPTI and without. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include "model/backend.h"
#include "model/observer.h"
#include "ops/ids.h"
#include "ops/table.h"

/* ---- an observer that keeps what it was told */

typedef struct {
    mr_run run;
    mr_command_id kind;
    uint64_t seq, bytes;
    char name[32];
    int line;
    bool has_stream;
} told_run;

static told_run told[8192];
static size_t told_count;
static uint64_t last_seq; /* that was submitted */

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)host_waited;
    if (mr_command_is(command, MR_TRAIT_WORK)) last_seq = command->seq;
}

static void ran(mr_observer *observer, const mr_command *command, const mr_run *run) {
    (void)observer;
    assert_true(told_count < sizeof told / sizeof *told);
    told_run *t = &told[told_count++];
    *t = (told_run){.run = *run,
                    .kind = command->kind,
                    .seq = command->seq,
                    .line = command->where.line,
                    .has_stream = command->stream != NULL};
    if (command->kind == MR_COMMAND_COPY) t->bytes = command->u.copy.bytes;
    snprintf(t->name, sizeof t->name, "%s", command->name);
}

static mr_observer observer = {.name = "test", .did = did, .ran = ran};

static const char *start(void) {
    const char *how = NULL;
    told_count = 0;
    OK(machine->backend->runs_start(machine, &how));
    return how;
}
static void flush(void) {
    machine->backend->runs_flush(machine);
}
static void stop(void) {
    machine->backend->runs_stop(machine);
}

static int by_cupti(void **state) {
    if (!fake) find_driver();
    setenv("MILLRACE_LIBCUPTI", getenv("MILLRACE_LIBCUDA"), 1);
    setenv("NVTX_INJECTION64_PATH", getenv("MILLRACE_LIBCUDA"), 1);
    setenv("MILLRACE_NVTX", "0", 0);
    setup(state);
    OK(mr_observer_add(machine, &observer));
    return 0;
}
static int by_events(void **state) {
    by_cupti(state);
    fake->cupti_refuses = true;
    return 0;
}
static int with_ranges(void **state) {
    setenv("MILLRACE_NVTX", "", 1); /* as the tool's path says */
    by_cupti(state);
    setenv("MILLRACE_NVTX", "0", 1);
    fake->ranges = 0;
    return 0;
}
static int leave(void **state) {
    mr_observer_remove(machine, &observer);
    int result = teardown(state);
    assert_int_equal(fake->subscribers, 0);
    return result;
}

/* Orderly, on the host's axis, and one run a command. */
static void check_all(uint64_t began) {
    uint64_t now = mr_machine_time(machine), slack = 1000000; /* what events are uncertain by */
    for (size_t i = 0; i < told_count; i++) {
        const mr_run *r = &told[i].run;
        assert_true(r->begin <= r->end && r->ready == r->begin);
        assert_true(r->begin + slack >= began && r->end <= now + slack);
        assert_true(r->last && r->part == 0 && r->parts == 1);
        assert_false(told[i].has_stream);
        for (size_t k = 0; k < i; k++) assert_true(told[k].seq != told[i].seq);
    }
}

/* ---- both ways */

static void work_is_told_of_with_its_engine_and_line(void **state) {
    (void)state;
    start();
    uint64_t began = mr_machine_time(machine);
    mr_stream *s = free_stream();
    mr_tensor *there = tensor(MR_MEMORY_DEVICE, s, 100), *other = tensor(MR_MEMORY_DEVICE, s, 100),
              *here = tensor(MR_MEMORY_PINNED, NULL, 100);
    launch_at(s, 17);
    copy(s, there, here);
    copy(s, other, there);
    copy(s, here, other);
    OK(mr_memcpy(&caller, there, here, s, true));
    OK(mr_stream_synchronize(&caller, s));
    flush();
    static const mr_engine engines[] = {MR_ENGINE_SM, MR_ENGINE_COPY_IN, MR_ENGINE_COPY_DEVICE,
                                        MR_ENGINE_COPY_OUT, MR_ENGINE_COPY_IN};
    assert_int_equal(told_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(told[i].run.engine, engines[i]);
        assert_int_equal(told[i].kind, i ? MR_COMMAND_COPY : MR_COMMAND_OP);
        if (i) assert_int_equal(told[i].bytes, 400);
        if (i) assert_true(told[i].run.begin >= told[i - 1].run.begin);
    }
    assert_string_equal(told[0].name, "spin");
    assert_int_equal(told[0].line, 17);
    assert_int_equal(told[4].seq, last_seq);
    check_all(began);
    stop();
    drop(there);
    drop(other);
    drop(here);
    mr_stream_release(s);
}

static void pending_work_is_told_of_when_it_is_over(void **state) {
    (void)state;
    start();
    mr_stream *a = free_stream(), *b = free_stream();
    launch(a);
    flush();
    assert_int_equal(told_count, 1);
    fake->hold = true;
    launch(a);
    uint64_t second = last_seq;
    launch(b);
    flush();
    assert_int_equal(told_count, 1);
    fake->hold = false;
    flush();
    assert_int_equal(told_count, 3);
    assert_int_equal(told[1].seq, second);
    flush();
    assert_int_equal(told_count, 3);
    stop();
    mr_stream_release(a);
    mr_stream_release(b);
}

static void only_what_was_submitted_in_between_is_told_of(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    fake->kernel_ticks = 2000;
    launch(s); /* pending for a while */
    fake->kernel_ticks = 0;
    start();
    launch(s);
    uint64_t inside = last_seq;
    start();
    stop(); /* one of two */
    launch(s);
    OK(mr_stream_synchronize(&caller, s));
    stop();
    launch(s);
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(told_count, 2);
    assert_int_equal(told[0].seq, inside);
    flush(); /* nobody has started it: nothing happens */
    stop();
    assert_int_equal(told_count, 2);
    mr_stream_release(s);
}

static void work_that_outlasts_the_end_is_never_told_of(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    start();
    fake->kernel_ticks = 2000;
    launch(s);
    fake->kernel_ticks = 0;
    stop();
    start();
    OK(mr_stream_synchronize(&caller, s));
    stop();
    assert_int_equal(told_count, 0);
    mr_stream_release(s);
}

static void a_launch_that_fails_is_not_told_of(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    start();
    fake->refuse_launch = CUDA_ERROR_INVALID_VALUE;
    mr_status status = mr_spin(&caller, s, 1000);
    assert_non_null(status);
    mr_error_destroy(status);
    fake->refuse_launch = CUDA_SUCCESS;
    launch(s);
    stop();
    assert_int_equal(told_count, 1);
    assert_int_equal(told[0].seq, last_seq);
    mr_stream_release(s);
}

/* The first sum of a stream sets its counters to zero. */
static void an_operation_of_several_calls_is_one_run(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *x, *sum;
    bool is_new;
    int64_t size = 4 << 20;
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, s, MR_F32, 1, &size, &x));
    mr_call call = {.in = {{.tensor = x}}, .in_count = 1, .stream = s};
    start();
    OK(mr_call_run(&caller, &mr_ops[MR_OP_sum], &call, &sum, &is_new));
    OK(mr_stream_synchronize(&caller, s));
    stop();
    assert_int_equal(told_count, 1);
    assert_string_equal(told[0].name, "sum");
    drop(sum);
    drop(x);
    mr_stream_release(s);
}

static void devices_are_told_apart_by_their_own_clocks(void **state) {
    (void)state;
    uint64_t began = mr_machine_time(machine);
    start();
    mr_stream *other = stream_on(machine->devices[1], true, NULL), *s = free_stream();
    for (int i = 0; i < 3; i++) {
        launch(s);
        launch(other);
    }
    OK(mr_stream_synchronize(&caller, s));
    OK(mr_stream_synchronize(&caller, other));
    stop();
    assert_int_equal(told_count, 6);
    check_all(began);
    mr_stream_release(s);
    mr_stream_release(other);
}

static void a_reset_forgets_what_is_pending_and_goes_on(void **state) {
    (void)state;
    start();
    fake->kernel_ticks = 200;
    launch(device->legacy);
    fake->kernel_ticks = 0;
    OK(mr_machine_reset(&caller)); /* waits for it */
    size_t before = told_count;
    assert_true(before <= 1);
    launch(device->legacy);
    OK(mr_stream_synchronize(&caller, device->legacy));
    flush();
    assert_int_equal(told_count, before + 1);
    assert_int_equal(told[before].seq, last_seq);
    stop();
}

static void a_machine_may_be_closed_in_between(void **state) {
    (void)state;
    start();
    start();
    fake->hold = true;
    launch(device->legacy);
}

static mr_status stop_inside(void *context) {
    (void)context;
    stop();
    return MR_OK;
}

static void a_host_function_may_end_it_in_a_wait_of_a_copy(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *there = tensor(MR_MEMORY_DEVICE, s, 100),
              *here = tensor(MR_MEMORY_PAGEABLE, NULL, 100);
    start();
    OK(mr_stream_host_function(&caller, s, stop_inside, NULL, NULL));
    OK(mr_memcpy(&caller, here, there, s, true));
    launch(s);
    OK(mr_stream_synchronize(&caller, s));
    drop(there);
    drop(here);
    mr_stream_release(s);
}

/* ---- one of them */

static void cupti_is_used_if_it_can_be(void **state) {
    (void)state;
    assert_non_null(strstr(start(), "CUPTI"));
    assert_int_equal(fake->subscribers, 1);
    stop();
    assert_int_equal(fake->subscribers, 0);
}

static void calls_without_a_record_do_not_hide_a_command(void **state) {
    (void)state;
    start();
    fake->cupti_idle_calls = true;
    fake->cupti_skips = 3;
    for (int i = 0; i < 4; i++) launch(device->legacy);
    OK(mr_stream_synchronize(&caller, device->legacy));
    flush();
    assert_int_equal(told_count, 0);
    flush();
    assert_int_equal(told_count, 4);
    stop();
}

static void a_lost_record_is_the_only_one_missing(void **state) {
    (void)state;
    start();
    fake->cupti_lose_at = 2;
    for (int i = 0; i < 5; i++) launch(device->legacy);
    OK(mr_stream_synchronize(&caller, device->legacy));
    stop();
    assert_int_equal(told_count, 4);
    assert_int_equal(told[3].seq, last_seq);
    assert_int_equal(told[0].seq, last_seq - 4);
}

static void a_second_machine_uses_events(void **state) {
    (void)state;
    mr_machine *other;
    const char *how = NULL;
    start();
    OK(mr_machine_open(&mr_cuda_backend, NULL, &other));
    OK(mr_observer_add(other, &observer));
    OK(other->backend->runs_start(other, &how));
    assert_non_null(strstr(how, "events"));
    mr_caller at = {.machine = other};
    OK(mr_spin(&at, other->devices[0]->legacy, 1000));
    OK(mr_stream_synchronize(&at, other->devices[0]->legacy));
    flush();
    assert_int_equal(told_count, 0); /* this one's */
    other->backend->runs_flush(other);
    assert_int_equal(told_count, 1);
    mr_observer_remove(other, &observer);
    mr_machine_close(other);
    stop();
}

static void events_are_used_otherwise(void **state) {
    (void)state;
    int events = fake->events;
    assert_non_null(strstr(start(), "events"));
    for (int i = 0; i < 10; i++) launch(device->legacy);
    OK(mr_stream_synchronize(&caller, device->legacy));
    stop();
    assert_int_equal(told_count, 10);
    assert_int_equal(fake->events, events);
}

static void memory_is_bounded_without_a_flush(void **state) {
    (void)state;
    int events = fake->events;
    start();
    for (int i = 0; i < 5000; i++) launch(device->legacy);
    assert_true(told_count >= 4096);
    assert_true(fake->events - events < 2000);
    stop();
    assert_int_equal(told_count, 5000);
    for (size_t i = 1; i < told_count; i++) assert_true(told[i].seq > told[i - 1].seq);
}

static void a_tool_is_told_what_operations_are_called(void **state) {
    (void)state;
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, device->legacy, 100),
              *here = tensor(MR_MEMORY_PAGEABLE, NULL, 100);
    launch_at(device->legacy, 17);
    assert_string_equal(fake->range, "spin script.lua:17");
    assert_int_equal(fake->ranges, 1);
    OK(mr_memcpy(&caller, here, t, device->legacy, true));
    assert_string_equal(fake->range, "memcpy");
    assert_int_equal(fake->ranges, 2);
    assert_int_equal(fake->open_ranges, 0);
    OK(mr_stream_synchronize(&caller, device->legacy));
    assert_int_equal(fake->ranges, 2);
    drop(t);
    drop(here);
}

static void nothing_is_asked_of_the_driver_when_it_is_off(void **state) {
    (void)state;
    start();
    stop();
    int events = fake->events, queries = fake->queries;
    for (int i = 0; i < 10; i++) launch(device->legacy);
    assert_int_equal(fake->events, events);
    assert_int_equal(fake->queries, queries);
    assert_int_equal(fake->ranges, 0);
    assert_int_equal(fake->subscribers, 0);
}

#define WITH(how, name) cmocka_unit_test_setup_teardown(name, how, leave)
#define BOTH(name)      WITH(by_cupti, name), WITH(by_events, name)

#endif

CUDA_TEST_MAIN(
    BOTH(work_is_told_of_with_its_engine_and_line), BOTH(pending_work_is_told_of_when_it_is_over),
    BOTH(only_what_was_submitted_in_between_is_told_of),
    BOTH(work_that_outlasts_the_end_is_never_told_of), BOTH(a_launch_that_fails_is_not_told_of),
    BOTH(an_operation_of_several_calls_is_one_run),
    BOTH(devices_are_told_apart_by_their_own_clocks),
    BOTH(a_reset_forgets_what_is_pending_and_goes_on), BOTH(a_machine_may_be_closed_in_between),
    BOTH(a_host_function_may_end_it_in_a_wait_of_a_copy),
    BOTH(nothing_is_asked_of_the_driver_when_it_is_off),
    WITH(with_ranges, a_tool_is_told_what_operations_are_called),
    WITH(by_cupti, cupti_is_used_if_it_can_be),
    WITH(by_cupti, calls_without_a_record_do_not_hide_a_command),
    WITH(by_cupti, a_lost_record_is_the_only_one_missing),
    WITH(by_cupti, a_second_machine_uses_events), WITH(by_events, events_are_used_otherwise),
    WITH(by_events, memory_is_bounded_without_a_flush))
