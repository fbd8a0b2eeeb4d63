/* Bodies that fail. The error names the operation, the stream and the line. The code decides whether the device is
 * lost. The state of a command that fails or is dropped is freed, and its last step is not run.
 *
 * The row is no row of the table: `put` writes item i to place i of its state and, in its last step, the state to
 * its output. */
#include "virtual_fixture.h"

#include <stdlib.h>

enum { LENGTH = 1 << 16, MIDDLE = LENGTH / 2 + 77 };

/* How `put` behaves in a test. */
static struct {
    int64_t fails_from; /* all items from here on fail */
    mr_code code;
    int64_t state_bytes;
} behaviour;

static int64_t put_items(const mr_command *command) {
    return command->operands[0].tensor->numel;
}

static int64_t put_state_bytes(const mr_command *command) {
    return behaviour.state_bytes ? behaviour.state_bytes
                                 : put_items(command) * (int64_t)sizeof(int32_t);
}

static void put_begin(const mr_command *command, void *state) {
    assert_int_equal((uintptr_t)state % MR_STATE_ALIGNMENT, 0);
    memset(state, 0, (size_t)put_state_bytes(command));
}

static mr_status put_run(const mr_command *command, void *state, int64_t first, int64_t end) {
    (void)command;
    int32_t *to = state;
    for (int64_t i = first; i < end; i++) {
        if (i >= behaviour.fails_from)
            return mr_fail(behaviour.code, "item %lld is wrong", (long long)i);
        to[i] = (int32_t)i;
    }
    return MR_OK;
}

static void put_finish(const mr_command *command, void *state) {
    mr_tensor *out = command->operands[0].tensor;
    memcpy(mr_tensor_data(out), state, (size_t)out->numel * sizeof(int32_t));
}

/* Enough work for several threads. */
static void put_cost(const mr_command *command, mr_cost *out_cost) {
    *out_cost =
        (mr_cost){.bytes = 1024.0 * (double)put_items(command), .blocks = 400, .threads = 256};
}

static const mr_op put = {.name = "put",
                          .name_in_place = "put_",
                          .family = &mr_families[MR_FAMILY_FILL],
                          .dtypes = MR_TAKES_ALL,
                          .items = put_items,
                          .run = put_run,
                          .state_bytes = put_state_bytes,
                          .begin = put_begin,
                          .finish = put_finish,
                          .cost = put_cost};

static int start(void **state) {
    behaviour.fails_from = INT64_MAX;
    behaviour.code = MR_CODE_UNKNOWN;
    behaviour.state_bytes = 0;
    setenv("MILLRACE_THREADS", "4", true);
    return setup(state);
}

/* ---- on the virtual GPU */

static mr_status submit_put(mr_stream *stream, mr_tensor *out, int line) {
    mr_command *command;
    caller.where = (mr_site){"script.lua", line};
    OK(mr_command_create(&caller, MR_COMMAND_OP, stream, "put", 1, &command));
    mr_command_set_operand(command, 0, out, MR_WRITE);
    command->u.op.row = &put;
    mr_status status = mr_command_submit(command);
    caller.where = (mr_site){"script.lua", line + 1};
    return status;
}

static mr_status set_bytes(mr_stream *stream, mr_tensor *t, uint8_t byte) {
    return mr_memset(&caller, t, byte, stream, false);
}

static const char *const choosers[] = {"timed",    "adversarial", "manual",
                                       "random:1", "random:2",    "random:3"};
enum { CHOOSERS = sizeof choosers / sizeof *choosers };

static void assert_blames(mr_status status, mr_code code, const char *op, mr_stream *stream,
                          int line) {
    char text[96];
    assert_non_null(status);
    assert_string_equal(mr_code_text(status->code), mr_code_text(code));
    assert_string_equal(status->op, op);
    assert_string_equal(status->stream,
                        stream ? mr_stream_describe(stream, text, sizeof text) : "");
    assert_int_equal(status->where.line, line);
    mr_error_destroy(status);
}

static void without_a_failure_the_last_step_writes_the_result(void **state) {
    (void)state;
    for (int c = 0; c < CHOOSERS; c++) {
        choose(choosers[c]);
        mr_stream *a = free_stream();
        mr_tensor *t = tensor(a, LENGTH);
        OK(submit_put(a, t, 12));
        OK(mr_stream_synchronize(&caller, a));
        for (int i = 0; i < LENGTH; i++) assert_int_equal(values(t)[i], i);
    }
}

