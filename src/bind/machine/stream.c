/* The userdata of a stream. The box owns one reference. close, __close and __gc are idempotent: closing
 * twice has no effect. */
#include <string.h>

#include "bind/explore.h"
#include "bind/internal.h"
#include "bind/machine/event.h"
#include "bind/machine/polls.h"
#include "bind/machine/scope.h"
#include "graph/graph.h"
#include "model/outside.h"
#include "bind/open.h"
#include "bind/registry.h"
#include "bind/ops/row.h"
#include "bind/machine/stream_pool.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

/* Clamps the priority as R8 says, so that streams of equal priority share a pool. */
static int clamp_priority(const mr_device *device, int priority) {
    int least = device->properties.priority_least, greatest = device->properties.priority_greatest;
    return priority > least ? least : priority < greatest ? greatest : priority;
}

#define NO_HANDLE "its streams exist inside this process only, as queues of a simulation"

/* An integer, or light userdata as C modules have it. */
static uint64_t check_handle(lua_State *L, const mr_option_slots *given) {
    int at = mr_option_at(L, given, "handle");
    if (lua_islightuserdata(L, at)) return (uint64_t)(uintptr_t)lua_touserdata(L, at);
    return (uint64_t)mr_option_integer(L, given, "handle", 0);
}

/* Pushes the stream of a handle: one that other code has made, or one of ours. */
static int push_foreign(lua_State *L, const mr_caller *caller, const mr_option_slots *given) {
    static const char *const own[] = {"priority", "nonblocking", "device", "pool", NULL};
    const mr_outside_slots *slots;
    mr_stream_look look;
    mr_stream_options options = {.foreign = check_handle(L, given),
                                 .name = mr_option_name(L, given, "name")};
    for (const char *const *name = own; *name; name++)
        if (mr_option_at(L, given, *name))
            return mr_misuse(
                L, "stream: option `%s` is for new streams: the stream of `handle` has its own",
                *name);
    mr_raise(L, mr_machine_ready(caller->machine));
    mr_raise(L, mr_outside_of(caller->machine, "stream{handle=}", NO_HANDLE, &slots));
    if (caller->machine->memory.limit)
        return mr_misuse(L, "stream: --sandbox takes no handles of other code");
    mr_bind_explore_refuse(L, "mr.stream{handle=}: " MR_OUTSIDE_NOT_EXPLORED);
    mr_stream **box = mr_new(L, &mr_kind_stream, sizeof *box);
    mr_raise(L, slots->stream_look(caller->machine, options.foreign, &look));
    if (look.known) {
        mr_share_stream(caller, look.known, "stream{handle=}");
        if (mr_registry_push(L, look.known)) return 1;
        *box = look.known;
        mr_stream_retain(*box);
    } else {
        options.nonblocking = !look.blocking;
        options.priority = look.priority;
        mr_raise(L, mr_stream_create(caller, look.device, &options, box));
        mr_share_stream(caller, *box, "stream{handle=}");
    }
    mr_registry_add(L, *box);
    return 1;
}

