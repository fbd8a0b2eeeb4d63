/* The memory pool of the virtual GPU: R28-R31, R33, and running out of it. */
#include "virtual_fixture.h"

enum { SIZE = 1 << 20, SPREAD = 8 }; /* bytes of address for each byte of memory */

static uint64_t address(const mr_tensor *t) {
    return t->storage->address;
}

static void addresses_are_the_same_on_every_run(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t = tensor(a, SIZE), *u = tensor(a, 1), *host = tensor_of(MR_MEMORY_PINNED, NULL, 4);
    assert_true(address(t) == 0x7f0000000000);
    assert_true(address(u) == 0x7f0000000000 + SPREAD * SIZE * 4);
    assert_true(address(host) == 0x100000000000);
}

static void the_same_stream_has_its_memory_back_at_once(void **state) { /* R29 */
    (void)state;
    mr_stream *a = free_stream();
    OK(mr_spin(&caller, a, ns(10)));
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    drop(p);
    double host = host_ms();
    mr_tensor *q = tensor(a, SIZE);
    assert_true(address(q) == before);
    assert_ms(host_ms() - host, 0);
    drop(q);
    mr_tensor *half = tensor(a, SIZE / 2), *rest = tensor(a, SIZE / 2); /* and in pieces */
    assert_true(address(half) == before);
    assert_true(address(rest) == before + SPREAD * SIZE * 2);
}

static void an_event_lets_another_stream_have_it(void **state) { /* R30, policy 1 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream(), *c = free_stream();
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    OK(mr_spin(&caller, a, ns(10)));
    drop(p);
    mr_tensor *unordered = tensor(b, SIZE);
    assert_true(address(unordered) != before);
    OK(mr_stream_wait_stream(&caller, c, a)); /* over two streams */
    OK(mr_spin(&caller, c, 1000));
    OK(mr_stream_wait_stream(&caller, b, c));
    OK(mr_spin(&caller, b, 1000));
    mr_tensor *q = tensor(b, SIZE);
    assert_true(address(q) == before);
}

static void policy_one_can_be_off(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    set("reuse_event", 0);
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    OK(mr_spin(&caller, a, ns(10)));
    drop(p);
    OK(mr_stream_wait_stream(&caller, b, a));
    mr_tensor *q = tensor(b, SIZE);
    assert_true(address(q) != before);
}

static void a_free_that_is_complete_serves_every_stream(void **state) { /* R30, policy 2; P12 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream(), *clock = free_stream();
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    OK(mr_spin(&caller, a, ns(10)));
    drop(p);
    OK(mr_spin(&caller, clock, ns(5)));
    OK(mr_stream_synchronize(&caller, clock)); /* the host is at 5 ms */
    mr_tensor *early = tensor(b, SIZE);
    assert_true(address(early) != before);
    OK(mr_spin(&caller, clock, ns(6)));
    OK(mr_stream_synchronize(&caller, clock)); /* at 11 ms; nothing has looked at `a` */
    mr_tensor *late = tensor(b, SIZE);
    assert_true(address(late) == before);
}

static void policy_two_can_be_off(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream(), *clock = free_stream();
    set("reuse_opportunistic", 0);
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    drop(p);
    OK(mr_spin(&caller, clock, ns(5)));
    OK(mr_stream_synchronize(&caller, clock));
    mr_tensor *q = tensor(b, SIZE);
    assert_true(address(q) != before);
    OK(mr_stream_synchronize(&caller, a)); /* a proof (R31) */
    mr_tensor *r = tensor(b, SIZE);
    assert_true(address(r) == before);
}

static void at_the_limit_the_stream_waits_for_a_free(void **state) { /* R30, policy 3 */
    (void)state;
    set("memory_bytes", SIZE * 4 + 4096);
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *p = tensor(a, SIZE);
    uint64_t before = address(p);
    mr_event *base = record(a);
    OK(mr_spin(&caller, a, ns(10)));
    drop(p);
    double host = host_ms();
    mr_tensor *q = tensor(b, SIZE);
    span k = kernel(b, 1);
    assert_true(address(q) == before);
    assert_ms(host_ms() - host, 0);
    OK(mr_device_synchronize(&caller, device));
    assert_ran(base, k, 11);
}

static void policy_three_can_be_off(void **state) {
    (void)state;
    set("memory_bytes", SIZE * 4 + 4096);
    set("reuse_internal", 0);
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *p = tensor(a, SIZE), *q;
    OK(mr_spin(&caller, a, ns(10)));
    drop(p);
    int64_t size = SIZE;
    FAILS(MR_CODE_OUT_OF_MEMORY,
          mr_tensor_create(&caller, MR_MEMORY_DEVICE, b, MR_I32, 1, &size, &q));
    OK(mr_device_synchronize(&caller, device));
    tensor(b, SIZE);
}