static void a_sticky_failure_loses_the_device(void **state) { /* R49, R50 */
    (void)state;
    for (int c = 0; c < CHOOSERS; c++) {
        choose(choosers[c]);
        mr_stream *a = free_stream();
        mr_tensor *t = tensor(a, LENGTH);
        fill(a, t, -1);
        OK(mr_stream_synchronize(&caller, a));
        behaviour.fails_from = MIDDLE;
        behaviour.code = MR_CODE_MISALIGNED_ADDRESS;
        /* Under some choosers a submission is where the device gets to it. */
        mr_status status = submit_put(a, t, 12);
        status = mr_error_first(status, set_bytes(a, t, 5));
        status = mr_error_first(status, mr_stream_synchronize(&caller, a));
        assert_blames(status, MR_CODE_MISALIGNED_ADDRESS, "put", a, 12);
        assert_int_equal(values(t)[0], -1);
        assert_int_equal(values(t)[LENGTH - 1], -1);
        FAILS(MR_CODE_MISALIGNED_ADDRESS, mr_spin(&caller, a, 1));
        FAILS(MR_CODE_MISALIGNED_ADDRESS, mr_device_synchronize(&caller, device));
        OK(mr_machine_reset(&caller));
        OK(mr_device_synchronize(&caller, device));
    }
}

static void any_other_failure_ends_one_command_only(void **state) {
    (void)state;
    for (int c = 0; c < CHOOSERS; c++) {
        choose(choosers[c]);
        mr_stream *a = free_stream(), *b = free_stream();
        mr_tensor *t = tensor(a, LENGTH), *u = tensor(a, LENGTH), *v = tensor(b, LENGTH);
        fill(a, t, -1);
        OK(mr_stream_synchronize(&caller, a));
        behaviour.fails_from = MIDDLE;
        behaviour.code = MR_CODE_LAUNCH_OUT_OF_RESOURCES;
        mr_status status = submit_put(a, t, 12);
        status = mr_error_first(status, set_bytes(a, u, 5));
        status = mr_error_first(status, set_bytes(b, v, 6));
        status = mr_error_first(status, mr_device_synchronize(&caller, device));
        assert_blames(status, MR_CODE_LAUNCH_OUT_OF_RESOURCES, "put", a, 12);
        OK(mr_device_synchronize(&caller, device)); /* R51 */
        assert_int_equal(values(t)[0], -1);
        assert_int_equal(values(u)[LENGTH - 1], 0x05050505);
        assert_int_equal(values(v)[LENGTH - 1], 0x06060606);
        behaviour.fails_from = INT64_MAX;
        OK(submit_put(a, t, 30));
        OK(mr_stream_synchronize(&caller, a));
        assert_int_equal(values(t)[LENGTH - 1], LENGTH - 1);
    }
}

static void of_two_failures_the_first_is_raised(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, LENGTH);
    behaviour.fails_from = MIDDLE;
    behaviour.code = MR_CODE_NOT_SUPPORTED;
    OK(submit_put(a, t, 12));
    OK(submit_put(a, t, 20));
    assert_blames(mr_stream_synchronize(&caller, a), MR_CODE_NOT_SUPPORTED, "put", a, 12);
    OK(mr_stream_synchronize(&caller, a));
}

/* As an error in a host function. */
static void a_submission_that_lets_the_device_move_raises_it_too(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(a, LENGTH);
    mr_status status = MR_OK;
    behaviour.fails_from = MIDDLE;
    behaviour.code = MR_CODE_NOT_SUPPORTED;
    OK(submit_put(a, t, 12));
    for (int i = 0; i < 100000 && !status; i++) status = mr_spin(&caller, b, 1);
    assert_blames(status, MR_CODE_NOT_SUPPORTED, "put", a, 12);
    OK(mr_stream_synchronize(&caller, a));
}

static void what_had_begun_may_fail_when_the_chooser_changes(void **state) {
    (void)state;
    char text[200];
    bool moved;
    for (int sticky = 0; sticky < 2; sticky++) {
        choose("manual");
        mr_stream *a = free_stream();
        mr_tensor *t = tensor(a, LENGTH);
        OK(mr_stream_synchronize(&caller, a));
        behaviour.fails_from = LENGTH - 1;
        behaviour.code = sticky ? MR_CODE_ASSERT : MR_CODE_NOT_SUPPORTED;
        OK(submit_put(a, t, 12));
        OK(mr_machine_step(machine, a, &moved, text, sizeof text));
        assert_true(moved);
        mr_status status = mr_virtual_backend.simulator->set_chooser(machine, "adversarial");
        if (!sticky) {
            assert_null(status);
            status = mr_stream_synchronize(&caller, a);
        }
        assert_blames(status, behaviour.code, "put", a, 12);
        if (!sticky) OK(mr_stream_synchronize(&caller, a));
    }
    OK(mr_machine_reset(&caller));
}

/* Its state is freed, as the sanitizer sees, and nothing of it is written. */
static void a_command_may_be_dropped_half_way(void **state) {
    (void)state;
    char text[200];
    bool moved;
    choose("manual");
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, LENGTH);
    OK(submit_put(a, t, 12));
    for (int i = 0; i < 3; i++) OK(mr_machine_step(machine, a, &moved, text, sizeof text));
    assert_non_null(strstr(text, "put"));
    OK(mr_machine_reset(&caller));
}