MR_FUNCTION(
    mr_stream_new, "stream",
    "mr.stream([opts: {priority: integer=0, nonblocking: boolean=true, device: "
    "device|integer|string, name: string, pool: boolean=false, handle: integer}]) -> stream: "
    "stream",
    "Makes a stream on the current device or on `device`. It is non-blocking by default, "
    "as in PyTorch: the default stream's barrier does not include it (R4). A lower number "
    "is a higher priority; values out of range are clamped (R8). `pool`: one of the 32 streams "
    "that each device has for a priority, in turn, like torch.cuda.Stream(). So the 33rd is the "
    "first stream again, with its pending work. It has no name of its own. `handle`: a stream of "
    "other code, from s.handle or stream.cuda_stream of PyTorch; 0 is the default stream. millrace "
    "uses it and never destroys it. Work that other code submits to it is not checked. "
    "Not available on the virtual GPU.") {
    static const char *const known[] = {"priority", "nonblocking", "device", "name",
                                        "pool",     "handle",      NULL};
    mr_caller caller = mr_enter(L);
    mr_option_slots given = mr_check_options(L, 1, known);
    if (mr_option_at(L, &given, "handle")) return push_foreign(L, &caller, &given);
    lua_Integer priority = mr_option_integer(L, &given, "priority", 0);
    mr_device *device = mr_option_device(L, &given, "device");
    mr_stream_options options = {
        .nonblocking = mr_option_boolean(L, &given, "nonblocking", true),
        .priority = priority > 1000    ? 1000
                    : priority < -1000 ? -1000
                                       : (int)priority,
        .name = mr_option_name(L, &given, "name"),
    };
    bool pooled = mr_option_boolean(L, &given, "pool", false);
    int place = 0;
    if (!device) device = caller.machine->current_device;
    if (pooled && options.name) return mr_misuse(L, "stream: a stream of the pool has no name");
    if (pooled) options.priority = clamp_priority(device, options.priority);
    if (pooled && mr_stream_pool_push(L, device, &options, &place)) return 1;
    mr_stream **box = mr_new(L, &mr_kind_stream, sizeof *box);
    mr_raise(L, mr_stream_create(&caller, device, &options, box));
    mr_registry_add(L, *box);
    if (pooled) {
        lua_pushvalue(L, -1);
        lua_rawseti(L, -3, place);
    }
    return 1;
}

static mr_device *device_or_current(lua_State *L, mr_machine *machine, int arg) {
    return lua_isnoneornil(L, arg) ? machine->current_device : mr_check_device(L, arg);
}

MR_FUNCTION(mr_default_stream, "default_stream",
            "mr.default_stream([device: device|integer]) -> stream: stream",
            "Returns the legacy default stream. Its work waits for all earlier work of the "
            "blocking streams of its device, and their later work waits for it (R3).") {
    mr_push_stream(L, &device_or_current(L, mr_set_context(L), 1)->legacy);
    return 1;
}

MR_FUNCTION(mr_per_thread_stream, "per_thread_stream",
            "mr.per_thread_stream([device: device|integer]) -> stream: stream",
            "Returns the per-thread default stream. It is an ordinary blocking stream with a fixed "
            "handle (R6).") {
    mr_push_stream(L, &device_or_current(L, mr_set_context(L), 1)->per_thread);
    return 1;
}

MR_FUNCTION(mr_current_stream, "current_stream",
            "mr.current_stream([device: device|integer]) -> stream: stream",
            "Returns the current stream. Operations without a `stream` option run on it. At the "
            "start it is the default stream.") {
    mr_push_stream(L, &device_or_current(L, mr_set_context(L), 1)->current);
    return 1;
}

MR_FUNCTION(
    mr_set_stream, "set_stream", "mr.set_stream(s: stream)",
    "Makes a stream current on its device, and makes that device current. Waits for nothing.") {
    mr_machine_of(L); /* submits nothing, so no line is needed */
    mr_raise(L, mr_stream_set_current(mr_check_stream(L, 1)));
    return 0;
}

MR_FUNCTION(mr_priority_range, "priority_range",
            "mr.priority_range() -> least: integer, greatest: integer",
            "Returns the lowest and the highest priority of streams on the current device. The "
            "highest is the smaller number (R8).") {
    const mr_device_properties *p = &mr_machine_of(L)->current_device->properties;
    lua_pushinteger(L, p->priority_least);
    lua_pushinteger(L, p->priority_greatest);
    return 2;
}

MR_FUNCTION(mr_barrier, "barrier", "mr.barrier(streams: stream[])",
            "Later work of each of these streams waits for all work that was submitted to any of "
            "them so far. The host does not wait.") {
    mr_caller caller = mr_enter(L);
    if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "a table of streams");
    int count;
    mr_stream **streams = mr_check_streams(L, 1, "barrier", &count);
    mr_raise(L, mr_stream_barrier(&caller, streams, count));
    return 0;
}

/* --- methods ------------------------------------------------------------------------------------ */

