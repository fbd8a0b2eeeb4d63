/* Checkpoints of the virtual GPU: whatever happens after one, restoring it leads back to the same state, and what
 * follows is the same again, in bytes, order and times. */
#include "virtual_programs.h"

#include "model/chooser.h"

static mr_checkpoint *checkpoint(void) {
    mr_checkpoint *c;
    OK(simulator()->checkpoint(machine, &c));
    return c;
}

static void restore(mr_checkpoint *c) {
    OK(simulator()->restore(machine, c));
}

static void drop_checkpoint(mr_checkpoint *c) {
    simulator()->checkpoint_drop(machine, c);
}

static bool step(uint64_t *io_hash) {
    char text[256];
    bool moved;
    OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
    *io_hash = hash_bytes(*io_hash, text, strlen(text));
    return moved;
}

/* The rest of the program, every step of it. */
static uint64_t run_on(void) {
    uint64_t hash = 1;
    while (step(&hash)) {}
    return hash_bytes(hash, &(uint64_t){picture()}, sizeof(uint64_t));
}

static void some_steps(uint32_t most) {
    uint64_t hash = 0;
    for (uint32_t n = chance(most); n && step(&hash);) n--;
}

static void what_follows_a_restore_is_what_followed_before(void **state) {
    for (int round = 0; round < 60; round++) {
        state_of_chance = (uint64_t)round + 1;
        choose(choosers[round % CHOOSERS]);
        make_objects();
        for (uint32_t n = 5 + chance(60); n; n--) submit_something();
        some_steps(40);
        uint64_t before = picture();
        mr_checkpoint *c = checkpoint();
        uint64_t first = run_on();
        for (int again = 0; again < 3; again++) {
            restore(c);
            assert_true(picture() == before);
            if (again == 1) some_steps(30); /* half way is as good */
            if (again == 1) continue;
            assert_true(run_on() == first);
        }
        drop_checkpoint(c);
        teardown(state);
        setup(state);
    }
}

static void checkpoints_are_a_stack(void **state) {
    for (int round = 0; round < 40; round++) {
        state_of_chance = (uint64_t)round + 1000;
        choose(choosers[round % CHOOSERS]);
        make_objects();
        for (int n = 0; n < 50; n++) submit_something();
        mr_checkpoint *stack[6];
        uint64_t pictures[6];
        int depth = 0;
        for (int n = 0; n < 40; n++) {
            if (depth < 6 && chance(2)) {
                pictures[depth] = picture();
                stack[depth++] = checkpoint();
            } else if (depth && chance(2)) {
                depth = (int)chance((uint32_t)depth) + 1; /* the ones above are gone */
                restore(stack[depth - 1]);
                assert_true(picture() == pictures[depth - 1]);
            } else if (depth && chance(4) == 0) {
                drop_checkpoint(stack[--depth]);
            }
            some_steps(6);
        }
        if (depth) drop_checkpoint(stack[0]);
        teardown(state);
        setup(state);
    }
}

/* ---- one by one */

static void what_was_submitted_since_is_gone(void **state) {
    (void)state;
    choose("manual");
    make_objects();
    fill(streams[1], tensors[0], 5);
    mr_checkpoint *c = checkpoint();
    uint64_t before = picture();
    fill(streams[1], tensors[0], 6);
    mix(streams[2], "mix", 1, tensors[1], tensors[0]);
    uint64_t hash = 0;
    while (step(&hash)) {}
    assert_int_equal(values(tensors[0])[0], 6);
    restore(c);
    assert_true(picture() == before);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(tensors[0])[0], 5);
    drop_checkpoint(c);
}

static void what_the_host_wrote_comes_back(void **state) {
    (void)state;
    make_objects();
    mr_checkpoint *c = checkpoint();
    OK(mr_host_access(&caller, "write", pageable, MR_WRITE));
    values(pageable)[1999] = 77;
    fill(NULL, pinned, 78); /* an operation of the host's */
    restore(c);
    assert_int_equal(values(pageable)[1999], 0x02020202);
    assert_int_equal(values(pinned)[0], 0x01010101);
    drop_checkpoint(c);
}

