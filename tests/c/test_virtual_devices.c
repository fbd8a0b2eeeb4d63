/* Several virtual devices: R57-R60, and what one device does not do to another. */
#include "virtual_fixture.h"

enum { SIZE = 1 << 20 };

static mr_device *other;

static int setup_three(void **state) {
    (void)state;
    open_machine("virtual:3", NULL);
    other = machine->devices[1];
    return 0;
}

static mr_stream *stream_on(mr_device *where) {
    mr_device *before = device;
    device = where;
    mr_stream *stream = free_stream();
    device = before;
    return stream;
}

static double ms_of(mr_status (*wait)(const mr_caller *, mr_device *), mr_device *where) {
    double before = host_ms();
    OK(wait(&caller, where));
    return host_ms() - before;
}

static void default_streams_of_two_devices_are_unordered(void **state) { /* R3, R58 */
    (void)state;
    assert_int_equal(machine->device_count, 3);
    OK(mr_spin(&caller, device->legacy, ns(10)));
    OK(mr_spin(&caller, other->legacy, ns(10)));
    assert_ms(ms_of(mr_device_synchronize, device), 10);
    assert_ms(ms_of(mr_device_synchronize, other), 0);
}

static void a_synchronisation_is_of_one_device(void **state) { /* R10 */
    (void)state;
    OK(mr_spin(&caller, other->legacy, ns(10)));
    assert_ms(ms_of(mr_device_synchronize, device), 0);
    assert_ms(ms_of(mr_device_synchronize, other), 10);
}

static void a_wait_crosses_devices(void **state) { /* R14, R58 */
    (void)state;
    mr_stream *a = stream_on(device), *b = stream_on(other);
    OK(mr_spin(&caller, a, ns(10)));
    OK(mr_stream_wait_stream(&caller, b, a));
    OK(mr_spin(&caller, b, ns(5)));
    assert_ms(ms_of(mr_device_synchronize, other), 15);
}

static void elapsed_time_does_not(void **state) { /* R17, P10 */
    (void)state;
    double ms;
    mr_event *e1 = record(device->legacy), *e2 = record(other->legacy);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_device_synchronize(&caller, other));
    FAILS(MR_CODE_INVALID_HANDLE, mr_event_elapsed(e1, e2, &ms));
    FAILS(MR_CODE_INVALID_HANDLE, mr_event_record(&caller, e1, other->legacy));
}

static double peer_copy_ms(mr_tensor *to, mr_tensor *from, mr_stream *stream) {
    mr_event *start = record(stream);
    copy(stream, to, from);
    mr_event *end = record(stream);
    OK(mr_stream_synchronize(&caller, stream));
    return between(start, end);
}

static void peer_access_makes_copies_faster(void **state) { /* R59 */
    (void)state;
    mr_stream *a = stream_on(device), *b = stream_on(other);
    mr_tensor *x = tensor(a, SIZE), *y = tensor(b, SIZE);
    fill(a, x, 7);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_device_synchronize(&caller, other));
    double staged = peer_copy_ms(y, x, b);
    assert_int_equal(values(y)[SIZE - 1], 7);
    assert_in_range((int)(staged * 1e3), 150, 160); /* 4 MiB, twice over PCIe */
    assert_true(mr_device_can_access_peer(device, other));
    OK(mr_device_enable_peer_access(device, other));
    FAILS(MR_CODE_PEER_ACCESS_ENABLED, mr_device_enable_peer_access(device, other));
    OK(mr_device_enable_peer_access(other, device)); /* one way each */
    double direct = peer_copy_ms(y, x, b);
    assert_in_range((int)(direct * 1e3), 23, 24); /* 399 GB/s, behind 13 us */
}

/* Copies between three devices in a ring need two engines each; none may wait for ever. */
static void peer_copies_in_a_ring_come_to_an_end(void **state) {
    (void)state;
    mr_stream *s[3];
    mr_tensor *t[3];
    for (int i = 0; i < 3; i++) {
        s[i] = stream_on(machine->devices[i]);
        t[i] = tensor(s[i], SIZE);
        for (int k = 0; k < 3; k++)
            if (k != i) OK(mr_device_enable_peer_access(machine->devices[i], machine->devices[k]));
    }
    for (int i = 0; i < 3; i++) OK(mr_device_synchronize(&caller, machine->devices[i]));
    double before = host_ms();
    for (int round = 0; round < 30; round++)
        for (int i = 0; i < 3; i++) copy(s[i], t[(i + 1) % 3], t[i]);
    for (int i = 0; i < 3; i++) OK(mr_device_synchronize(&caller, machine->devices[i]));
    assert_ms(host_ms() - before, 30 * 0.0235); /* all three links at once */
}

static void the_asynchronous_peer_copy_is_ordered_by_its_stream_alone(void **state) { /* R60 */
    (void)state;
    mr_stream *a = stream_on(device), *b = stream_on(other);
    mr_tensor *x = tensor(a, 8), *y = tensor(b, 8);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_device_synchronize(&caller, other));
    OK(mr_spin(&caller, b, ns(10)));
    OK(mr_memcpy(&caller, x, y, a, false));
    double before = host_ms();
    OK(mr_stream_synchronize(&caller, a));
    assert_ms(host_ms() - before, 0);
}

static void the_synchronous_peer_copy_is_a_barrier_on_both_devices(void **state) { /* R60 */
    (void)state;
    mr_stream *a = stream_on(device), *b = stream_on(other), *a2 = stream_on(device);
    mr_stream *third = stream_on(machine->devices[2]);
    mr_tensor *x = tensor(a, 8), *y = tensor(b, 8);
    OK(mr_device_synchronize(&caller, device));
    OK(mr_device_synchronize(&caller, other));
    double before = host_ms();
    OK(mr_spin(&caller, b, ns(10)));
    OK(mr_spin(&caller, a, ns(20)));
    OK(mr_memcpy(&caller, x, y, NULL, true));
    assert_ms(host_ms() - before, 0); /* asynchronous for the host */
    OK(mr_spin(&caller, a2, ns(1)));
    OK(mr_spin(&caller, third, ns(1)));
    OK(mr_stream_synchronize(&caller, third));
    assert_ms(host_ms() - before, 1);
    OK(mr_stream_synchronize(&caller, a2));
    assert_ms(host_ms() - before, 21);
}

static void memory_is_each_devices_own(void **state) {
    (void)state;
    mr_stream *a = stream_on(device), *b = stream_on(other);
    mr_tensor *x = tensor(a, 8), *y = tensor(b, 8);
    assert_true(y->storage->address - x->storage->address == (uint64_t)1 << 44);
    assert_int_equal(mr_device_memory(machine->devices[2]).reserved, 0);
    /* Used by another device's stream (R33). */
    uint64_t before = x->storage->address;
    OK(mr_storage_record_stream(x->storage, b));
    OK(mr_spin(&caller, b, ns(10)));
    drop(x);
    assert_true(tensor(a, 8)->storage->address != before);
    OK(mr_device_synchronize(&caller, other));
    assert_true(tensor(a, 8)->storage->address == before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define T(test) cmocka_unit_test_setup_teardown(test, setup_three, teardown)
        T(default_streams_of_two_devices_are_unordered),
        T(a_synchronisation_is_of_one_device),
        T(a_wait_crosses_devices),
        T(elapsed_time_does_not),
        T(peer_access_makes_copies_faster),
        T(peer_copies_in_a_ring_come_to_an_end),
        T(the_asynchronous_peer_copy_is_ordered_by_its_stream_alone),
        T(the_synchronous_peer_copy_is_a_barrier_on_both_devices),
        T(memory_is_each_devices_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