MR_FUNCTION(
    stream_wait_event, "wait_event", "s:wait_event(e: event [, opts: {external: boolean=false}])",
    "Later work of `s` waits for the event's most recent record. The host does not wait "
    "(R12, R15). A wait for an event that was never recorded has no effect (R13). `external`: "
    "if `s` captures a graph, each launch waits for the record that is then the most recent "
    "(R45).") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (mr_test(L, 2, &mr_kind_stream))
        mr_bad_argument_as(L, 2, "an event", "a stream: did you mean wait_stream?");
    mr_event_wait_with(L, &caller, stream, 2, 3);
    return 0;
}

MR_FUNCTION(stream_wait_stream, "wait_stream", "s:wait_stream(other: stream)",
            "Later work of `s` waits for all work that was submitted to `other` so far. The host "
            "does not wait.") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (mr_test(L, 2, &mr_kind_event))
        mr_bad_argument_as(L, 2, "a stream", "an event: did you mean wait_event?");
    mr_raise(L, mr_stream_wait_stream(&caller, stream, mr_check_stream(L, 2)));
    return 0;
}

MR_FUNCTION(stream_wait, "wait", "s:wait(x: event|stream)",
            "Calls wait_event or wait_stream, depending on the type of `x`.") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (mr_test(L, 2, &mr_kind_event))
        mr_raise(L, mr_stream_wait_event(&caller, stream, mr_check_event(L, 2)));
    else if (mr_test(L, 2, &mr_kind_stream))
        mr_raise(L, mr_stream_wait_stream(&caller, stream, mr_check_stream(L, 2)));
    else mr_bad_argument(L, 2, "an event or a stream");
    return 0;
}

MR_FUNCTION(
    stream_record_event, "record_event",
    "s:record_event([e: event [, opts: {external: boolean=false}]]) -> e: event",
    "Records an event (`e`, or a new one) after all work that was submitted to `s` so far, "
    "and returns the event (R11). `external`: if `s` captures a graph, each launch records the "
    "event (R45).") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    lua_settop(L, 3);
    if (lua_isnil(L, 2)) {
        mr_event_options options = {0};
        mr_event **box = mr_new(L, &mr_kind_event, sizeof *box);
        mr_raise(L, mr_event_create(&caller, &options, box));
        mr_registry_add(L, *box);
        lua_replace(L, 2);
    }
    mr_event_record_with(L, &caller, 2, stream, 3);
    lua_settop(L, 2);
    return 1;
}

MR_FUNCTION(stream_synchronize, "synchronize", "s:synchronize()",
            "The host waits for all work that was submitted to `s` so far (R10). For the default "
            "stream, this includes only the work of blocking streams that was submitted before the "
            "default stream's last command. GPUs were seen to wait for the rest, too, but CUDA "
            "does not guarantee it (R5). mr.synchronize() waits for everything.") {
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_stream_synchronize(&caller, mr_check_stream(L, 1)));
    return 0;
}

MR_FUNCTION(stream_query, "query", "s:query() -> done: boolean",
            "Returns whether all submitted work is done. Never waits. The answer `true` orders "
            "like synchronize (R10).") {
    bool done;
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_stream_query(&caller, mr_check_stream(L, 1), &done));
    mr_polls_note(L, &caller, done);
    lua_pushboolean(L, done);
    return 1;
}

MR_FUNCTION(stream_run, "run", "s:run(fn: function, ...) -> ...",
            "The same as mr.with(s, fn, ...).") {
    mr_check_stream(L, 1);
    return mr_call_with(L);
}

MR_FUNCTION(
    stream_scope, "scope", "s:scope() -> scope: scope",
    "Makes `s` current until the returned scope is closed: `local _ <close> = s:scope()`.") {
    mr_check_stream(L, 1);
    return mr_push_scope(L);
}

/* --- host functions (R46) ----------------------------------------------------------------------- */

typedef struct {
    lua_State *main; /* outlives every coroutine */
    mr_machine *machine;
    int function; /* reference in the registry */
} host_call;

static int error_text(lua_State *L) {
    luaL_tolstring(L, 1, NULL);
    return 1;
}

/* Whether the error value on top is the checker's refusal. It must not get lost, because the exit status depends on
 * it. */
