/* Failures of the CUDA backend: the named operation, the consequences, the recovery; and waits that could
 * go on for ever: interrupts, and host functions in front of calls that block. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include <sys/wait.h>

static void lose_at(int kernel) {
    fake->lose_at = kernel;
    fake->lose_with = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void a_failure_names_the_only_operation_that_it_can_be(void **state) {
    (void)state;
    mr_stream *s = stream_on(device, true, "work"), *other = free_stream();
    launch_at(other, 1);
    launch_at(s, 2);
    OK(mr_stream_synchronize(&caller, s));
    OK(mr_stream_synchronize(&caller, other));
    lose_at(1);
    launch_at(s, 3);
    caller.where = (mr_site){"script.lua", 4};
    mr_status status = mr_stream_synchronize(&caller, s);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_ILLEGAL_ADDRESS);
    assert_string_equal(status->op, "spin");
    assert_string_equal(status->stream, "work");
    assert_int_equal(status->where.line, 3);
    mr_error_destroy(status);
    mr_stream_release(s);
    mr_stream_release(other);
}

static int64_t no_items(const mr_command *command) {
    (void)command;
    return 0;
}

static void a_row_that_is_not_in_the_table_is_refused(void **state) {
    (void)state;
    static const mr_op own = {
        .name = "own", .family = &mr_families[MR_FAMILY_FILL], .items = no_items};
    mr_stream *s = free_stream();
    mr_command *command;
    OK(mr_command_create(&caller, MR_COMMAND_OP, s, "own", 0, &command));
    command->u.op.row = &own;
    FAILS(MR_CODE_NOT_SUPPORTED, "own: there is no kernel", mr_command_submit(command));
    launch_at(s, 1);
    OK(mr_stream_synchronize(&caller, s));
    mr_stream_release(s);
}

static const char *const no_such_child = "CUDA does not work in such a child";

/* 0: each of the calls was refused with the reason, and the machine can be closed. */
static int use_after_the_fork(mr_stream *s, mr_event *e) {
    bool done;
    mr_machine_options options = {0};
    mr_machine *other;
    mr_status refused[] = {mr_spin(&caller, s, 1000),
                           mr_stream_synchronize(&caller, s),
                           mr_event_record(&caller, e, s),
                           mr_event_query(&caller, e, &done),
                           mr_device_synchronize(&caller, device),
                           mr_cuda_probe(),
                           mr_machine_open(&mr_cuda_backend, &options, &other)};
    int failed = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (!refused[i] || !strstr(refused[i]->message, no_such_child)) {
            fprintf(stderr, "call %d: %s\n", (int)i, refused[i] ? refused[i]->message : "went on");
            failed = 1;
        }
        mr_error_destroy(refused[i]);
    }
    mr_event_release(e);
    mr_stream_release(s);
    mr_machine_close(machine);
    return failed;
}

static void a_child_of_a_fork_is_told_that_it_has_no_gpu(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_event *e;
    mr_event_options options = {0};
    OK(mr_event_create(&caller, &options, &e));
    launch_at(s, 1);
    OK(mr_event_record(&caller, e, s));
    OK(mr_stream_synchronize(&caller, s));
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(use_after_the_fork(s, e));
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    launch_at(s, 2); /* the parent goes on */
    OK(mr_stream_synchronize(&caller, s));
    mr_event_release(e);
    mr_stream_release(s);
}

static void several_candidates_are_counted_and_their_first_line_told(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    fake->hold = true;
    lose_at(2);
    for (int line = 5; line < 8; line++) launch_at(s, line);
    fake->hold = false;
    FAILS(MR_CODE_ILLEGAL_ADDRESS,
          "3 operations were pending (`spin`), the first of them from script.lua:5",
          mr_stream_synchronize(&caller, s));
    mr_stream_release(s);
}

static void launch_blocking_names_the_line(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    machine->launch_blocking = true;
    launch_at(s, 1);
    lose_at(1);
    caller.where = (mr_site){"script.lua", 2};
    mr_status status = mr_spin(&caller, s, 1000);
    assert_non_null(status);
    assert_int_equal(status->where.line, 2);
    mr_error_destroy(status);
    mr_stream_release(s);
}

