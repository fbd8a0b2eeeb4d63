/* Memory and copies of the CUDA backend: the pool, host memory that pending copies use, out of memory. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

static void out_of_memory_at_any_allocation_leaves_all_usable(void **state) {
    (void)state;
    int64_t size = 1000;
    mr_tensor *t = NULL;
    mr_stream *s = free_stream();
    for (int n = 1; n <= 3; n++) {
        fake->fail_alloc_at = n;
        fake->fail_allocs = 1; /* it is tried again where the pool holds something that is free */
        for (int i = 1; i < n; i++) drop(tensor(MR_MEMORY_DEVICE, s, size));
        FAILS(MR_CODE_OUT_OF_MEMORY, "4000 bytes wanted",
              mr_tensor_create(&caller, MR_MEMORY_DEVICE, s, MR_I32, 1, &size, &t));
        fake->fail_allocs = 0;
        drop(tensor(MR_MEMORY_DEVICE, s, size));
        assert_int_equal(mr_device_memory(device).live, 0);
    }
    mr_stream_release(s);
}

static void more_than_the_card_has_is_said_to_be_so(void **state) {
    (void)state;
    int64_t size = (int64_t)1 << 30;
    mr_tensor *t;
    FAILS(MR_CODE_OUT_OF_MEMORY, "more than all of its 1073741824",
          mr_tensor_create(&caller, MR_MEMORY_DEVICE, device->legacy, MR_I32, 1, &size, &t));
}

static int collected;
static mr_tensor *garbage;
static void collect(void *context) {
    (void)context;
    collected++;
    drop(garbage);
}

/* Two thirds of the card are garbage, and the free is pending in the stream. */
static void memory_short_is_looked_for_in_garbage_and_pending_frees(void **state) {
    (void)state;
    int64_t size = 180 << 20;
    collected = 0;
    machine->hooks.collect = collect;
    garbage = tensor(MR_MEMORY_DEVICE, device->legacy, size);
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, device->legacy, size);
    assert_int_equal(collected, 1);
    assert_int_equal(fake->blocks, 1);
    drop(t);
}

static void a_free_waits_for_recorded_streams_and_holds_nobody_up(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, a, 10);
    OK(mr_storage_record_stream(t->storage, b));
    fake->kernel_ticks = 1000;
    launch(b);
    drop(t);
    assert_true(stream_done(a));
    assert_int_equal(fake->blocks, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(fake->blocks, 0);
    mr_stream_release(a);
    mr_stream_release(b);
}

static void a_free_waits_for_a_recorded_stream_that_was_closed(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, a, 10);
    OK(mr_storage_record_stream(t->storage, b));
    fake->kernel_ticks = 1000;
    launch(b);
    OK(mr_stream_close(&caller, b));
    drop(t);
    assert_true(stream_done(a));
    assert_int_equal(fake->blocks, 1);
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(fake->blocks, 0);
    mr_stream_release(a);
    mr_stream_release(b);
}

/* R27: cuMemFree of a pool's memory waits for nothing; R33 holds all the same. */
static void a_free_at_once_waits_for_recorded_streams_only(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    for (int recorded = 0; recorded < 2; recorded++) {
        mr_tensor *t = tensor(MR_MEMORY_DEVICE, a, 10);
        if (recorded) OK(mr_storage_record_stream(t->storage, b));
        fake->kernel_ticks = 1000;
        launch(a);
        launch(b);
        OK(mr_storage_free(&caller, t->storage, MR_FREE_SYNC, NULL));
        assert_false(stream_done(a));
        assert_int_equal(fake->blocks, recorded);
        OK(mr_stream_synchronize(&caller, b));
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(fake->blocks, 0);
        mr_tensor_release(t);
    }
    mr_stream_release(a);
    mr_stream_release(b);
}

static void copies_go_every_way(void **state) {
    (void)state;
    enum { KINDS = 3 };
    mr_stream *s = device->legacy;
    for (int from = 0; from < KINDS; from++) {
        for (int to = 0; to < KINDS; to++) {
            for (int synchronous = 0; synchronous < 2; synchronous++) {
                mr_memory_kind kinds[] = {MR_MEMORY_DEVICE, MR_MEMORY_PINNED, MR_MEMORY_PAGEABLE};
                mr_tensor *a = tensor(kinds[from], from ? NULL : s, 100);
                mr_tensor *b = tensor(kinds[to], to ? NULL : s, 100);
                for (int i = 0; i < 100; i++) values(a)[i] = i + from;
                memset(values(b), 0, 400);
                OK(mr_memcpy(&caller, b, a, synchronous ? NULL : s, synchronous != 0));
                OK(mr_stream_synchronize(&caller, s));
                assert_memory_equal(values(a), values(b), 400);
                drop(a);
                drop(b);
            }
        }
    }
}

