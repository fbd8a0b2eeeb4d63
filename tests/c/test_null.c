/* The null backend has every slot that backend.h does not let be missing: whatever the model asks is answered at
 * once. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "model/event.h"
#include "model/storage.h"
#include "model/stream.h"
#include "null/null.h"

#define OK(call) assert_null(call)

static void all_is_done_at_once(void **state) {
    (void)state;
    mr_machine *machine;
    OK(mr_machine_open(&mr_null_backend, &(mr_machine_options){.device = "null:3"}, &machine));
    assert_int_equal(machine->device_count, 3);
    mr_caller caller = {.machine = machine};
    mr_stream *s;
    mr_event *from, *to;
    bool done = false;
    double milliseconds = -1;
    OK(mr_stream_create(&caller, machine->devices[2], &(mr_stream_options){.nonblocking = true},
                        &s));
    OK(mr_event_create(&caller, &(mr_event_options){.timing = true}, &from));
    OK(mr_event_create(&caller, &(mr_event_options){.timing = true}, &to));
    OK(mr_event_record(&caller, from, s));
    OK(mr_event_record(&caller, to, s));
    OK(mr_stream_wait_event(&caller, machine->devices[0]->legacy, to));
    OK(mr_stream_query(&caller, s, &done));
    assert_true(done);
    done = false;
    OK(mr_event_query(&caller, to, &done));
    assert_true(done);
    OK(mr_event_synchronize(&caller, to));
    OK(mr_event_elapsed(from, to, &milliseconds));
    assert_true(milliseconds == 0);
    OK(mr_stream_synchronize(&caller, s));
    OK(mr_device_synchronize(&caller, machine->devices[1]));
    OK(mr_device_trim(machine->devices[1]));
    assert_true(mr_device_can_access_peer(machine->devices[0], machine->devices[1]));
    OK(mr_device_enable_peer_access(machine->devices[0], machine->devices[1]));
    assert_int_equal(mr_device_memory(machine->devices[0]).reserved, 0);

    mr_storage *storage;
    mr_status status = mr_storage_create(&caller, MR_MEMORY_DEVICE, 64, s, &storage);
    assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
    mr_error_destroy(status);
    status = mr_storage_create(&caller, MR_MEMORY_PAGEABLE, 64, NULL, &storage);
    assert_int_equal(status->code, MR_CODE_NOT_SUPPORTED);
    mr_error_destroy(status);

    OK(mr_machine_reset(&caller));
    mr_event_release(from);
    mr_event_release(to);
    mr_stream_release(s);
    mr_machine_close(machine);
}

static void the_number_of_devices(void **state) {
    (void)state;
    static const struct {
        const char *device;
        int count;
    } cases[] = {{NULL, 1}, {"null", 1}, {"null:2", 2}, {"null:0", 1}, {"null:x", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        mr_machine *machine;
        OK(mr_machine_open(&mr_null_backend, &(mr_machine_options){.device = cases[i].device},
                           &machine));
        assert_int_equal(machine->device_count, cases[i].count);
        mr_machine_close(machine);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_done_at_once),
        cmocka_unit_test(the_number_of_devices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
