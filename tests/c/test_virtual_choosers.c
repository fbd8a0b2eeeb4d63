/* The choosers: each keeps the rules of order, and uses the freedom that they leave. */
#include "virtual_fixture.h"

static const char *const choosers[] = {"timed", "adversarial", "manual", "random:1", "random:2"};
enum { CHOOSERS = sizeof choosers / sizeof *choosers };

/* A producer on one stream, a consumer on another: with the wait, or without it. */
static int32_t produce_and_consume(bool wait) {
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, 64), *y = tensor(b, 64);
    fill(a, x, 1);
    fill(b, y, 0);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_spin(&caller, a, ns(1)));
    fill(a, x, 7);
    if (wait) OK(mr_stream_wait_stream(&caller, b, a));
    OK(mr_memcpy(&caller, y, x, b, false));
    fill(a, tensor(a, 8), 3); /* something newer that has nothing to do with it */
    OK(mr_stream_synchronize(&caller, b));
    int32_t seen = values(y)[0];
    OK(mr_device_synchronize(&caller, device));
    return seen;
}

static void a_wait_is_kept_by_every_chooser(void **state) {
    (void)state;
    for (int i = 0; i < CHOOSERS; i++) {
        choose(choosers[i]);
        assert_string_equal(mr_virtual_backend.simulator->chooser(machine), choosers[i]);
        assert_int_equal(produce_and_consume(true), 7);
    }
}

static void the_adversary_shows_a_missing_wait(void **state) {
    (void)state;
    choose("adversarial");
    assert_int_equal(produce_and_consume(false), 1);
}

static void chance_shows_both_outcomes(void **state) {
    (void)state;
    int seen[8] = {0};
    for (int seed = 0; seed < 64; seed++) {
        char name[32];
        snprintf(name, sizeof name, "random:%d", seed);
        choose(name);
        seen[produce_and_consume(false)]++;
    }
    assert_true(seen[1] > 8 && seen[7] > 8);
}

/* Counts in 200 seeds how often the host sees as done work that it did not wait for. */
enum { HOST_SEEDS = 200 };

static int times_done(bool (*is_done)(void)) {
    int done = 0;
    for (int seed = 0; seed < HOST_SEEDS; seed++) {
        char name[32];
        snprintf(name, sizeof name, "random:%d", seed);
        OK(mr_device_synchronize(&caller, device));
        choose(name);
        done += is_done();
    }
    return done;
}

static bool a_short_copy_is_seen(void) {
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, 1), *pin = tensor_of(MR_MEMORY_PINNED, NULL, 1);
    values(pin)[0] = 1;
    fill(a, d, 7);
    copy(a, pin, d);
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    return values(pin)[0] == 7;
}

static bool a_chain_of_many_steps_is_seen(void) {
    enum { SIZE = 4096 };
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *d = tensor(a, SIZE), *pin = tensor_of(MR_MEMORY_PINNED, NULL, SIZE);
    values(pin)[SIZE - 1] = 1;
    for (int i = 0; i < 8; i++) {
        OK(mr_spin(&caller, b, 1000));
        fill(a, d, i);
    }
    copy(a, pin, d);
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    return values(pin)[SIZE - 1] == 7;
}

static bool it_is_done_by_the_end_of_a_loop_of_reads(void) {
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, 16), *pin = tensor_of(MR_MEMORY_PINNED, NULL, 16);
    values(pin)[15] = 1;
    fill(a, d, 7);
    copy(a, pin, d);
    for (int i = 0; i < 16; i++) OK(mr_host_access(&caller, "read", pin, MR_READ));
    return values(pin)[15] == 7;
}

static bool a_source_is_read_before_it_changes(void) {
    mr_stream *a = free_stream();
    mr_tensor *d = tensor(a, 1), *pin = tensor_of(MR_MEMORY_PINNED, NULL, 1);
    values(pin)[0] = 7;
    copy(a, d, pin);
    OK(mr_host_access(&caller, "write", pin, MR_WRITE));
    values(pin)[0] = 1;
    OK(mr_stream_synchronize(&caller, a));
    return values(d)[0] == 7;
}

/* R30, policy 2: another stream has the memory once the free is done, if it is when it allocates. */
static bool freed_memory_is_had_by_another_stream(void) {
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, 64);
    uint64_t address = x->storage->address;
    fill(a, x, 1);
    drop(x);
    return tensor(b, 64)->storage->address == address;
}

