/* The userdata of a stream. The box owns one reference; closing twice, or after the collector, is
 * nothing (one idempotent path for close, __close and __gc). */
#include <string.h>

#include "bind/internal.h"
#include "bind/registry.h"

/* --- state, check, constructor ------------------------------------------------------------------ */

static mr_stream *stream_at(lua_State *L, int arg) {
    mr_stream **box = mr_check(L, arg, &mr_stream_class);
    if (!*box) mr_misuse(L, "the stream has been finalised"); /* only the debug library gets here */
    return *box;
}

mr_stream *mr_check_stream(lua_State *L, int arg) {
    mr_stream *stream = stream_at(L, arg);
    mr_raise(L, mr_stream_usable(stream));
    return stream;
}

mr_stream *mr_opt_stream(lua_State *L, int arg) {
    if (lua_isnoneornil(L, arg)) return mr_bind_machine(L)->current_device->current;
    return mr_check_stream(L, arg);
}

void mr_push_stream(lua_State *L, mr_stream *stream) {
    if (mr_registry_push(L, stream)) return;
    mr_stream **box = mr_new(L, &mr_stream_class, sizeof *box);
    *box = stream;
    mr_stream_retain(stream);
    mr_registry_add(L, stream);
}

MR_FUNCTION(
    mr_stream_new, "stream",
    "mr.stream([opts: {priority: integer=0, nonblocking: boolean=true, device: "
    "device|integer, name: string}]) -> stream: stream",
    "A new stream on the current device or the one named. Non-blocking by default, as in "
    "PyTorch: it takes no part in the default stream's barrier (R4). Lower priority numbers go "
    "first; values out of range are clamped (R8).") {
    static const char *const known[] = {"priority", "nonblocking", "device", "name", NULL};
    mr_machine *machine = mr_enter(L);
    mr_options_check(L, 1, known);
    lua_Integer priority = mr_option_integer(L, 1, "priority", 0);
    mr_device *device = mr_option_device(L, 1, "device");
    mr_stream_options options = {
        .nonblocking = mr_option_boolean(L, 1, "nonblocking", true),
        .priority = priority > 1000    ? 1000
                    : priority < -1000 ? -1000
                                       : (int)priority,
        .name = mr_option_name(L, 1, "name"),
    };
    mr_stream **box = mr_new(L, &mr_stream_class, sizeof *box);
    mr_raise(L, mr_stream_create(device ? device : machine->current_device, &options, box));
    mr_registry_add(L, *box);
    return 1;
}

static mr_device *device_or_current(lua_State *L, mr_machine *machine, int arg) {
    return lua_isnoneornil(L, arg) ? machine->current_device : mr_check_device(L, arg);
}

MR_FUNCTION(
    mr_default_stream, "default_stream",
    "mr.default_stream([device: device|integer]) -> stream: stream",
    "The legacy default stream: its work waits for all earlier work of the blocking streams of "
    "its device, and their later work waits for it (R3).") {
    mr_push_stream(L, device_or_current(L, mr_enter(L), 1)->legacy);
    return 1;
}

MR_FUNCTION(
    mr_per_thread_stream, "per_thread_stream",
    "mr.per_thread_stream([device: device|integer]) -> stream: stream",
    "The per-thread default stream: an ordinary blocking stream with a fixed handle (R6).") {
    mr_push_stream(L, device_or_current(L, mr_enter(L), 1)->per_thread);
    return 1;
}

MR_FUNCTION(mr_current_stream, "current_stream",
            "mr.current_stream([device: device|integer]) -> stream: stream",
            "Where operations go when no stream is named: at the start, the default stream.") {
    mr_push_stream(L, device_or_current(L, mr_enter(L), 1)->current);
    return 1;
}

MR_FUNCTION(mr_set_stream, "set_stream", "mr.set_stream(s: stream)",
            "Makes a stream current on its device, and its device current; waits for nothing.") {
    mr_machine_of(L); /* submits nothing, so nobody asks where */
    mr_raise(L, mr_stream_set_current(mr_check_stream(L, 1)));
    return 0;
}

MR_FUNCTION(
    mr_priority_range, "priority_range", "mr.priority_range() -> least: integer, greatest: integer",
    "The priorities that streams of the current device can have; the greatest is the smaller "
    "number (R8).") {
    const mr_device_properties *p = &mr_machine_of(L)->current_device->properties;
    lua_pushinteger(L, p->priority_least);
    lua_pushinteger(L, p->priority_greatest);
    return 2;
}

/* Entry i of the table at 1, which the table keeps alive. */
static mr_stream *barrier_stream(lua_State *L, lua_Unsigned i) {
    lua_rawgeti(L, 1, (lua_Integer)i);
    mr_stream *stream = *(mr_stream **)mr_test(L, -1, &mr_stream_class);
    lua_pop(L, 1);
    return stream;
}

