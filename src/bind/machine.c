/* The machine as a whole: what is current, waiting for a device, the clock, the seed. */
#include <string.h>

#include "bind/internal.h"

/* --- what is current -------------------------------------------------------------------------- */

/* What to put back at the end of a scope: the device that was current, and the stream that was
 * current on the device that the scope is for. */
typedef struct {
    mr_device *device;
    mr_stream *stream; /* owned; NULL: the scope is over */
    uint32_t epoch;
} scope;

static const mr_class scope_class;

/* Enters a scope for the stream or device at `arg`. */
static void scope_enter(lua_State *L, int arg, scope *s) {
    mr_machine *machine = mr_enter(L);
    mr_stream *stream = NULL;
    mr_device *target;
    if (mr_test(L, arg, &mr_stream_class)) {
        stream = mr_check_stream(L, arg);
        target = stream->device;
    } else if (lua_type(L, arg) == LUA_TNUMBER || mr_test(L, arg, &mr_device_class)) {
        target = mr_check_device(L, arg);
    } else {
        mr_bad_argument(L, arg, "a stream or a device");
        return;
    }
    s->device = machine->current_device;
    s->epoch = machine->epoch;
    s->stream = target->current;
    mr_stream_retain(s->stream);
    if (stream) mr_raise(L, mr_stream_set_current(stream));
    else mr_machine_set_device(machine, target);
}

/* Idempotent. A reset, or the closing of a stream, has put defaults in place that stay. */
static void scope_leave(mr_machine *machine, scope *s) {
    if (!s->stream) return;
    mr_stream *stream = s->stream;
    s->stream = NULL;
    if (s->epoch == machine->epoch) {
        if (!stream->closed) mr_error_destroy(mr_stream_set_current(stream));
        mr_machine_set_device(machine, s->device);
    }
    mr_stream_release(stream);
}

MR_FUNCTION(scope_close, "__close", "", "Ends the scope.") {
    scope_leave(mr_lend_stack(L), mr_check(L, 1, &scope_class));
    return 0;
}

MR_FUNCTION(scope_gc, "__gc", "",
            "Drops what the scope holds; a scope never closed changes nothing.") {
    scope *s = mr_check(L, 1, &scope_class);
    mr_lend_stack(L);
    mr_stream_release(s->stream);
    s->stream = NULL;
    return 0;
}

static const mr_function *const scope_functions[] = {&scope_close_function, &scope_gc_function,
                                                     NULL};
static const mr_property no_properties[] = {{NULL, NULL, NULL, NULL}};
static const mr_class scope_class = {"scope",
                                     "What s:scope() returns, to be put in a <close> variable.",
                                     scope_functions, no_properties};

/* Shared with stream.c: s:scope(). The stream is at index 1. */
int mr_push_scope(lua_State *L) {
    scope *s = mr_new(L, &scope_class, sizeof *s);
    scope_enter(L, 1, s);
    return 1;
}

/* Shared with stream.c: s:run(fn, ...) is mr.with(s, fn, ...). */
int mr_call_with(lua_State *L) {
    if (lua_type(L, 2) != LUA_TFUNCTION) mr_bad_argument(L, 2, "a function");
    scope *s = mr_new(L, &scope_class, sizeof *s);
    scope_enter(L, 1, s);
    lua_replace(L, 1); /* the scope where the stream was: it lives as long as the call */
    int status = lua_pcall(L, lua_gettop(L) - 2, LUA_MULTRET, 0);
    scope_leave(mr_lend_stack(L), s);
    if (status != LUA_OK) return lua_error(L);
    return lua_gettop(L) - 1;
}

MR_FUNCTION(machine_with, "with", "mr.with(where: stream|device, fn: function, ...) -> ...",
            "Runs `fn(...)` with that stream or device current and returns its results; what was "
            "current before is put back, also on error. Waits for nothing at either edge.") {
    return mr_call_with(L);
}

MR_FUNCTION(machine_current_device, "current_device", "mr.current_device() -> device: device",
            "The device on which new tensors, streams and events are made (R57).") {
    mr_push_device(L, mr_machine_of(L)->current_device);
    return 1;
}

