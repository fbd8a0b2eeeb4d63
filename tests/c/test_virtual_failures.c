/* Failures of the device, host functions, resets, and whatever else ends badly: R46, R48-R52. */
#include "virtual_fixture.h"

static mr_status no_error(void *context) {
    (*(int *)context)++;
    return MR_OK;
}
static void no_drop(void *context) {
    (void)context;
}

static void a_fault_shows_at_the_next_synchronisation(void **state) { /* R49 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    caller.where = (mr_site){"script.lua", 12};
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_stream_fault(&caller, a, MR_CODE_ILLEGAL_ADDRESS));
    caller.where = (mr_site){"script.lua", 13};
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_spin(&caller, b, ns(5)));
    OK(mr_stream_synchronize(&caller, b)); /* not yet */
    mr_status status = mr_stream_synchronize(&caller, a);
    assert_non_null(status);
    assert_int_equal(status->code, MR_CODE_ILLEGAL_ADDRESS);
    assert_string_equal(status->op, "fault");
    assert_int_equal(status->where.line, 12);
    assert_true(strlen(status->stream) > 0);
    mr_error_destroy(status);
}

static void a_failed_device_stays_failed_until_a_reset(void **state) { /* R50 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8), *host = tensor_of(MR_MEMORY_PAGEABLE, NULL, 8);
    bool done;
    int64_t size = 8;
    values(host)[3] = 5;
    fill(a, t, 1);
    OK(mr_stream_synchronize(&caller, a));
    OK(mr_stream_fault(&caller, a, MR_CODE_LAUNCH_FAILURE));
    fill(a, t, 2);
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_device_synchronize(&caller, device));
    assert_int_equal(values(t)[0], 1); /* what was pending is not carried out */
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_device_synchronize(&caller, device));
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_stream_query(&caller, a, &done));
    FAILS(MR_CODE_LAUNCH_FAILURE, mr_spin(&caller, a, 1));
    mr_tensor *more;
    FAILS(MR_CODE_LAUNCH_FAILURE,
          mr_tensor_create(&caller, MR_MEMORY_DEVICE, a, MR_I32, 1, &size, &more));
    double before = host_ms();
    OK(mr_machine_reset(&caller));
    assert_true(host_ms() >= before);
    assert_int_equal(values(host)[3], 5);
    FAILS(MR_CODE_INVALID_HANDLE, mr_stream_synchronize(&caller, a));
    mr_stream *b = free_stream();
    mr_tensor *u = tensor(b, 8);
    assert_true(u->storage->address == 0x7f0000000000); /* all memory is free again */
    fill(b, u, 4);
    OK(mr_stream_synchronize(&caller, b));
    assert_int_equal(values(u)[0], 4);
}

static void a_reset_drops_whatever_is_pending(void **state) {
    (void)state;
    const char *const choosers[] = {"timed", "adversarial", "random:3", "manual"};
    for (int i = 0; i < 4; i++) {
        choose(choosers[i]);
        int called = 0;
        mr_stream *a = free_stream(), *b = blocking_stream();
        mr_tensor *t = tensor(a, 1 << 16), *page = tensor_of(MR_MEMORY_PAGEABLE, NULL, 1 << 16);
        mr_tensor *pin = tensor_of(MR_MEMORY_PINNED, NULL, 1 << 16);
        for (int k = 0; k < 200; k++) {
            mix(a, "work", 1, t, t);
            mr_event *e = record(a);
            OK(mr_stream_wait_event(&caller, b, e));
            OK(mr_stream_host_function(&caller, b, no_error, no_drop, &called));
            copy(b, t, page);
            OK(mr_storage_record_stream(t->storage, b));
            copy(a, pin, t);
            OK(mr_event_record(&caller, e, device->legacy));
            drop(tensor(a, 1000));
        }
        for (int k = 0; k < 5; k++) stream_done(b);
        OK(mr_stream_close(&caller, b));
        OK(mr_machine_reset(&caller));
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(machine->devices[0]->memory.live, 0);
        assert_int_equal(mr_device_memory(device).reserved, 0);
    }
}

/* ---- host functions */

static mr_tensor *watched;
static int32_t seen;
static double ran_at;
static mr_status look(void *context) {
    (void)context;
    seen = values(watched)[0];
    ran_at = host_ms();
    FAILS(MR_CODE_NOT_PERMITTED, mr_spin(&caller, device->legacy, 1));
    FAILS(MR_CODE_NOT_PERMITTED, mr_virtual_backend.simulator->set_chooser(machine, "manual"));
    return MR_OK;
}

static void a_host_function_runs_in_the_order_of_its_stream(void **state) { /* R46 */
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, 8);
    watched = t;
    fill(a, t, 1);
    OK(mr_stream_synchronize(&caller, a));
    double before = host_ms();
    mr_event *base = record(a);
    OK(mr_spin(&caller, a, ns(10)));
    fill(a, t, 2);
    OK(mr_stream_host_function(&caller, a, look, no_drop, NULL));
    fill(a, t, 3);
    span k2 = kernel(a, 5);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(seen, 2);
    assert_ms(ran_at - before, 10);
    assert_ran(base, k2, 15);
    assert_int_equal(values(t)[0], 3);
}

static void a_query_runs_host_functions_too(void **state) { /* R46 */
    (void)state;
    int called = 0;
    mr_stream *a = free_stream();
    OK(mr_stream_host_function(&caller, a, no_error, no_drop, &called));
    for (int i = 0; i < 300; i++) drop(tensor(a, 8)); /* the device catches up now and then */
    assert_int_equal(called, 0);
    for (int i = 0; i < 10 && !called; i++) stream_done(a);
    assert_int_equal(called, 1);
}