static void copies_between_devices_arrive(void **state) {
    (void)state;
    mr_tensor *a = tensor(MR_MEMORY_DEVICE, device->legacy, 10);
    mr_tensor *b = tensor(MR_MEMORY_DEVICE, machine->devices[1]->legacy, 10);
    for (int i = 0; i < 10; i++) values(a)[i] = 7 * i;
    copy(device->legacy, b, a);
    OK(mr_stream_synchronize(&caller, device->legacy));
    assert_int_equal(values(b)[9], 63);
    OK(mr_memcpy(&caller, a, b, NULL, true));
    OK(mr_device_enable_peer_access(device, machine->devices[1]));
    FAILS(MR_CODE_PEER_ACCESS_ENABLED, "already has access",
          mr_device_enable_peer_access(device, machine->devices[1]));
    fake->no_peers = true;
    FAILS(MR_CODE_NOT_SUPPORTED, "through the host",
          mr_device_enable_peer_access(machine->devices[1], device));
    drop(a);
    drop(b);
}

static void pinned_memory_stays_while_a_copy_uses_it(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *to = tensor(MR_MEMORY_DEVICE, s, 100);
    mr_tensor *from = tensor(MR_MEMORY_PINNED, NULL, 100);
    void *address = from->storage->host;
    for (int i = 0; i < 100; i++) values(from)[i] = i;
    fake->hold = true;
    copy(s, to, from);
    drop(from);
    mr_tensor *other = tensor(MR_MEMORY_PINNED, NULL, 100);
    assert_ptr_not_equal(other->storage->host, address);
    memset(other->storage->host, 0xff, 400);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(values(to)[99], 99);
    assert_int_equal(machine->host_memory.allocations, 1);
    mr_tensor *again = tensor(MR_MEMORY_PINNED, NULL, 100);
    assert_ptr_equal(again->storage->host, address);
    drop(again);
    drop(other);
    drop(to);
    mr_stream_release(s);
}

/* Nobody ever waits for the stream: fences say when the memory is free. */
static void pinned_memory_comes_back_without_any_synchronize(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *to = tensor(MR_MEMORY_DEVICE, s, 100);
    for (int i = 0; i < 1000; i++) {
        mr_tensor *from = tensor(MR_MEMORY_PINNED, NULL, 100);
        copy(s, to, from);
        drop(from);
        assert_true(machine->host_memory.allocations < 70);
    }
    assert_int_equal(fake->registered, own_registered + 1);
    drop(to);
    mr_stream_release(s);
}

static void pinned_memory_of_every_size_is_found_and_aligned(void **state) {
    (void)state;
    for (int64_t size = 1; size < (int64_t)3 << 20; size = size * 5 / 4 + 1) {
        mr_tensor *t = tensor(MR_MEMORY_PINNED, NULL, size);
        assert_int_equal((uintptr_t)t->storage->host % 256, 0);
        memset(t->storage->host, 1, (size_t)size * 4);
        drop(t);
    }
    OK(mr_device_trim(device));
    assert_int_equal(fake->registered, own_registered);
}

static void pinned_memory_that_cannot_be_had_is_an_error(void **state) {
    (void)state;
    int64_t size = 1000, huge = (int64_t)1 << 47;
    mr_tensor *t;
    fake->fail_register_at = 1;
    drop(tensor(MR_MEMORY_PINNED, NULL, size)); /* after what is free has been given back */
    OK(mr_device_trim(device));
    FAILS(MR_CODE_OUT_OF_MEMORY, "out of pinned host memory",
          mr_tensor_create(&caller, MR_MEMORY_PINNED, NULL, MR_I32, 1, &huge, &t));
    drop(tensor(MR_MEMORY_PINNED, NULL, size));
}

CUDA_TEST_MAIN(TEST(out_of_memory_at_any_allocation_leaves_all_usable),
               TEST(more_than_the_card_has_is_said_to_be_so),
               TEST(memory_short_is_looked_for_in_garbage_and_pending_frees),
               TEST(a_free_waits_for_recorded_streams_and_holds_nobody_up),
               TEST(a_free_waits_for_a_recorded_stream_that_was_closed),
               TEST(a_free_at_once_waits_for_recorded_streams_only), TEST(copies_go_every_way),
               TEST(copies_between_devices_arrive), TEST(pinned_memory_stays_while_a_copy_uses_it),
               TEST(pinned_memory_comes_back_without_any_synchronize),
               TEST(pinned_memory_of_every_size_is_found_and_aligned),
               TEST(pinned_memory_that_cannot_be_had_is_an_error))

#else
CUDA_TEST_MAIN()
#endif