MR_FUNCTION(
    mr_barrier, "barrier", "mr.barrier(streams: stream[])",
    "Later work of each of these streams waits for what has been submitted to all of them so "
    "far; the host waits for nothing.") {
    mr_machine *machine = mr_enter(L);
    if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "a table of streams");
    lua_Unsigned count = lua_rawlen(L, 1);
    for (lua_Unsigned i = 1; i <= count; i++) { /* all are looked at before the first is touched */
        lua_rawgeti(L, 1, (lua_Integer)i);
        if (!mr_test(L, -1, &mr_stream_class))
            mr_misuse(L, "barrier: entry %d: expected a stream, got %s", (int)i,
                      mr_type_text(L, -1));
        mr_check_stream(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    if (count < 2) return 0; /* its own earlier work is ordered already (R1) */
    /* The first one waits for all others, then they for it: 2n waits instead of n times n. */
    mr_stream *first = barrier_stream(L, 1);
    for (lua_Unsigned i = 2; i <= count; i++)
        mr_raise(L, mr_stream_wait_stream(first, barrier_stream(L, i)));
    mr_event_options options = {0};
    mr_event **all = mr_new(L, &mr_event_class, sizeof *all);
    mr_raise(L, mr_event_create(machine, &options, all));
    mr_raise(L, mr_event_record(*all, first));
    for (lua_Unsigned i = 2; i <= count; i++)
        mr_raise(L, mr_stream_wait_event(barrier_stream(L, i), *all));
    return 0;
}

/* --- methods ------------------------------------------------------------------------------------ */

MR_FUNCTION(
    stream_wait_event, "wait_event", "s:wait_event(e: event)",
    "Later work of `s` waits for the event's most recent record; the host does not wait (R12, "
    "R15). An event that was never recorded delays nothing (R13).") {
    mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    mr_raise(L, mr_stream_wait_event(stream, mr_check_event(L, 2)));
    return 0;
}

MR_FUNCTION(stream_wait_stream, "wait_stream", "s:wait_stream(other: stream)",
            "Later work of `s` waits for what has been submitted to `other` so far.") {
    mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    mr_raise(L, mr_stream_wait_stream(stream, mr_check_stream(L, 2)));
    return 0;
}

MR_FUNCTION(stream_wait, "wait", "s:wait(x: event|stream)",
            "wait_event or wait_stream, by what `x` is.") {
    mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (mr_test(L, 2, &mr_event_class))
        mr_raise(L, mr_stream_wait_event(stream, mr_check_event(L, 2)));
    else if (mr_test(L, 2, &mr_stream_class))
        mr_raise(L, mr_stream_wait_stream(stream, mr_check_stream(L, 2)));
    else mr_bad_argument(L, 2, "an event or a stream");
    return 0;
}

MR_FUNCTION(
    stream_record_event, "record_event", "s:record_event([e: event]) -> e: event",
    "Records the event, or a new one, behind what `s` has been given so far, and returns it "
    "(R11).") {
    mr_machine *machine = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    lua_settop(L, 2);
    if (lua_isnil(L, 2)) {
        mr_event_options options = {0};
        mr_event **box = mr_new(L, &mr_event_class, sizeof *box);
        mr_raise(L, mr_event_create(machine, &options, box));
        mr_registry_add(L, *box);
    }
    mr_raise(L, mr_event_record(mr_check_event(L, lua_gettop(L)), stream));
    return 1;
}

MR_FUNCTION(
    stream_synchronize, "synchronize", "s:synchronize()",
    "The host waits for everything submitted to `s` so far (R10); on the default stream, for "
    "the blocking streams of its device too.") {
    mr_enter(L);
    mr_raise(L, mr_stream_synchronize(mr_check_stream(L, 1)));
    return 0;
}

MR_FUNCTION(
    stream_query, "query", "s:query() -> done: boolean",
    "Whether all submitted work is done; never waits. `true` orders like synchronize (R10).") {
    bool done;
    mr_enter(L);
    mr_raise(L, mr_stream_query(mr_check_stream(L, 1), &done));
    lua_pushboolean(L, done);
    return 1;
}

MR_FUNCTION(stream_run, "run", "s:run(fn: function, ...) -> ...",
            "The same as mr.with(s, fn, ...).") {
    mr_check_stream(L, 1);
    return mr_call_with(L);
}

MR_FUNCTION(stream_scope, "scope", "s:scope() -> scope: scope",
            "Makes `s` current until the variable that holds the scope is closed: "
            "`local _ <close> = s:scope()`.") {
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

/* The error value on top is the checker's, which must not get lost: the exit status hangs on it. */
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
    lua_State *L = call->machine->hook_context; /* of the call that waits or asks */
    if (!lua_checkstack(L, 8))
        return mr_fail(MR_CODE_HOST_FUNCTION, "no stack for a host function");
    lua_rawgeti(L, LUA_REGISTRYINDEX, call->function);
    if (lua_pcall(L, 0, 0, 0) == LUA_OK) return MR_OK;
    mr_code code = was_refused(L) ? MR_CODE_HAZARD : MR_CODE_HOST_FUNCTION;
    /* Nothing may jump over the device below: an error value's own __tostring can fail too. */
    lua_pushcfunction(L, error_text);
    lua_insert(L, -2);
    bool shown = lua_pcall(L, 1, 1, 0) == LUA_OK;
    const char *text = shown ? lua_tostring(L, -1) : "with an error that cannot be shown";
    mr_status status = mr_fail(code, "a host function failed: %s", text);
    lua_pop(L, 1);
    return status;
}

static void host_call_drop(void *context) {
    host_call *call = context;
    luaL_unref(call->main, LUA_REGISTRYINDEX, call->function);
    free(call);
}

MR_FUNCTION(
    stream_host_func, "host_func", "s:host_func(fn: function)",
    "Runs `fn()` in the order of the stream: after its earlier work, before its later work, on "
    "the Lua thread, while the host waits or asks (R46). `fn` may not use the device. If it "
    "fails, the call that waited raises the error.") {
    mr_machine *machine = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    if (!lua_isfunction(L, 2)) mr_bad_argument(L, 2, "a function");
    host_call *call = malloc(sizeof *call);
    if (!call) mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "host_func: no memory"));
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    *call = (host_call){lua_tothread(L, -1), machine, LUA_NOREF};
    lua_settop(L, 2);
    call->function = luaL_ref(L, LUA_REGISTRYINDEX);
    mr_raise(L, mr_stream_host_function(stream, host_call_run, host_call_drop, call));
    return 0;
}