static void several_frees_together_are_waited_for(void **state) {
    (void)state;
    set("memory_bytes", SIZE * 4);
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *p = tensor(a, SIZE / 2), *q = tensor(b, SIZE / 2);
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_spin(&caller, b, ns(20)));
    drop(p);
    drop(q);
    double host = host_ms();
    tensor(a, SIZE);
    assert_ms(host_ms() - host, 20);
}

static void unused_memory_goes_back_beyond_the_threshold(void **state) { /* R31 */
    (void)state;
    mr_stream *a = free_stream();
    drop(tensor(a, SIZE));
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(mr_device_memory(device).reserved, SIZE * 4); /* kept by default */
    set("release_threshold", SIZE);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(mr_device_memory(device).reserved, SIZE);
    set("release_threshold", 0);
    mr_tensor *t = tensor(a, SIZE);
    fill(a, t, 5);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(mr_device_memory(device).reserved, SIZE * 4); /* in use */
    assert_int_equal(values(t)[0], 5);
    drop(t);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(mr_device_memory(device).reserved, 0);
}

static void trim_gives_everything_unused_back(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *kept = tensor(a, SIZE), *gone = tensor(a, SIZE), *also = tensor(a, SIZE);
    drop(gone);
    fill(a, also, 3);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_device_trim(device));
    assert_int_equal(mr_device_memory(device).reserved, SIZE * 8);
    fill(a, kept, 2);
    mr_tensor *again = tensor(a, SIZE);
    fill(a, again, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(values(kept)[SIZE - 1] * 100 + values(also)[0] * 10 + values(again)[9], 231);
}

static void record_stream_keeps_memory_from_being_reused(void **state) { /* R33 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream(), *clock = free_stream();
    mr_tensor *t = tensor(a, SIZE);
    uint64_t before = address(t);
    OK(mr_storage_record_stream(t->storage, b));
    OK(mr_spin(&caller, b, ns(10)));
    drop(t);
    mr_tensor *u = tensor(a, SIZE);
    assert_true(address(u) != before);
    OK(mr_spin(&caller, b, ns(50))); /* later work of `b` does not count */
    OK(mr_spin(&caller, clock, ns(11)));
    OK(mr_stream_synchronize(&caller, clock));
    mr_tensor *v = tensor(a, SIZE);
    assert_true(address(v) == before);
}

static void record_stream_counts_for_a_closed_stream(void **state) { /* R9, R33 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(a, SIZE);
    uint64_t before = address(t);
    OK(mr_storage_record_stream(t->storage, b));
    OK(mr_spin(&caller, b, ns(10)));
    OK(mr_stream_close(&caller, b));
    drop(t);
    assert_true(address(tensor(a, SIZE)) != before);
    OK(mr_device_synchronize(&caller, device));
    assert_true(address(tensor(a, SIZE)) == before);
}

static void memory_of_a_closed_stream_waits_for_its_work(void **state) { /* R9 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(a, SIZE);
    uint64_t before = address(t);
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_stream_close(&caller, a));
    drop(t); /* in the order of the default stream, which knows nothing of `a` */
    assert_true(address(tensor(device->legacy, SIZE)) != before);
    OK(mr_device_synchronize(&caller, device));
    assert_true(address(tensor(b, SIZE)) == before);
}

static void too_much_is_refused_and_changes_nothing(void **state) {
    (void)state;
    mr_stream *a = free_stream();
    mr_tensor *t, *kept = tensor(a, SIZE);
    mr_memory_stats before = mr_device_memory(device);
    for (int64_t size = (int64_t)1 << 34; size < (int64_t)1 << 60; size <<= 2) {
        FAILS(MR_CODE_OUT_OF_MEMORY,
              mr_tensor_create(&caller, MR_MEMORY_DEVICE, a, MR_I32, 1, &size, &t));
        FAILS(MR_CODE_OUT_OF_MEMORY,
              mr_tensor_create(&caller, MR_MEMORY_PINNED, NULL, MR_I32, 1, &size, &t));
        FAILS(MR_CODE_OUT_OF_MEMORY,
              mr_tensor_create(&caller, MR_MEMORY_PAGEABLE, NULL, MR_I32, 1, &size, &t));
    }
    mr_memory_stats after = mr_device_memory(device);
    assert_memory_equal(&before, &after, sizeof before);
    fill(a, kept, 9);
    OK(mr_stream_synchronize(&caller, a));
    assert_int_equal(values(kept)[SIZE - 1], 9);
}