static void lose_device(mr_stream *s) {
    lose_at(1);
    launch(s);
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "outside the memory of all tensors",
          mr_stream_synchronize(&caller, s));
}

static void every_call_says_so_until_a_reset(void **state) {
    (void)state;
    bool done;
    int64_t size = 10;
    mr_tensor *other;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *kept = tensor(MR_MEMORY_PINNED, NULL, 10);
    values(kept)[3] = 42;
    lose_device(s);
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "", mr_spin(&caller, s, 1000));
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "", mr_stream_query(&caller, s, &done));
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "",
          mr_tensor_create(&caller, MR_MEMORY_DEVICE, s, MR_I32, 1, &size, &other));
    OK(mr_machine_reset(&caller));
    FAILS(MR_CODE_INVALID_HANDLE, "before mr.reset()", mr_spin(&caller, s, 1000));
    assert_int_equal(values(kept)[3], 42);
    drop(t);
    mr_stream_release(s);
    t = tensor(MR_MEMORY_DEVICE, device->legacy, 10);
    copy(device->legacy, t, kept);
    OK(mr_stream_synchronize(&caller, device->legacy));
    assert_int_equal(values(t)[3], 42);
    drop(t);
    drop(kept);
}

static void a_reset_of_a_healthy_machine_forgets_what_is_pending(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_event *e = new_event(false);
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *pinned = tensor(MR_MEMORY_PINNED, NULL, 10);
    fake->kernel_ticks = 20;
    launch(s);
    copy(s, t, pinned);
    OK(mr_event_record(&caller, e, s));
    OK(mr_machine_reset(&caller));
    assert_int_equal(fake->blocks, 0);
    assert_int_equal(fake->contexts, 1);
    OK(mr_device_synchronize(&caller, device)); /* of the new streams only */
    mr_event_release(e);
    drop(t);
    drop(pinned);
    mr_stream_release(s);
    assert_int_equal(machine->host_memory.allocations, 0);
}

static void a_device_that_stays_lost_is_said_to_be(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    fake->lost_for_good = true;
    mr_tensor *kept = tensor(MR_MEMORY_PINNED, NULL, 10);
    values(kept)[3] = 42;
    lose_device(s);
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "start the process anew", mr_machine_reset(&caller));
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "outside the memory of all tensors",
          mr_stream_synchronize(&caller, device->legacy));
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "start the process anew", mr_machine_reset(&caller));
    assert_int_equal(values(kept)[3], 42);
    drop(kept);
    mr_stream_release(s);
    fake->lost_for_good = false;
}

/* ---- host functions */

typedef struct {
    int called, dropped;
} counter;

static mr_status count_call(void *context) {
    ((counter *)context)->called++;
    return MR_OK;
}
static void count_drop(void *context) {
    ((counter *)context)->dropped++;
}

static void host_functions_run_in_order_at_a_wait(void **state) {
    (void)state;
    counter c = {0, 0};
    mr_stream *s = free_stream();
    for (int i = 0; i < 10; i++) {
        OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
        launch(s);
    }
    assert_int_equal(c.called, 0);
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(c.called, 10);
    assert_int_equal(c.dropped, 10);
    assert_int_equal(fake->kernels_run, 10);
    mr_stream_release(s);
}

static void a_full_launch_queue_does_not_lock_out_a_host_function(void **state) {
    (void)state;
    counter c = {0, 0};
    mr_stream *s = free_stream();
    mr_event *e = new_event(false);
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    for (int i = 0; i < 125; i++) {
        launch(s);
        OK(mr_event_record(&caller, e, s));
    }
    mr_event_release(e);
    assert_int_equal(c.called, 0);
    for (int i = 0; i < 50; i++) launch(s);
    assert_int_equal(c.called, 1);
    OK(mr_stream_synchronize(&caller, s));
    mr_stream_release(s);
}