/* --- closing ------------------------------------------------------------------------------------ */

MR_FUNCTION(
    stream_close, "close", "s:close()",
    "Gives the stream up: returns at once, pending work completes (R9). Later use of `s` is an "
    "error; closing again is not.") {
    mr_enter(L);
    mr_raise(L, mr_stream_close(stream_at(L, 1)));
    return 0;
}

MR_FUNCTION(stream_close_variable, "__close", "", "The end of a <close> variable: s:close().") {
    mr_lend_stack(L);
    mr_error_destroy(mr_stream_close(stream_at(L, 1)));
    return 0;
}

MR_FUNCTION(stream_gc, "__gc", "", "Drops the reference; waits for nothing (R9).") {
    mr_stream **box = mr_check(L, 1, &mr_stream_class);
    mr_lend_stack(L);
    mr_stream_release(*box);
    *box = NULL;
    return 0;
}

MR_FUNCTION(stream_tostring, "__tostring", "",
            "\"stream `copy`\", \"stream #3\", \"the default stream\".") {
    char text[256];
    lua_pushstring(L, mr_stream_describe(stream_at(L, 1), text, sizeof text));
    if (stream_at(L, 1)->closed) {
        lua_pushliteral(L, " (closed)");
        lua_concat(L, 2);
    }
    return 1;
}

/* --- properties --------------------------------------------------------------------------------- */

static int get_device(lua_State *L) {
    mr_push_device(L, stream_at(L, 1)->device);
    return 1;
}

static int get_priority(lua_State *L) {
    lua_pushinteger(L, stream_at(L, 1)->priority);
    return 1;
}

static int get_nonblocking(lua_State *L) {
    lua_pushboolean(L, !stream_at(L, 1)->blocking);
    return 1;
}

static int get_name(lua_State *L) {
    mr_stream *stream = stream_at(L, 1);
    const char *const defaults[] = {"default", "per-thread"};
    if (stream->kind != MR_STREAM_USER) lua_pushstring(L, defaults[stream->kind]);
    else if (stream->name) lua_pushstring(L, stream->name);
    else lua_pushnil(L);
    return 1;
}

static int get_id(lua_State *L) {
    lua_pushinteger(L, stream_at(L, 1)->id);
    return 1;
}

static int get_closed(lua_State *L) {
    lua_pushboolean(L, stream_at(L, 1)->closed);
    return 1;
}

static const mr_property stream_properties[] = {
    {"device", "device", "The device that it belongs to.", get_device},
    {"priority", "integer", "As clamped at creation (R8).", get_priority},
    {"nonblocking", "boolean", "Whether the default stream's barrier leaves it out (R4).",
     get_nonblocking},
    {"name", "string?", "As given at creation; \"default\" and \"per-thread\" for those.",
     get_name},
    {"id", "integer", "A number that no other stream has.", get_id},
    {"closed", "boolean", "Whether it has been given up.", get_closed},
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

const mr_class mr_stream_class = {
    "stream",
    "A queue of one device: its work runs in the order of submission (R1), and in no order "
    "with that of other streams (R2) unless an event, the default stream or the host makes one.",
    stream_functions, stream_properties};

static const mr_function *const module_functions[] = {
    &mr_stream_new_function,        &mr_default_stream_function,
    &mr_per_thread_stream_function, &mr_current_stream_function,
    &mr_set_stream_function,        &mr_priority_range_function,
    &mr_barrier_function,           NULL};

const mr_class mr_streams_class = {"mr", "Streams.", module_functions, NULL};

void mr_open_stream(lua_State *L, mr_machine *machine) {
    mr_class_open(L, machine, &mr_stream_class);
    mr_table_open(L, machine, &mr_streams_class);
}