/* Both outcomes in at least one seed of eight. */
static void chance_decides_when_the_host_acts(void **state) {
    (void)state;
    bool (*const programs[])(void) = {a_short_copy_is_seen, a_chain_of_many_steps_is_seen,
                                      it_is_done_by_the_end_of_a_loop_of_reads,
                                      a_source_is_read_before_it_changes,
                                      freed_memory_is_had_by_another_stream};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        int done = times_done(programs[i]);
        if (done < HOST_SEEDS / 8 || done > HOST_SEEDS - HOST_SEEDS / 8)
            fail_msg("program %zu: done in %d of %d seeds", i, done, HOST_SEEDS);
        assert_int_equal(times_done(programs[i]), done); /* the same seeds give the same */
    }
}

static void the_same_seed_gives_the_same_run(void **state) {
    (void)state;
    int32_t first[32];
    for (int round = 0; round < 2; round++) {
        choose("random:99");
        for (int i = 0; i < 32; i++) {
            int32_t value = produce_and_consume(false);
            if (round == 0) first[i] = value;
            else assert_int_equal(value, first[i]);
        }
    }
}

/* Write after read: the writer does not wait for the reader. */
static void the_adversary_shows_an_early_overwrite(void **state) {
    (void)state;
    choose("adversarial");
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, 64), *sums[4];
    for (int i = 0; i < 4; i++) sums[i] = tensor(b, 64);
    for (int i = 0; i < 4; i++) {
        fill(a, x, i + 1);
        OK(mr_stream_wait_stream(&caller, b, a));
        OK(mr_memcpy(&caller, sums[i], x, b, false));
    }
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(sums[0])[0], 4);
}

static void the_adversary_shows_memory_used_after_its_free(void **state) { /* R33 */
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        choose("timed");
        mr_stream *a = free_stream(), *b = free_stream();
        mr_tensor *t = tensor(a, 1 << 16), *seen = tensor(b, 1 << 16);
        fill(a, t, 1);
        OK(mr_device_synchronize(&caller, device));
        choose("adversarial");
        if (recorded) OK(mr_storage_record_stream(t->storage, b));
        OK(mr_memcpy(&caller, seen, t, b, false));
        drop(t);
        mr_tensor *u = tensor(a, 1 << 16);
        fill(a, u, 2);
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(values(seen)[0], recorded ? 1 : 2);
    }
}

static void the_adversary_lets_the_host_read_too_early(void **state) {
    (void)state;
    choose("adversarial");
    mr_stream *a = free_stream(), *other = free_stream();
    mr_tensor *d = tensor(a, 64), *pin = tensor_of(MR_MEMORY_PINNED, NULL, 64);
    values(pin)[0] = 1;
    fill(a, d, 7);
    copy(a, pin, d);
    OK(mr_spin(&caller, other, ns(1)));
    OK(mr_stream_synchronize(&caller, other)); /* not the stream of the copy */
    OK(mr_host_access(&caller, "read", pin, MR_READ));
    assert_int_equal(values(pin)[0], 1);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(pin)[0], 7);
}

static void polling_comes_to_an_end(void **state) {
    (void)state;
    for (int i = 0; i < CHOOSERS; i++) {
        if (strcmp(choosers[i], "manual") == 0) continue; /* it is the person who ends it */
        choose(choosers[i]);
        mr_stream *a = free_stream();
        for (int k = 0; k < 5; k++) OK(mr_spin(&caller, a, 1000));
        mr_event *e = record(a);
        int polls = 0;
        while (!event_done(e)) assert_true(polls++ < 1000);
        while (!stream_done(a)) assert_true(polls++ < 1000);
    }
}

static void a_person_decides(void **state) {
    (void)state;
    const mr_simulator *simulator = mr_virtual_backend.simulator;
    char text[128];
    bool moved;
    choose("manual");
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, 8), *y = tensor(b, 8);
    OK(mr_device_synchronize(&caller, device));
    values(x)[0] = values(y)[0] = 0;
    fill(a, x, 1);
    mr_event *e = record(a);
    OK(mr_stream_wait_event(&caller, b, e));
    fill(b, y, 2);
    for (int i = 0; i < 3; i++) assert_false(event_done(e));
    OK(mr_machine_step(machine, b, &moved, text, sizeof text));
    assert_false(moved); /* it waits for `a` */
    OK(mr_machine_step(machine, a, &moved, text, sizeof text));
    assert_true(moved);
    assert_non_null(strstr(text, "fill"));
    assert_int_equal(values(x)[0], 1);
    assert_int_equal(values(y)[0], 0);
    assert_true(event_done(e)); /* records and waits are no steps of their own */
    OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
    assert_true(moved);
    assert_int_equal(values(y)[0], 2);
    OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
    assert_false(moved);
    assert_true(simulator->device_time(machine) <= mr_machine_time(machine));
}