static void a_copy_that_blocks_runs_the_host_function_in_front_of_it(void **state) {
    (void)state;
    counter c = {0, 0};
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    copy(s, page, t);
    assert_int_equal(c.called, 1);
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    copy(s, t, page);
    assert_int_equal(c.called, 2);
    OK(mr_stream_host_function(&caller, device->legacy, count_call, count_drop, &c));
    OK(mr_memcpy(&caller, page, t, NULL, true));
    assert_int_equal(c.called, 3);
    drop(t);
    drop(page);
    mr_stream_release(s);
}

static void host_functions_of_a_lost_device_are_dropped_uncalled(void **state) {
    (void)state;
    counter c = {0, 0};
    mr_stream *s = free_stream();
    fake->kernel_ticks = 3;
    lose_at(1);
    launch(s);
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    FAILS(MR_CODE_ILLEGAL_ADDRESS, "", mr_stream_synchronize(&caller, s));
    assert_int_equal(c.called, 0);
    assert_int_equal(c.dropped, 1);
    mr_stream_release(s);
}

static void the_end_does_not_wait_for_host_functions(void **state) {
    (void)state;
    static counter c;
    c = (counter){0, 0};
    mr_stream *s = free_stream();
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    launch(s);
    mr_stream_release(s);
    OK(mr_machine_reset(&caller));
    assert_int_equal(c.called, 0);
    assert_int_equal(c.dropped, 2);
    OK(mr_stream_host_function(&caller, device->legacy, count_call, count_drop, &c));
}

static void a_host_function_of_a_closed_stream_runs(void **state) {
    (void)state;
    counter c = {0, 0};
    mr_stream *s = free_stream();
    OK(mr_stream_host_function(&caller, s, count_call, count_drop, &c));
    OK(mr_stream_close(&caller, s));
    mr_stream_release(s);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(c.called, 1);
}

/* ---- interrupts */

static int questions;
static bool at_the_tenth(void *context) {
    (void)context;
    return ++questions == 10;
}

static void an_interrupt_ends_a_wait_and_nothing_else(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    machine->hooks.interrupted = at_the_tenth;
    fake->hold = true;
    launch(s);
    questions = 0;
    FAILS(MR_CODE_INTERRUPTED, "interrupted", mr_stream_synchronize(&caller, s));
    questions = 0;
    FAILS(MR_CODE_INTERRUPTED, "interrupted", mr_device_synchronize(&caller, device));
    questions = 0;
    FAILS(MR_CODE_INTERRUPTED, "interrupted", mr_memcpy(&caller, page, t, s, false));
    assert_int_equal(fake->copies_run, 0);
    fake->hold = false;
    questions = 100;
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(fake->copies_run, 1);
    assert_int_equal(fake->blocking_calls, 0);
    drop(t);
    drop(page);
    mr_stream_release(s);
}

static void a_fault_on_demand_is_the_virtual_gpus(void **state) {
    (void)state;
    FAILS(MR_CODE_NOT_SUPPORTED, "--device virtual",
          mr_stream_fault(&caller, device->legacy, MR_CODE_ILLEGAL_ADDRESS));
}

/* The copy is behind a kernel that outlasts ten questions. Nothing is interrupted afterwards. */
static void copy_interrupted(mr_tensor *to, mr_tensor *from, mr_stream *stream, bool synchronous) {
    machine->hooks.interrupted = at_the_tenth;
    questions = 0;
    FAILS(MR_CODE_INTERRUPTED, "interrupted", mr_memcpy(&caller, to, from, stream, synchronous));
    machine->hooks.interrupted = NULL;
}

/* The copy still comes, into memory that nobody else has. */
static void an_interrupted_copy_writes_to_nobody(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    for (int i = 0; i < 10; i++) values(t)[i] = 1, values(page)[i] = 2;
    fake->kernel_ticks = 1000;
    launch(s);
    copy_interrupted(page, t, s, false);
    assert_int_equal(fake->copies_run, 0);
    mr_tensor *same_size = tensor(MR_MEMORY_PINNED, NULL, (64 << 10) / 4);
    values(same_size)[0] = 3;
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(fake->copies_run, 1);
    assert_int_equal(values(same_size)[0], 3);
    assert_int_equal(values(page)[0], 2);
    OK(mr_memcpy(&caller, page, t, s, false));
    assert_int_equal(values(page)[0], 1);
    drop(same_size);
    drop(t);
    drop(page);
    mr_stream_release(s);
}