static bool was_refused(lua_State *L) {
    if (!lua_istable(L, -1)) return false;
    lua_pushliteral(L, "code");
    lua_rawget(L, -2);
    bool found = lua_type(L, -1) == LUA_TSTRING && strcmp(lua_tostring(L, -1), "hazard") == 0;
    lua_pop(L, 1);
    return found;
}

static mr_status host_call_run(void *context) {
    host_call *call = context;
    lua_State *L = call->machine->hooks.context; /* that of the call that waits or queries */
    if (!lua_checkstack(L, 8))
        return mr_fail(MR_CODE_HOST_FUNCTION, "no stack for a host function");
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->function);
    if (lua_pcall(L, 0, 0, 0) == LUA_OK) return MR_OK;
    mr_code code = was_refused(L) ? MR_CODE_HAZARD : MR_CODE_HOST_FUNCTION;
    /* No Lua error may pass through the device's C code below: an error value's own __tostring can fail, too. */
    lua_pushcfunction(L, error_text);
    lua_insert(L, -2);
    bool shown = lua_pcall(L, 1, 1, 0) == LUA_OK;
    const char *text = shown ? lua_tostring(L, -1) : "with an error object that cannot be shown";
    mr_status status = mr_fail(code, "a host function failed: %s", text);
    lua_pop(L, 1);
    return status;
}

static void host_call_drop(void *context) {
    host_call *call = context;
    luaL_unref(call->main, LUA_REGISTRYINDEX, call->function);
    free(call);
}

MR_FUNCTION(stream_host_func, "host_func", "s:host_func(fn: function)",
            "Submits a host function: `fn()` runs after the earlier work and before the later work "
            "of the stream. It runs in the Lua thread while the host waits or queries (R46). `fn` "
            "must not use the device. If it fails, the call that waited raises the error.") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (!lua_isfunction(L, 2)) mr_bad_argument(L, 2, "a function");
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    lua_State *main = lua_tothread(L, -1);
    lua_settop(L, 2);
    int function = luaL_ref(L, LUA_REGISTRYINDEX); /* first: it may run out of Lua's memory */
    host_call *call = malloc(sizeof *call);
    if (!call) {
        luaL_unref(L, LUA_REGISTRYINDEX, function);
        mr_raise(L, mr_no_memory("for host_func"));
    }
    *call = (host_call){main, caller.machine, function};
    mr_raise(L, mr_stream_host_function(&caller, stream, host_call_run, host_call_drop, call));
    return 0;
}

/* --- closing ------------------------------------------------------------------------------------ */

/* Ends the capture that began on the stream: without the stream the script cannot end it. */
static void end_capture(mr_stream *stream) {
    if (mr_capture_facts_of(stream).origin == stream) mr_capture_abandon(stream);
}

MR_FUNCTION(stream_close, "close", "s:close()",
            "Closes the stream. Returns at once; pending work still runs (R9). Later use of `s` is "
            "an error; closing it again is not. A stream on which a capture began can be closed "
            "only after the end of the capture.") {
    mr_caller caller = mr_enter(L);
    mr_bind_explore_closes_stream(L, mr_stream_at(L, 1));
    mr_raise(L, mr_stream_close(&caller, mr_stream_at(L, 1)));
    return 0;
}

MR_FUNCTION(stream_close_variable, "__close", "", "The end of a <close> variable: s:close().") {
    mr_caller caller = mr_enter(L);
    mr_bind_explore_closes_stream(L, mr_stream_at(L, 1));
    end_capture(mr_stream_at(L, 1));
    mr_error_destroy(mr_stream_close(&caller, mr_stream_at(L, 1)));
    return 0;
}

MR_FUNCTION(stream_gc, "__gc", "", "Drops the reference; waits for nothing (R9).") {
    mr_stream **box = mr_check(L, 1, &mr_kind_stream);
    mr_set_context(L);
    if (*box && (*box)->device->current != *box) end_capture(*box);
    mr_stream_release(*box);
    *box = NULL;
    return 0;
}