static void a_full_launch_queue_runs_host_functions(void **state) {
    (void)state;
    int called = 0;
    mr_stream *a = free_stream();
    set("launch_queue_depth", 4);
    for (int i = 0; i < 10; i++)
        OK(mr_stream_host_function(&caller, a, no_error, no_drop, &called));
    assert_int_equal(called, 6);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(called, 10);
}

static mr_status fails(void *context) {
    (void)context;
    return mr_fail(MR_CODE_HOST_FUNCTION, "it went wrong");
}

static void an_error_in_a_host_function_is_raised_at_the_wait(void **state) {
    (void)state;
    int called = 0;
    mr_stream *a = free_stream();
    OK(mr_stream_host_function(&caller, a, fails, no_drop, NULL));
    OK(mr_stream_host_function(&caller, a, no_error, no_drop, &called));
    FAILS(MR_CODE_HOST_FUNCTION, mr_stream_synchronize(&caller, a));
    assert_int_equal(called, 1);
    OK(mr_stream_synchronize(&caller, a));
}

static void no_host_function_runs_after_a_failure(void **state) { /* R46, R50 */
    (void)state;
    int called = 0;
    mr_stream *a = free_stream(), *b = free_stream();
    OK(mr_stream_fault(&caller, a, MR_CODE_ASSERT));
    OK(mr_stream_host_function(&caller, a, no_error, no_drop, &called));
    OK(mr_spin(&caller, b, ns(1)));
    OK(mr_stream_host_function(&caller, b, no_error, no_drop, &called));
    FAILS(MR_CODE_ASSERT, mr_device_synchronize(&caller, device));
    OK(mr_machine_reset(&caller));
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(called, 0);
}

/* ---- the rest */

static void launch_blocking_waits_for_each_launch(void **state) { /* R52 */
    (void)state;
    mr_stream *a = free_stream();
    machine->launch_blocking = true;
    double before = host_ms();
    OK(mr_spin(&caller, a, ns(10)));
    assert_ms(host_ms() - before, 10);
}

static void models_are_data(void **state) {
    (void)state;
    const struct {
        const char *name;
        int sms;
    } models[] = {{"h200", 132}, {"a100", 108}, {"rtx4090", 128}, {"t4", 40}, {"h100", 132}};
    const mr_simulator *simulator = mr_virtual_backend.simulator;
    for (int i = 0; i < 4; i++) {
        OK(simulator->set_model(machine, models[i].name));
        assert_string_equal(simulator->model(machine), models[i].name);
        assert_int_equal(device->properties.sm_count, models[i].sms);
        mr_stream *a = free_stream();
        mr_event *base = record(a);
        span k = wide_kernel(a, 20, 2 * (uint32_t)models[i].sms);
        OK(mr_device_synchronize(&caller, device));
        assert_ran(base, k, 20);
    }
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->set_model(machine, "voodoo2"));
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->set_model(machine, "/no/such.model"));
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->set_model(machine, "/dev/null"));
    tensor(device->legacy, 8);
    FAILS(MR_CODE_NOT_PERMITTED, simulator->set_model(machine, "t4"));
    assert_string_equal(simulator->model(machine), "t4");
}

static void settings_are_checked(void **state) {
    (void)state;
    const mr_simulator *simulator = mr_virtual_backend.simulator;
    size_t count;
    int64_t value;
    const mr_setting_info *infos = simulator->settings(&count);
    assert_true(count > 5);
    for (size_t i = 0; i < count; i++) {
        OK(simulator->get_setting(machine, infos[i].name, &value));
        OK(simulator->set_setting(machine, infos[i].name, value));
    }
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->set_setting(machine, "slices", 0));
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->set_setting(machine, "nonsense", 0));
    FAILS(MR_CODE_INVALID_ARGUMENT, simulator->get_setting(machine, "nonsense", &value));
}

static void wrong_options_leave_nothing_behind(void **state) {
    (void)state;
    const mr_machine_options wrong[] = {
        {.device = "virtual:0"}, {.device = "virtual:65"}, {.device = "virtual:x"},
        {.device = "virtual:"},  {.device = "cuda"},       {.model = "voodoo2"},
        {.chooser = "fate"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mr_machine *none;
        FAILS(MR_CODE_INVALID_ARGUMENT, mr_machine_open(&mr_virtual_backend, &wrong[i], &none));
        assert_null(none);
    }
}

static size_t lost_commands;

static void note_lost(const char *kind, size_t count) {
    assert_string_equal(kind, "commands");
    lost_commands += count;
}

static void what_is_not_released_is_told_at_the_end(void **state) {
    (void)state;
    mr_machine *own;
    mr_command *first, *second;
    OK(mr_machine_open(&mr_virtual_backend, NULL, &own));
    own->hooks.left_over = note_lost;
    mr_caller its_caller = {.machine = own};
    OK(mr_command_create(&its_caller, MR_COMMAND_RECORD, NULL, "first", 0, &first));
    OK(mr_command_create(&its_caller, MR_COMMAND_RECORD, NULL, "second", 0, &second));
    mr_command_release(first);
    mr_machine_close(own);
    assert_int_equal(lost_commands, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(a_fault_shows_at_the_next_synchronisation),
        T(a_failed_device_stays_failed_until_a_reset),
        T(a_reset_drops_whatever_is_pending),
        T(a_host_function_runs_in_the_order_of_its_stream),
        T(a_query_runs_host_functions_too),
        T(a_full_launch_queue_runs_host_functions),
        T(an_error_in_a_host_function_is_raised_at_the_wait),
        T(no_host_function_runs_after_a_failure),
        T(launch_blocking_waits_for_each_launch),
        T(models_are_data),
        T(settings_are_checked),
        T(wrong_options_leave_nothing_behind),
        T(what_is_not_released_is_told_at_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