MR_FUNCTION(machine_set_device, "set_device", "mr.set_device(device: device|integer)",
            "Makes a device current; waits for nothing (R57).") {
    mr_machine *machine = mr_enter(L);
    mr_machine_set_device(machine, mr_check_device(L, 1));
    return 0;
}

MR_FUNCTION(machine_device_count, "device_count", "mr.device_count() -> count: integer",
            "How many devices there are.") {
    lua_pushinteger(L, mr_machine_of(L)->device_count);
    return 1;
}

MR_FUNCTION(machine_device, "device", "mr.device(ordinal: integer) -> device: device",
            "The device of that ordinal; ordinals count from 0, as CUDA prints them.") {
    mr_enter(L);
    mr_push_device(L, mr_check_device(L, 1));
    return 1;
}

/* --- waiting, time, numbers -------------------------------------------------------------------- */

MR_FUNCTION(machine_synchronize, "synchronize", "mr.synchronize([device: device|integer])",
            "The host waits for all streams of one device, the current one if none is named; other "
            "devices go on (R10).") {
    mr_machine *machine = mr_enter(L);
    mr_device *device = lua_isnoneornil(L, 1) ? machine->current_device : mr_check_device(L, 1);
    mr_raise(L, mr_device_synchronize(device));
    return 0;
}

MR_FUNCTION(
    machine_clock, "clock", "mr.clock() -> ms: number",
    "The host's clock in milliseconds; virtual time on the virtual GPU, where the host's own "
    "computing takes none.") {
    lua_pushnumber(L, (lua_Number)mr_machine_time(mr_machine_of(L)) * 1e-6);
    return 1;
}

MR_FUNCTION(machine_manual_seed, "manual_seed", "mr.manual_seed(seed: integer)",
            "Restarts the random numbers (Philox): the same seed and the same calls give the same "
            "numbers on every backend.") {
    mr_machine *machine = mr_enter(L);
    mr_machine_seed(machine, (uint64_t)mr_check_integer(L, 1));
    return 0;
}

MR_FUNCTION(
    machine_launch_blocking, "launch_blocking",
    "mr.launch_blocking([on: boolean]) -> before: boolean",
    "With true, every operation and copy is waited for where it is called, like "
    "CUDA_LAUNCH_BLOCKING=1 (R52): failures name their own line, and races hide. Returns what "
    "was set before.") {
    mr_machine *machine = mr_enter(L);
    bool before = machine->launch_blocking;
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_isboolean(L, 1)) mr_bad_argument(L, 1, "true or false");
        machine->launch_blocking = lua_toboolean(L, 1);
    }
    lua_pushboolean(L, before);
    return 1;
}

MR_FUNCTION(
    machine_allow_tf32, "allow_tf32", "mr.allow_tf32([on: boolean]) -> before: boolean",
    "With true, products of f32 matrices may be computed in TF32 on a GPU that has it: faster, and "
    "with 10 bits of mantissa. The virtual GPU always computes in f32. Returns what was set "
    "before; off at the start.") {
    mr_machine *machine = mr_enter(L);
    bool before = machine->allow_tf32;
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_isboolean(L, 1)) mr_bad_argument(L, 1, "true or false");
        machine->allow_tf32 = lua_toboolean(L, 1);
    }
    lua_pushboolean(L, before);
    return 1;
}

MR_FUNCTION(
    machine_reset, "reset", "mr.reset()",
    "A fresh device, also after a failure that made every call fail (R50): pending work is "
    "dropped, device memory is gone; streams, events and device tensors of before answer every "
    "use with an error. Host tensors keep their values. On a real GPU the driver gives the process "
    "no new context after some failures (an illegal address); the error then says to start "
    "again.") {
    mr_raise(L, mr_machine_reset(mr_enter(L)));
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
    "mr", "The machine as a whole. `mr.backend` is \"virtual\" or \"cuda\".", machine_functions,
    NULL};

void mr_open_machine(lua_State *L, mr_machine *machine) {
    mr_class_open(L, machine, &scope_class);
    mr_table_open(L, machine, &mr_machine_class);
}