static void see_pending(void *context, const mr_pending *pending) {
    char *text = context;
    sprintf(text + strlen(text), "%s%s%s%s ", pending->command->name, pending->running ? "*" : "",
            pending->ready ? "+" : "", pending->waits_for ? "<" : "");
}

static void what_is_pending_can_be_seen(void **state) {
    (void)state;
    char text[512] = "";
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, 8);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_spin(&caller, a, ns(10)));
    fill(a, x, 1);
    OK(mr_stream_wait_stream(&caller, b, a));
    OK(mr_spin(&caller, b, ns(1)));
    for (int i = 0; i < 10; i++) stream_done(a); /* time passes */
    mr_virtual_backend.simulator->pending(machine, see_pending, text);
    assert_string_equal(text, "spin*+ fill wait_stream wait_stream< spin ");
}

/* Two writers without order: some elements are one's, some the other's. */
static void an_unordered_writer_tears(void **state) {
    (void)state;
    enum { SIZE = 1 << 16 };
    int torn = 0;
    for (int seed = 0; seed < 20; seed++) {
        char name[32];
        snprintf(name, sizeof name, "random:%d", seed);
        choose(name);
        mr_stream *a = free_stream(), *b = free_stream();
        mr_tensor *x = tensor(a, SIZE);
        OK(mr_stream_wait_stream(&caller, b, a));
        fill(a, x, 1);
        fill(b, x, 2);
        OK(mr_device_synchronize(&caller, device));
        int ones = 0;
        for (int i = 0; i < SIZE; i++) ones += values(x)[i] == 1;
        torn += ones > 0 && ones < SIZE;
    }
    assert_true(torn >= 10);

    choose("timed"); /* also a reader at the right moment */
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *x = tensor(a, SIZE), *y = tensor(a, SIZE);
    fill(a, x, 0);
    OK(mr_device_synchronize(&caller, device));
    mix(a, "produce", 10, x, NULL);
    OK(mr_spin(&caller, b, ns(5)));
    OK(mr_memcpy(&caller, y, x, b, false));
    OK(mr_device_synchronize(&caller, device));
    assert_true(values(y)[0] == values(x)[0]);
    assert_true(values(y)[SIZE - 1] == 0);
}

static void pending_work_goes_on_under_another_chooser(void **state) {
    (void)state;
    enum { SIZE = 1 << 14 };
    for (int i = 0; i < CHOOSERS * CHOOSERS; i++) {
        bool moved;
        char text[128];
        choose(choosers[i / CHOOSERS]);
        mr_stream *a = free_stream(), *b = free_stream();
        mr_tensor *x = tensor(a, SIZE), *y = tensor(b, SIZE);
        mix(a, "first", 1, x, NULL);
        OK(mr_stream_wait_stream(&caller, b, a));
        mix(b, "second", 1, y, x);
        mix(a, "third", 1, x, NULL);
        for (int k = 0; k < 3; k++) OK(mr_machine_step(machine, NULL, &moved, text, sizeof text));
        choose(choosers[i % CHOOSERS]);
        mix(b, "fourth", 1, y, y);
        OK(mr_device_synchronize(&caller, device));
        int32_t expected = values(x)[SIZE - 1];
        mix(a, "third", 1, x, NULL);
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(values(x)[SIZE - 1], expected);
    }
}

static void unknown_choosers_are_refused(void **state) {
    (void)state;
    const char *wrong[] = {"",
                           "Timed",
                           "random:",
                           "random:x",
                           "random:-1",
                           "random:1x",
                           "random:99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        FAILS(MR_CODE_INVALID_ARGUMENT,
              mr_virtual_backend.simulator->set_chooser(machine, wrong[i]));
    assert_string_equal(mr_virtual_backend.simulator->chooser(machine), "timed");
}

/* ---- programs without races give the same values under every chooser */

enum { STREAMS = 5, TENSORS = 6, OPS = 60, ELEMENTS = 700 };

static uint32_t random_state;
static uint32_t draw(uint32_t below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(random_state >> 4) * below >> 28);
}