/* The event is older than the copy: that it has been reached says nothing of the memory. */
static void an_interrupted_copy_leaves_its_stream_busy(void **state) {
    (void)state;
    mr_stream *s = stream_on(device, false, NULL), *legacy = device->legacy;
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, legacy, 64), *pin = tensor(MR_MEMORY_PINNED, NULL, 64);
    mr_event *e = new_event(false);
    values(t)[0] = 1;
    OK(mr_event_record(&caller, e, legacy));
    fake->kernel_ticks = 3000;
    launch(s);
    copy_interrupted(pin, t, legacy, true);
    drop(pin);
    OK(mr_event_synchronize(&caller, e));
    mr_tensor *other = tensor(MR_MEMORY_PINNED, NULL, 64);
    values(other)[0] = 2;
    OK(mr_stream_synchronize(&caller, legacy));
    assert_int_equal(fake->copies_run, 1);
    assert_int_equal(values(other)[0], 2);
    drop(other);
    drop(t);
    mr_event_release(e);
    mr_stream_release(s);
}

static void interrupted_copies_lose_no_memory(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    for (int i = 0; i < 100; i++) {
        fake->kernel_ticks = 1000;
        launch(s);
        copy_interrupted(page, t, s, false);
        OK(mr_stream_synchronize(&caller, s));
    }
    assert_int_equal(fake->registered, own_registered);
    drop(t);
    drop(page);
    mr_stream_release(s);
}

/* Pinning pages would wait for the host functions of all streams. */
static void a_copy_waits_for_no_other_streams_host_function(void **state) {
    (void)state;
    counter c = {0};
    mr_stream *s = free_stream(), *other = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 10), *page = tensor(MR_MEMORY_PAGEABLE, NULL, 10);
    values(t)[0] = 1;
    fake->kernel_ticks = 3000;
    launch(other);
    OK(mr_stream_host_function(&caller, other, count_call, count_drop, &c));
    OK(mr_memcpy(&caller, page, t, s, false));
    assert_int_equal(values(page)[0], 1);
    assert_int_equal(c.called, 0);
    OK(mr_stream_synchronize(&caller, other));
    assert_int_equal(c.called, 1);
    drop(t);
    drop(page);
    mr_stream_release(other);
    mr_stream_release(s);
}

CUDA_TEST_MAIN(
    TEST(a_failure_names_the_only_operation_that_it_can_be),
    TEST(a_row_that_is_not_in_the_table_is_refused),
    TEST(several_candidates_are_counted_and_their_first_line_told),
    TEST(a_child_of_a_fork_is_told_that_it_has_no_gpu), TEST(launch_blocking_names_the_line),
    TEST(every_call_says_so_until_a_reset),
    TEST(a_reset_of_a_healthy_machine_forgets_what_is_pending),
    TEST(a_device_that_stays_lost_is_said_to_be), TEST(host_functions_run_in_order_at_a_wait),
    TEST(a_full_launch_queue_does_not_lock_out_a_host_function),
    TEST(a_copy_that_blocks_runs_the_host_function_in_front_of_it),
    TEST(host_functions_of_a_lost_device_are_dropped_uncalled),
    TEST(the_end_does_not_wait_for_host_functions), TEST(a_host_function_of_a_closed_stream_runs),
    TEST(an_interrupt_ends_a_wait_and_nothing_else), TEST(an_interrupted_copy_writes_to_nobody),
    TEST(an_interrupted_copy_leaves_its_stream_busy), TEST(interrupted_copies_lose_no_memory),
    TEST(a_copy_waits_for_no_other_streams_host_function),
    TEST(a_fault_on_demand_is_the_virtual_gpus))

#else
CUDA_TEST_MAIN()
#endif
