/* Recorded programs: what a replay shows when it is not the same, and what a program does not keep alive. Random
 * programs are in test_program_random.c. */
#include "program/program.h"
#include "virtual_fixture.h"

static const mr_player_options as_recorded = {.backend = &mr_virtual_backend};

/* Two streams write one tensor, and nothing orders them; the host reads what is left. */
static mr_program *record_race(void) {
    mr_recorder *recorder;
    mr_program *program;
    mr_tensor *read;
    OK(mr_program_record(machine, 0, &recorder));
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(a, 1);
    OK(mr_stream_synchronize(&caller, a));
    mix(a, "first", 1, t, NULL);
    mix(b, "second", 0.1, t, NULL);
    OK(mr_device_drain(device));
    OK(mr_to_host(&caller, t, &read));
    mr_storage_drop_handle(read->storage);
    mr_tensor_release(read);
    OK(mr_recorder_finish(recorder, &program));
    return program;
}

static void the_same_chooser_gives_the_same(void **state) {
    (void)state;
    mr_difference difference;
    mr_program *program = record_race();
    assert_null(mr_program_inexact(program));
    OK(mr_program_replay(program, &as_recorded, NULL, &difference));
    assert_string_equal(difference.text, "");
    assert_int_equal(difference.kind, MR_DIFFERS_NOTHING);
    mr_program_release(program);
}

static void another_schedule_shows_as_another_value(void **state) {
    (void)state;
    int others = 0;
    mr_program *program = record_race();
    for (int seed = 0; seed < 20; seed++) {
        char chooser[32];
        mr_difference difference;
        snprintf(chooser, sizeof chooser, "random:%d", seed);
        mr_player_options options = {.backend = &mr_virtual_backend, .chooser = chooser};
        mr_player *player;
        OK(mr_player_open(program, &options, &player));
        difference = (mr_difference){0};
        OK(mr_player_run(player, SIZE_MAX, &difference));
        assert_int_equal(mr_player_position(player), mr_program_count(program));
        others += difference.kind == MR_DIFFERS_VALUE;
        mr_player_close(player);
    }
    assert_in_range(others, 1, 19); /* the recorded order is among them, too */
    mr_program_release(program);
}

static void a_program_outlives_its_machine(void **state) {
    (void)state;
    mr_difference difference;
    mr_program *program = record_race();
    teardown(NULL);
    OK(mr_program_replay(program, &as_recorded, NULL, &difference));
    assert_int_equal(difference.kind, MR_DIFFERS_NOTHING);
    mr_program_release(program);
    open_machine(NULL, NULL);
}

static void a_program_that_is_too_long_says_so(void **state) {
    (void)state;
    mr_recorder *recorder;
    mr_program *program;
    OK(mr_program_record(machine, 2, &recorder));
    mr_event *e = record(free_stream());
    OK(mr_event_synchronize(&caller, e));
    OK(mr_recorder_finish(recorder, &program));
    assert_int_equal(mr_program_count(program), 2);
    assert_non_null(mr_program_inexact(program));
    mr_program_release(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_chooser_gives_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(another_schedule_shows_as_another_value, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_outlives_its_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_too_long_says_so, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
