/* Recorded programs: the differences that a replay reports, and the objects that a program does not keep alive. Random
 * programs are in test_program_random.c. */
#include "ops/collective.h"
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

static void replay(const mr_program *program, mr_difference *out_difference) {
    mr_player *player;
    *out_difference = (mr_difference){0};
    OK(mr_player_open(program, &as_recorded, &player));
    OK(mr_player_run(player, SIZE_MAX, out_difference));
    assert_int_equal(mr_player_position(player), mr_program_count(program));
    mr_player_compare_end(player, out_difference);
    mr_player_close(player);
}

static void the_same_chooser_gives_the_same(void **state) {
    (void)state;
    mr_difference difference;
    mr_program *program = record_race();
    assert_null(mr_program_inexact(program));
    replay(program, &difference);
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
    replay(program, &difference);
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

/* The only item of this kind. */
static mr_program_item item_of(const mr_program *program, mr_command_id kind) {
    mr_program_item found = {0};
    size_t count = 0;
    for (size_t i = 0; i < mr_program_count(program); i++) {
        mr_program_item it = mr_program_item_at(program, i);
        if (it.kind != kind) continue;
        found = it;
        count++;
    }
    assert_int_equal(count, 1);
    return found;
}

/* On the second device, so that its number is not what a slot begins with. */
static mr_program *record_one_of_each(void) {
    mr_recorder *recorder;
    mr_program *program;
    double ms;
    device = machine->devices[1];
    OK(mr_program_record(machine, 0, &recorder));
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *pinned = tensor_of(MR_MEMORY_PINNED, NULL, 1);
    mr_tensor *t = tensor(a, 1);
    mr_event *first = record(a);
    occupy(a, 1, 1);
    assert_false(stream_done(a));
    OK(mr_storage_record_stream(t->storage, b));
    copy(a, pinned, t);
    mr_event *second = record(a);
    OK(mr_stream_wait_event(&caller, b, first));
    FAILS(MR_CODE_NOT_READY, mr_event_elapsed(first, second, &ms));
    OK(mr_device_synchronize(&caller, device));
    OK(mr_recorder_finish(recorder, &program));
    return program;
}

static void an_item_says_what_it_is_about(void **state) {
    (void)state;
    teardown(NULL);
    open_machine("virtual:2", NULL);
    mr_program *program = record_one_of_each();
    mr_program_item alloc = item_of(program, MR_COMMAND_ALLOC);
    mr_program_item host = item_of(program, MR_COMMAND_HOST_ALLOC);
    mr_program_item wait = item_of(program, MR_COMMAND_WAIT);
    mr_program_item elapsed = item_of(program, MR_COMMAND_ELAPSED);
    mr_program_item used = item_of(program, MR_COMMAND_RECORD_STREAM);
    mr_program_item sync = item_of(program, MR_COMMAND_DEVICE_SYNC);
    mr_program_item query = item_of(program, MR_COMMAND_STREAM_QUERY);
    mr_program_item copied = item_of(program, MR_COMMAND_COPY);
    assert_true(alloc.storage != MR_PROGRAM_NONE && alloc.device == 1 && alloc.came_true);
    assert_int_equal(mr_program_storage_at(program, alloc.storage).stream, alloc.stream);
    assert_true(host.storage != MR_PROGRAM_NONE && host.device == MR_PROGRAM_NONE);
    assert_true(wait.event != MR_PROGRAM_NONE && wait.bound && wait.device == 1);
    assert_true(wait.other_event == MR_PROGRAM_NONE && wait.storage == MR_PROGRAM_NONE);
    assert_int_equal(elapsed.event, wait.event);
    assert_true(elapsed.other_event != MR_PROGRAM_NONE && elapsed.other_event != elapsed.event);
    assert_true(elapsed.failed && elapsed.has_error && !elapsed.came_true && !elapsed.bound);
    assert_true(used.storage == alloc.storage && used.stream == wait.stream);
    assert_true(sync.device == 1 && sync.stream == MR_PROGRAM_NONE);
    assert_true(query.stream == alloc.stream && !query.came_true && !query.failed);
    assert_true(copied.operand_count == 2 && copied.storage == MR_PROGRAM_NONE);
    mr_program_release(program);
}

static void a_player_shows_the_same_items_with_objects(void **state) {
    (void)state;
    teardown(NULL);
    open_machine("virtual:2", NULL);
    mr_player *player;
    mr_program *program = record_one_of_each();
    OK(mr_player_open(program, &as_recorded, &player));
    assert_int_equal(mr_player_item_count(player), mr_program_count(program));
    for (size_t i = 0; i < mr_program_count(program); i++) {
        mr_program_item item = mr_program_item_at(program, i);
        mr_program_item it = mr_player_item_at(player, i);
        bool is_submitted = (mr_command_kinds[item.kind].traits & MR_TRAIT_SUBMITTED) != 0;
        assert_int_equal(it.kind, item.kind);
        assert_true(it.seq == item.seq && it.device == item.device);
        assert_int_equal(it.command != NULL, is_submitted);
        assert_null(item.command);
        assert_ptr_equal(it.stream_object, item.stream == MR_PROGRAM_NONE
                                               ? NULL
                                               : mr_player_stream(player, item.stream));
        if (it.stream_object) assert_int_equal(it.stream_object->device->index, item.device);
        for (uint32_t k = 0; k < item.operand_count; k++)
            assert_int_equal(it.operands[k].access, mr_program_operand_at(program, i, k).access);
    }
    mr_player_close(player);
    mr_program_release(program);
}

static void no_turn(void *context, uint32_t i) {
    (void)context, (void)i;
}

static mr_status nothing_before(void *context, uint32_t i) {
    (void)context, (void)i;
    return MR_OK;
}

/* Without operands: what counts is who meets whom. */
static mr_command *member_of(mr_meeting *meeting, uint32_t member, mr_stream *stream) {
    mr_command *command;
    OK(mr_command_create(&caller, MR_COMMAND_OP, stream, "send", 0, &command));
    command->u.op.row = &mr_collective_op;
    command->meeting = meeting;
    command->member = member;
    meeting->refs++;
    meeting->members[member] = (mr_meeting_member){
        .rank = member, .out = MR_MEETING_NONE, .in = MR_MEETING_NONE, .command = command};
    return command;
}

/* In a process of rank 1, member 1 is submitted first. */
static void members_meet_whichever_comes_first(void **state) {
    (void)state;
    mr_recorder *recorder;
    mr_program *program;
    mr_stream *streams[] = {free_stream(), free_stream()};
    OK(mr_program_record(machine, 0, &recorder));
    for (uint32_t first = 0; first < 2; first++) {
        mr_meeting *meeting = mr_meeting_new(2, 0);
        meeting->what = MR_COLLECTIVE_EXCHANGE;
        meeting->first = first;
        meeting->last = 1 - first;
        mr_command *commands[2];
        for (uint32_t k = 0; k < 2; k++) {
            uint32_t member = k == 0 ? meeting->first : meeting->last;
            commands[k] = member_of(meeting, member, streams[member]);
        }
        mr_together together = {no_turn, nothing_before, NULL};
        OK(mr_command_submit_together(commands, 2, &together));
        mr_meeting_release(meeting);
    }
    OK(mr_device_drain(device));
    OK(mr_recorder_finish(recorder, &program));
    mr_player *player;
    OK(mr_player_open(program, &as_recorded, &player));
    const mr_meeting *met[4];
    size_t count = 0;
    for (size_t i = 0; i < mr_program_count(program); i++) {
        if (mr_program_kind_at(program, i) != MR_COMMAND_OP) continue;
        assert_true(mr_program_item_at(program, i).meets);
        assert_true(count < 4);
        met[count++] = mr_player_item_at(player, i).command->meeting;
    }
    assert_int_equal(count, 4);
    assert_ptr_equal(met[0], met[1]);
    assert_ptr_equal(met[2], met[3]);
    assert_ptr_not_equal(met[1], met[2]);
    mr_player_close(player);
    mr_program_release(program);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_chooser_gives_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(another_schedule_shows_as_another_value, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_outlives_its_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(members_meet_whichever_comes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(a_program_that_is_too_long_says_so, setup, teardown),
        cmocka_unit_test_setup_teardown(an_item_says_what_it_is_about, setup, teardown),
        cmocka_unit_test_setup_teardown(a_player_shows_the_same_items_with_objects, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