MR_FUNCTION(stream_tostring, "__tostring", "",
            "\"stream `copy`\", \"stream #3\", \"the default stream\".") {
    char text[256];
    mr_bind_explore_tells_number(L);
    lua_pushstring(L, mr_stream_describe(mr_stream_at(L, 1), text, sizeof text));
    if (mr_stream_at(L, 1)->closed) {
        lua_pushliteral(L, " (closed)");
        lua_concat(L, 2);
    }
    return 1;
}

/* --- properties --------------------------------------------------------------------------------- */

static int get_device(lua_State *L) {
    mr_push_device(L, mr_stream_at(L, 1)->device);
    return 1;
}

static int get_priority(lua_State *L) {
    lua_pushinteger(L, mr_stream_at(L, 1)->priority);
    return 1;
}

static int get_nonblocking(lua_State *L) {
    lua_pushboolean(L, !mr_stream_at(L, 1)->blocking);
    return 1;
}

static int get_name(lua_State *L) {
    mr_stream *stream = mr_stream_at(L, 1);
    const char *const defaults[] = {"default", "per-thread"};
    if (stream->kind != MR_STREAM_USER) lua_pushstring(L, defaults[stream->kind]);
    else if (stream->name) lua_pushstring(L, stream->name->text);
    else lua_pushnil(L);
    return 1;
}

static int get_id(lua_State *L) {
    mr_bind_explore_tells_number(L);
    lua_pushinteger(L, mr_stream_number(mr_stream_at(L, 1)));
    return 1;
}

static int get_closed(lua_State *L) {
    lua_pushboolean(L, mr_stream_at(L, 1)->closed);
    return 1;
}

/* Code with the handle may submit to the stream. */
static int get_handle(lua_State *L) {
    const mr_outside_slots *slots;
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    mr_raise(L, mr_outside_of(caller.machine, "s.handle", NO_HANDLE, &slots));
    mr_bind_explore_refuse(L, "s.handle: " MR_OUTSIDE_NOT_EXPLORED);
    mr_share_stream(&caller, stream, "s.handle");
    lua_pushinteger(L, (lua_Integer)slots->stream_handle(stream));
    return 1;
}

static const mr_property stream_properties[] = {
    {"device", "device", "The device of the stream.", get_device},
    {"priority", "integer", "The priority, after clamping to the allowed range (R8).",
     get_priority},
    {"nonblocking", "boolean", "Whether the default stream's barrier excludes it (R4).",
     get_nonblocking},
    {"name", "string?",
     "The name given at creation; \"default\" or \"per-thread\" for these two streams.", get_name},
    {"id", "integer", "A unique number.", get_id},
    {"closed", "boolean", "Whether it has been closed.", get_closed},
    {"handle", "integer",
     "CUDA's own handle (CUstream), for code outside of millrace; 0 for the default stream. The "
     "hazard checker does not see work that other code submits. Not available on the virtual GPU.",
     get_handle},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const stream_functions[] = {&stream_wait_event_function,
                                                      &stream_wait_stream_function,
                                                      &stream_wait_function,
                                                      &stream_record_event_function,
                                                      &stream_synchronize_function,
                                                      &stream_query_function,
                                                      &stream_run_function,
                                                      &stream_scope_function,
                                                      &stream_host_func_function,
                                                      &stream_close_function,
                                                      &stream_close_variable_function,
                                                      &stream_gc_function,
                                                      &stream_tostring_function,
                                                      NULL};

const mr_class mr_stream_class = {"stream",
                                  "A queue of work for one device. Its work runs in the order of "
                                  "submission (R1). Work of different streams has no order (R2) "
                                  "unless an event, the default stream or the host creates one.",
                                  stream_functions, stream_properties, &mr_kind_stream};

static const mr_function *const module_functions[] = {
    &mr_stream_new_function,        &mr_default_stream_function,
    &mr_per_thread_stream_function, &mr_current_stream_function,
    &mr_set_stream_function,        &mr_priority_range_function,
    &mr_barrier_function,           NULL};

const mr_class mr_streams_class = {"mr", "Streams.", module_functions, NULL, NULL};

void mr_open_stream(lua_State *L) {
    mr_class_open(L, &mr_stream_class);
    mr_table_open(L, &mr_streams_class);
}