static void a_fault_that_is_not_sticky_is_raised_once(void **state) {
    (void)state;
    for (int c = 0; c < CHOOSERS; c++) {
        choose(choosers[c]);
        mr_stream *a = free_stream();
        caller.where = (mr_site){"script.lua", 7};
        mr_status status = mr_stream_fault(&caller, a, MR_CODE_LAUNCH_OUT_OF_RESOURCES);
        status = mr_error_first(status, mr_spin(&caller, a, 1));
        status = mr_error_first(status, mr_stream_synchronize(&caller, a));
        assert_blames(status, MR_CODE_LAUNCH_OUT_OF_RESOURCES, "fault", a, 7);
        OK(mr_stream_synchronize(&caller, a));
    }
}

/* ---- on the host */

static mr_status put_on_host(mr_tensor *out) {
    mr_call call = {.out = out, .in_place = true};
    mr_tensor *same;
    bool fresh;
    mr_status status = mr_call_run(&caller, &put, &call, &same, &fresh);
    if (!status) mr_tensor_release(same);
    return status;
}

static void on_the_host_the_call_itself_fails(void **state) {
    (void)state;
    mr_tensor *t = tensor_of(MR_MEMORY_PAGEABLE, NULL, LENGTH);
    const mr_code codes[] = {MR_CODE_ASSERT, MR_CODE_NOT_SUPPORTED};
    values(t)[0] = -1;
    caller.where = (mr_site){"script.lua", 31};
    for (int i = 0; i < 2; i++) {
        behaviour.fails_from = MIDDLE;
        behaviour.code = codes[i];
        assert_blames(put_on_host(t), codes[i], "put_", NULL, 31);
        assert_int_equal(values(t)[0], -1);
        behaviour.fails_from = INT64_MAX;
        OK(mr_device_synchronize(&caller, device)); /* no device has failed */
        OK(put_on_host(t));
        assert_int_equal(values(t)[LENGTH - 1], LENGTH - 1);
        values(t)[0] = -1;
    }
}

/* Each thread meets a failure of its own; the others are freed, as the sanitizer sees. */
static void of_many_threads_the_first_item_counts(void **state) {
    (void)state;
    mr_tensor *t = tensor_of(MR_MEMORY_PAGEABLE, NULL, LENGTH);
    for (int round = 0; round < 300; round++) {
        char text[64];
        behaviour.fails_from = (int64_t)round * 211;
        snprintf(text, sizeof text, "item %d is wrong", round * 211);
        mr_status status = put_on_host(t);
        assert_non_null(status);
        assert_string_equal(status->message, text);
        mr_error_destroy(status);
    }
}

static void a_state_for_which_there_is_no_memory(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8), *host = tensor_of(MR_MEMORY_PAGEABLE, NULL, 8);
    behaviour.state_bytes = INT64_MAX;
    mr_status status = put_on_host(host);
    assert_non_null(status);
    assert_non_null(strstr(status->message, "put_"));
    assert_non_null(strstr(status->message, "9223372036854775807 bytes"));
    assert_blames(status, MR_CODE_OUT_OF_MEMORY, "put_", NULL, 0);
    OK(submit_put(a, t, 12));
    assert_blames(mr_stream_synchronize(&caller, a), MR_CODE_OUT_OF_MEMORY, "put", a, 12);
    OK(mr_stream_synchronize(&caller, a));
}

/* It has begun, although it has no state: the next chooser must not begin it again. */
static void a_failed_command_is_not_run_by_the_next_chooser(void **state) {
    (void)state;
    char text[200];
    bool moved;
    choose("manual");
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, LENGTH);
    OK(mr_stream_synchronize(&caller, a));
    behaviour.state_bytes = INT64_MAX;
    OK(submit_put(a, t, 12));
    assert_blames(mr_machine_step(machine, a, &moved, text, sizeof text), MR_CODE_OUT_OF_MEMORY,
                  "put", a, 12);
    assert_non_null(strstr(text, "part 1 of"));
    choose("adversarial");
    OK(mr_stream_synchronize(&caller, a));
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, start, teardown)
        T(without_a_failure_the_last_step_writes_the_result),
        T(a_sticky_failure_loses_the_device),
        T(any_other_failure_ends_one_command_only),
        T(of_two_failures_the_first_is_raised),
        T(a_submission_that_lets_the_device_move_raises_it_too),
        T(what_had_begun_may_fail_when_the_chooser_changes),
        T(a_command_may_be_dropped_half_way),
        T(a_fault_that_is_not_sticky_is_raised_once),
        T(on_the_host_the_call_itself_fails),
        T(of_many_threads_the_first_item_counts),
        T(a_state_for_which_there_is_no_memory),
        T(a_failed_command_is_not_run_by_the_next_chooser),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