static void all_of_the_memory_can_be_had_again_and_again(void **state) {
    (void)state;
    enum { PIECES = 16 };
    set("memory_bytes", PIECES * SIZE);
    mr_stream *a = free_stream(), *b = free_stream();
    for (int round = 0; round < 20; round++) {
        mr_tensor *pieces[PIECES];
        int64_t size = SIZE / 4;
        for (int i = 0; i < PIECES; i++) pieces[i] = tensor(i % 2 ? a : b, size);
        mr_tensor *t;
        FAILS(MR_CODE_OUT_OF_MEMORY,
              mr_tensor_create(&caller, MR_MEMORY_DEVICE, a, MR_I32, 1, &size, &t));
        for (int i = 0; i < PIECES; i++) drop(pieces[(i * 7 + round) % PIECES]);
        drop(tensor(a, SIZE / 4 * PIECES)); /* in one piece: everything has merged */
    }
}

/* Live blocks never share a byte, whatever is allocated and freed in whatever order. */
static void blocks_never_overlap(void **state) {
    (void)state;
    enum { COUNT = 200, STREAMS = 4 };
    set("memory_bytes", 64 << 20);
    set("release_threshold", 16 << 20);
    mr_stream *streams[STREAMS];
    for (int i = 0; i < STREAMS; i++) streams[i] = free_stream();
    mr_tensor *live[COUNT] = {0};
    uint32_t random = 1;
    for (int i = 0; i < 20000; i++) {
        random = random * 1664525u + 1013904223u;
        int slot = (int)(random >> 8) % COUNT, s = (int)(random >> 20) % STREAMS;
        if (live[slot]) {
            assert_int_equal(values(live[slot])[0], slot);
            assert_int_equal(values(live[slot])[live[slot]->numel - 1], slot);
            if (random & 64) OK(mr_storage_record_stream(live[slot]->storage, streams[s]));
            drop(live[slot]);
            live[slot] = NULL;
        } else {
            int64_t size = 2 + (int64_t)(random >> 4) % (1 << (random % 17));
            live[slot] = tensor(streams[s], size);
            values(live[slot])[0] = values(live[slot])[size - 1] = slot;
        }
        if (i % 3 == 0) OK(mr_spin(&caller, streams[s], 2000));
        if (i % 100 == 0) OK(mr_stream_synchronize(&caller, streams[s]));
    }
}

static void cuda_free_waits_only_when_told_to(void **state) { /* R27, R28, P5 */
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    for (int waits = 0; waits < 2; waits++) {
        set("free_waits", waits);
        mr_tensor *t = tensor(a, SIZE);
        OK(mr_spin(&caller, b, ns(10)));
        double before = host_ms();
        OK(mr_storage_free(&caller, t->storage, MR_FREE_SYNC, NULL));
        assert_ms(host_ms() - before, waits ? 10 : 0);
        OK(mr_device_synchronize(&caller, device));
    }
}

/* R27: the caller must make sure that nothing uses the memory. */
static void cuda_free_gives_memory_to_anyone_at_once(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    for (int recorded = 0; recorded < 2; recorded++) {
        mr_tensor *t = tensor(a, SIZE);
        uint64_t address = t->storage->address;
        if (recorded) OK(mr_storage_record_stream(t->storage, b));
        OK(mr_device_synchronize(&caller, device));
        OK(mr_spin(&caller, a, ns(10)));
        fill(a, t, 1);
        OK(mr_spin(&caller, b, ns(10)));
        OK(mr_storage_free(&caller, t->storage, MR_FREE_SYNC, NULL));
        mr_tensor *next = tensor(b, SIZE);
        assert_int_equal(next->storage->address == address, !recorded); /* R33 */
        OK(mr_device_synchronize(&caller, device));
        if (!recorded) assert_int_equal(values(next)[0], 1); /* the work of before */
        drop(next);
        OK(mr_device_synchronize(&caller, device));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
        T(addresses_are_the_same_on_every_run),
        T(the_same_stream_has_its_memory_back_at_once),
        T(an_event_lets_another_stream_have_it),
        T(policy_one_can_be_off),
        T(a_free_that_is_complete_serves_every_stream),
        T(policy_two_can_be_off),
        T(at_the_limit_the_stream_waits_for_a_free),
        T(policy_three_can_be_off),
        T(several_frees_together_are_waited_for),
        T(unused_memory_goes_back_beyond_the_threshold),
        T(trim_gives_everything_unused_back),
        T(record_stream_keeps_memory_from_being_reused),
        T(record_stream_counts_for_a_closed_stream),
        T(memory_of_a_closed_stream_waits_for_its_work),
        T(too_much_is_refused_and_changes_nothing),
        T(all_of_the_memory_can_be_had_again_and_again),
        T(blocks_never_overlap),
        T(cuda_free_waits_only_when_told_to),
        T(cuda_free_gives_memory_to_anyone_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
