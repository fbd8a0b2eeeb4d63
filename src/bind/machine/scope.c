/* Scopes: a stream or device is current until the scope ends (mr.with, s:run, s:scope). */
#include "bind/machine/scope.h"
#include "bind/internal.h"
#include "bind/open.h"

/* The state to restore at the end of a scope: the current device, and the current stream of the device that the scope
 * is for. */
typedef struct {
    mr_device *device;
    mr_stream *stream; /* owned; NULL: the scope is over */
    uint32_t epoch;
} scope;

static const mr_kind scope_kind = {.text = "a scope"};

/* Enters a scope for the stream or device at `arg`. */
static void scope_enter(lua_State *L, int arg, scope *s) {
    mr_machine *machine = mr_set_context(L);
    mr_stream *stream = NULL;
    mr_device *target;
    if (mr_test(L, arg, &mr_kind_stream)) {
        stream = mr_check_stream(L, arg);
        target = stream->device;
    } else if (lua_type(L, arg) == LUA_TNUMBER || mr_test(L, arg, &mr_kind_device)) {
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

/* Idempotent. After a reset the defaults stay. If the previous stream was closed meanwhile, its device's default stream
 * becomes current, as when a current stream is closed. */
static void scope_leave(mr_machine *machine, scope *s) {
    if (!s->stream) return;
    mr_stream *stream = s->stream;
    s->stream = NULL;
    if (s->epoch == machine->epoch) {
        mr_stream *current = stream->closed ? stream->device->legacy : stream;
        mr_error_destroy(mr_stream_set_current(current)); /* of this machine, and open */
        mr_machine_set_device(machine, s->device);
    }
    mr_stream_release(stream);
}

MR_FUNCTION(scope_close, "__close", "", "Ends the scope.") {
    mr_machine *machine = mr_set_context(L);
    scope_leave(machine, mr_check(L, 1, &scope_kind));
    return 0;
}

MR_FUNCTION(
    scope_gc, "__gc", "",
    "Releases the stream of the scope. If the scope was never closed, the current stream stays.") {
    scope *s = mr_check(L, 1, &scope_kind);
    mr_set_context(L);
    mr_stream_release(s->stream);
    s->stream = NULL;
    return 0;
}

static const mr_function *const scope_functions[] = {&scope_close_function, &scope_gc_function,
                                                     NULL};
static const mr_class scope_class = {"scope", "The result of s:scope(), for a <close> variable.",
                                     scope_functions, NULL, &scope_kind};

int mr_push_scope(lua_State *L) {
    scope *s = mr_new(L, &scope_kind, sizeof *s);
    scope_enter(L, 1, s);
    return 1;
}

/* A function, or an object that can be called like one. */
static bool is_callable(lua_State *L, int arg) {
    if (lua_isfunction(L, arg)) return true;
    if (luaL_getmetafield(L, arg, "__call") == LUA_TNIL) return false;
    lua_pop(L, 1);
    return true;
}

/* The scope is at 1; the results, or the error, are after it. */
static int end_of_call(lua_State *L, int status, lua_KContext context) {
    (void)context;
    scope_leave(mr_set_context(L), mr_check(L, 1, &scope_kind));
    if (status != LUA_OK && status != LUA_YIELD) return lua_error(L);
    return lua_gettop(L) - 1;
}

int mr_call_with(lua_State *L) {
    if (!is_callable(L, 2)) mr_bad_argument(L, 2, "a function");
    scope *s = mr_new(L, &scope_kind, sizeof *s);
    scope_enter(L, 1, s);
    lua_replace(L, 1); /* the scope where the stream was: it lives as long as the call */
    /* A task may yield in it. */
    int status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, end_of_call);
    return end_of_call(L, status, 0);
}

void mr_open_scope(lua_State *L) {
    mr_class_open(L, &scope_class);
}