typedef struct {
    mr_stream *stream[STREAMS];
    mr_tensor *tensor[TENSORS];
    mr_event *written[TENSORS]; /* by the last writer */
    mr_event *read[TENSORS][STREAMS];
} program;

/* All in one stream, or each operation in one that has waited for what it needs. */
static void run_program(uint32_t seed, bool parallel, int32_t out[TENSORS][ELEMENTS]) {
    static const char *const names[] = {"alpha", "beta", "gamma", "delta"};
    program p = {0};
    random_state = seed;
    for (int s = 0; s < STREAMS; s++)
        p.stream[s] = s == 0 ? device->legacy : s == 1 ? blocking_stream() : free_stream();
    for (int t = 0; t < TENSORS; t++) {
        p.tensor[t] = tensor(p.stream[2], ELEMENTS);
        fill(p.stream[2], p.tensor[t], t);
        p.written[t] = record(p.stream[2]);
    }
    for (int i = 0; i < OPS; i++) {
        uint32_t s = draw(STREAMS), w = draw(TENSORS), r = draw(TENSORS), name = draw(4);
        uint32_t length = draw(50), odd = draw(8), other = draw(STREAMS);
        if (!parallel) s = 2;
        mr_stream *stream = p.stream[s];
        OK(mr_stream_wait_event(&caller, stream, p.written[w]));
        OK(mr_stream_wait_event(&caller, stream, p.written[r]));
        for (int k = 0; k < STREAMS; k++)
            if (p.read[w][k]) OK(mr_stream_wait_event(&caller, stream, p.read[w][k]));
        if (odd == 0) { /* through a temporary that dies at once and is reused by others */
            mr_tensor *temporary = tensor(stream, ELEMENTS);
            mix(stream, names[name], length * 1e-3, temporary, p.tensor[r]);
            OK(mr_memcpy(&caller, p.tensor[w], temporary, stream, false));
            drop(temporary);
        } else if (odd == 1) { /* through the host */
            mr_tensor *host = tensor_of(MR_MEMORY_PINNED, NULL, ELEMENTS);
            OK(mr_memcpy(&caller, host, p.tensor[r], stream, false));
            OK(mr_memcpy(&caller, p.tensor[w], host, stream, false));
        } else {
            mix(stream, names[name], length * 1e-3, p.tensor[w], p.tensor[r]);
        }
        if (!p.read[r][s]) p.read[r][s] = new_event();
        OK(mr_event_record(&caller, p.read[r][s], stream));
        OK(mr_event_record(&caller, p.written[w], stream));
        if (odd == 2) OK(mr_stream_synchronize(&caller, p.stream[other]));
        if (odd == 3) event_done(p.written[draw(TENSORS)]);
        else draw(TENSORS);
    }
    OK(mr_device_synchronize(&caller, device));
    for (int t = 0; t < TENSORS; t++) memcpy(out[t], values(p.tensor[t]), sizeof out[t]);
}

static void programs_without_races_have_one_result(void **state) {
    static int32_t expected[TENSORS][ELEMENTS], actual[TENSORS][ELEMENTS];
    teardown(state);
    for (uint32_t seed = 1; seed <= 40; seed++) {
        for (int i = -1; i < CHOOSERS + 3; i++) {
            char name[32];
            snprintf(name, sizeof name, "random:%u", seed * 100 + (uint32_t)i);
            setup(state);
            if (i >= 0) choose(i < CHOOSERS ? choosers[i] : name);
            run_program(seed, i >= 0, i >= 0 ? actual : expected);
            if (i >= 0 && memcmp(actual, expected, sizeof actual) != 0)
                fail_msg("program %u differs under %s", seed,
                         mr_virtual_backend.simulator->chooser(machine));
            teardown(state);
        }
    }
    setup(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(a_wait_is_kept_by_every_chooser),
        T(the_adversary_shows_a_missing_wait),
        T(chance_shows_both_outcomes),
        T(chance_decides_when_the_host_acts),
        T(the_same_seed_gives_the_same_run),
        T(the_adversary_shows_an_early_overwrite),
        T(the_adversary_shows_memory_used_after_its_free),
        T(the_adversary_lets_the_host_read_too_early),
        T(polling_comes_to_an_end),
        T(a_person_decides),
        T(what_is_pending_can_be_seen),
        T(an_unordered_writer_tears),
        T(pending_work_goes_on_under_another_chooser),
        T(unknown_choosers_are_refused),
        T(programs_without_races_have_one_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