static void memory_that_went_back_to_the_system_comes_back(void **state) {
    (void)state;
    make_objects();
    mr_tensor *large = tensor(streams[1], 4 << 20);
    fill(streams[1], large, 9);
    OK(mr_device_synchronize(&caller, device));
    int32_t *bytes = values(large);
    uint64_t before = machine->backend->memory_reserved(device);
    drop(large); /* its bytes stay where they are until it is trimmed */
    OK(mr_device_synchronize(&caller, device));
    mr_checkpoint *c = checkpoint();
    OK(machine->backend->memory_trim(device));
    assert_true(machine->backend->memory_reserved(device) < before);
    assert_int_equal(bytes[1 << 20], 0);
    restore(c);
    assert_int_equal(machine->backend->memory_reserved(device), before);
    assert_int_equal(bytes[1 << 20], 9);
    drop_checkpoint(c);
}

static void host_memory_comes_back_and_goes(void **state) {
    (void)state;
    mr_checkpoint *c[2];
    mr_tensor *before, *since;
    int64_t size = 3000;
    OK(mr_tensor_create(&caller, MR_MEMORY_PINNED, NULL, MR_F32, 1, &size, &before));
    memset(values(before), 3, 12000);
    char *bytes = before->storage->host;
    mr_storage again =
        *before
             ->storage; /* the record goes with the tensor, and comes back with whoever keeps it */
    c[0] = checkpoint();
    OK(mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_F32, 1, &size, &since));
    memset(values(since), 4, 12000);
    c[1] = checkpoint();
    mr_tensor_release(before);
    mr_tensor_release(since);
    restore(c[1]);
    restore(c[0]); /* frees what `since` held */
    for (int i = 0; i < 12000; i++) assert_int_equal(bytes[i], 3);
    drop_checkpoint(c[0]);
    machine->backend->memory_release(&again);
}

static void a_device_that_was_lost_is_well_again(void **state) {
    (void)state;
    make_objects();
    fill(streams[1], tensors[0], 3);
    OK(mr_stream_fault(&caller, streams[1], MR_CODE_LAUNCH_FAILURE));
    mr_checkpoint *c = checkpoint();
    for (int again = 0; again < 2; again++) {
        FAILS(MR_CODE_LAUNCH_FAILURE, mr_stream_synchronize(&caller, streams[1]));
        FAILS(MR_CODE_LAUNCH_FAILURE, mr_stream_synchronize(&caller, streams[2]));
        restore(c);
        OK(mr_stream_synchronize(&caller, streams[2]));
    }
    drop_checkpoint(c);
}

static mr_status fail_always(void *context) {
    (void)context;
    return mr_fail(MR_CODE_HOST_FUNCTION, "failed");
}

/* A step of the simulator raises nothing; the next call that waits would. */
static void a_failure_that_no_call_has_raised_comes_back_and_goes(void **state) {
    char text[256];
    bool moved;
    (void)state;
    choose("manual");
    mr_stream *s = free_stream(), *other = free_stream();
    OK(mr_stream_host_function(&caller, s, fail_always, NULL, NULL));
    mr_checkpoint *before = checkpoint();
    for (int again = 0; again < 2; again++) {
        OK(simulator()->step(machine, s, &moved, text, sizeof text));
        assert_true(moved);
        mr_checkpoint *failed = checkpoint();
        for (int wait = 0; wait < 2; wait++) {
            FAILS(MR_CODE_HOST_FUNCTION, mr_stream_synchronize(&caller, s));
            OK(mr_stream_synchronize(&caller, s));
            restore(failed);
        }
        restore(before);
        OK(mr_stream_synchronize(&caller, other));
    }
    drop_checkpoint(before);
    FAILS(MR_CODE_HOST_FUNCTION, mr_stream_synchronize(&caller, s));
}

static void a_new_chooser_ends_checkpoints(void **state) {
    (void)state;
    mr_checkpoint *c = checkpoint();
    choose("manual");
    FAILS(MR_CODE_NOT_PERMITTED, simulator()->restore(machine, c));
    drop_checkpoint(c);
    c = checkpoint();
    OK(mr_machine_reset(&caller));
    FAILS(MR_CODE_NOT_PERMITTED, simulator()->restore(machine, c));
    drop_checkpoint(c);
}

