/* The machine as a whole: what is current, waiting for a device, the clock, the seed. */
#include <string.h>

#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/machine/scope.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "model/capture.h"
#include "model/observer.h"
#include "model/outside.h"

/* --- what is current -------------------------------------------------------------------------- */

MR_FUNCTION(
    machine_with, "with", "mr.with(where: stream|device, fn: function, ...) -> ...",
    "Runs `fn(...)` with that stream or device current and returns its results. Afterwards, also "
    "after an error, the previous one is current again. Waits for nothing.") {
    return mr_call_with(L);
}

MR_FUNCTION(machine_current_device, "current_device", "mr.current_device() -> device: device",
            "Returns the current device. New tensors, streams and events belong to it (R57).") {
    mr_push_device(L, mr_machine_of(L)->current_device);
    return 1;
}

MR_FUNCTION(machine_set_device, "set_device", "mr.set_device(device: device|integer)",
            "Makes a device current. Waits for nothing (R57).") {
    mr_machine *machine = mr_set_context(L);
    mr_machine_set_device(machine, mr_check_device(L, 1));
    return 0;
}

MR_FUNCTION(machine_device_count, "device_count", "mr.device_count() -> count: integer",
            "Returns the number of devices.") {
    lua_pushinteger(L, mr_machine_of(L)->device_count);
    return 1;
}

MR_FUNCTION(machine_device, "device", "mr.device(ordinal: integer) -> device: device",
            "Returns the device with this ordinal. Ordinals count from 0, as in CUDA.") {
    mr_set_context(L);
    mr_push_device(L, mr_check_device(L, 1));
    return 1;
}

/* --- waiting, time, numbers -------------------------------------------------------------------- */

MR_FUNCTION(machine_synchronize, "synchronize", "mr.synchronize([device: device|integer])",
            "The host waits for all streams of one device (default: the current device). It does "
            "not wait for other devices (R10).") {
    mr_caller caller = mr_enter(L);
    mr_device *device =
        lua_isnoneornil(L, 1) ? caller.machine->current_device : mr_check_device(L, 1);
    mr_raise(L, mr_device_synchronize(&caller, device));
    return 0;
}

MR_FUNCTION(machine_clock, "clock", "mr.clock() -> ms: number",
            "Returns the host's clock in milliseconds. On the virtual GPU this is virtual time, in "
            "which the host's own computations take no time.") {
    mr_machine *machine = mr_machine_of(L);
    mr_observers_learned(machine);
    mr_push_time(L, "mr.clock", (double)mr_machine_time(machine) * 1e-6);
    return 1;
}

MR_FUNCTION(machine_manual_seed, "manual_seed", "mr.manual_seed(seed: integer)",
            "Sets the seed of the random numbers (Philox). The same seed and the same calls give "
            "the same numbers on every backend.") {
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_capture_ask_host(&caller, MR_ASK_ACCESS, "manual_seed", NULL, NULL, NULL));
    mr_machine_seed(caller.machine, (uint64_t)mr_check_integer(L, 1));
    return 0;
}

MR_FUNCTION(machine_launch_blocking, "launch_blocking",
            "mr.launch_blocking([on: boolean]) -> before: boolean",
            "With true, the host waits for each operation and copy where it is called, like "
            "CUDA_LAUNCH_BLOCKING=1 (R52). A failure is then raised at its own line, and races are "
            "hidden. Returns the previous value.") {
    mr_caller caller = mr_enter(L);
    mr_machine *machine = caller.machine;
    bool before = machine->launch_blocking;
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_isboolean(L, 1)) mr_bad_argument(L, 1, "true or false");
        bool on = lua_toboolean(L, 1);
        if (on) mr_bind_explore_refuse_kind(L, MR_COMMAND_LAUNCH_BLOCKING);
        mr_raise(L,
                 mr_capture_ask_host(&caller, MR_ASK_ACCESS, "launch_blocking", NULL, NULL, NULL));
        if (on != before) mr_machine_set_launch_blocking(machine, on);
    }
    lua_pushboolean(L, before);
    return 1;
}

MR_FUNCTION(machine_allow_tf32, "allow_tf32", "mr.allow_tf32([on: boolean]) -> before: boolean",
            "With true, products of f32 matrices and convolutions of f32 may be computed in TF32 "
            "on a GPU that has it. This is faster, and the inputs are rounded to 10 bits of "
            "mantissa. The virtual GPU always computes in f32. Returns the previous value; off at "
            "the start.") {
    mr_module *module = mr_module_of(L);
    mr_set_context(L);
    bool before = module->allow_tf32;
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_isboolean(L, 1)) mr_bad_argument(L, 1, "true or false");
        module->allow_tf32 = lua_toboolean(L, 1);
    }
    lua_pushboolean(L, before);
    return 1;
}

MR_FUNCTION(machine_reset, "reset", "mr.reset()",
            "Resets all devices, also after a failure that makes every call fail (R50). Pending "
            "work is dropped, and device memory is freed. Streams, events and device tensors that "
            "were made before the reset raise an error when they are used. Host tensors keep their "
            "values. On a real GPU, after some failures (such as an illegal address), the driver "
            "gives the process no new context; the error then says to restart the program.") {
    mr_caller caller = mr_enter(L);
    mr_bind_explore_refuse_kind(L, MR_COMMAND_RESET);
    mr_raise(L, mr_loans_allow_reset(caller.machine));
    mr_raise(L, mr_machine_reset(&caller));
    return 0;
}

static const mr_function *const machine_functions[] = {&machine_device_count_function,
                                                       &machine_device_function,
                                                       &machine_current_device_function,
                                                       &machine_set_device_function,
                                                       &machine_with_function,
                                                       &machine_synchronize_function,
                                                       &machine_clock_function,
                                                       &machine_manual_seed_function,
                                                       &machine_launch_blocking_function,
                                                       &machine_allow_tf32_function,
                                                       &machine_reset_function,
                                                       NULL};

const mr_class mr_machine_class = {
    "mr", "Functions of the whole machine. `mr.backend` is \"virtual\" or \"cuda\".",
    machine_functions, NULL, NULL};

void mr_open_machine(lua_State *L) {
    mr_open_scope(L);
    mr_table_open(L, &mr_machine_class);
}