static mr_status call_checkpoint(void *context) {
    mr_checkpoint **out = context;
    return simulator()->checkpoint(machine, out);
}

static void not_inside_a_host_function(void **state) {
    (void)state;
    mr_checkpoint *c;
    mr_stream *s = free_stream();
    OK(mr_stream_host_function(&caller, s, call_checkpoint, NULL, &c));
    FAILS(MR_CODE_NOT_PERMITTED, mr_stream_synchronize(&caller, s));
}

/* ---- a chooser from outside */

typedef struct {
    mr_chooser base;
    MR_VEC(mr_device_step) steps;
    int questions;
    bool answer;
} own_chooser;

static bool own_offer(mr_chooser *chooser, const mr_device_step *one) {
    return mr_vec_push(&((own_chooser *)chooser)->steps, *one);
}

/* The newest first. */
static bool own_take(mr_chooser *chooser, const mr_moment *moment, mr_device_step *out_step) {
    own_chooser *own = (own_chooser *)chooser;
    if (moment->point < MR_CHOICE_WAIT || !own->steps.count) return false;
    *out_step = mr_vec_pop(&own->steps);
    return true;
}

static void own_withdraw(mr_chooser *chooser, const void *work) {
    own_chooser *own = (own_chooser *)chooser;
    size_t kept = 0;
    for (size_t i = 0; i < own->steps.count; i++)
        if (own->steps.items[i].work != work) own->steps.items[kept++] = own->steps.items[i];
    own->steps.count = kept;
}

static void own_clear(mr_chooser *chooser) {
    ((own_chooser *)chooser)->steps.count = 0;
}

static void own_destroy(mr_chooser *chooser) {
    own_clear(chooser);
    mr_vec_free(&((own_chooser *)chooser)->steps);
}

static bool own_decide(mr_chooser *chooser, mr_open_choice what, const mr_command *command,
                       bool usual) {
    own_chooser *own = (own_chooser *)chooser;
    (void)command, (void)usual;
    if (what == MR_OPEN_D2H_ASYNC) own->questions++;
    return own->answer;
}

static void a_chooser_from_outside_decides_what_is_open(void **state) {
    (void)state;
    static own_chooser own = {.base = {.name = "own",
                                       .whole = true,
                                       .offer = own_offer,
                                       .take = own_take,
                                       .withdraw = own_withdraw,
                                       .clear = own_clear,
                                       .destroy = own_destroy,
                                       .decide = own_decide}};
    make_objects();
    OK(simulator()->use_chooser(machine, &own.base));
    assert_string_equal(simulator()->chooser(machine), "own");
    fill(streams[1], tensors[0], 1);
    fill(streams[2], tensors[1], 2);
    char text[256];
    bool moved;
    OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
    assert_int_equal(values(tensors[1])[0], 2); /* the newest first */
    assert_int_equal(values(tensors[0])[0], 0);
    OK(mr_device_synchronize(&caller, device));
    /* R23: whether an async copy to pageable memory returns early is open; the setting says that it waits. */
    fill(streams[1], tensors[0], 4);
    mr_tensor *one = first_of(tensors[0], 1), *to = first_of(pageable, 1);
    own.answer = true;
    copy(streams[1], to, one);
    assert_int_equal(own.questions, 1);
    assert_int_equal(values(to)[0], 0x02020202);
    own.answer = false;
    copy(streams[1], to, one);
    assert_int_equal(own.questions, 2);
    assert_int_equal(values(to)[0], 4);
    choose("timed");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_follows_a_restore_is_what_followed_before),
        TEST(checkpoints_are_a_stack),
        TEST(what_was_submitted_since_is_gone),
        TEST(what_the_host_wrote_comes_back),
        TEST(memory_that_went_back_to_the_system_comes_back),
        TEST(host_memory_comes_back_and_goes),
        TEST(a_device_that_was_lost_is_well_again),
        TEST(a_failure_that_no_call_has_raised_comes_back_and_goes),
        TEST(a_new_chooser_ends_checkpoints),
        TEST(not_inside_a_host_function),
        TEST(a_chooser_from_outside_decides_what_is_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
