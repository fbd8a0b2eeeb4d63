/* The timeline of the session: see timeline.h.
 *
 * Easiest to break: the tracer is an observer of the machine, so it ends before the machine closes. Its owner was made
 * after the module, and Lua finalises in the opposite order. */
#include "repl/timeline.h"

#include <lauxlib.h>

#include "bind/bind.h"
#include "bind/trace/trace.h"
#include "model/backend.h"
#include "trace/record/tracer.h"

#define MOST_SPANS 100000

typedef struct {
    mr_tracer *tracer; /* NULL: not started */
} box;

static int stop(lua_State *L) {
    box *b = lua_touserdata(L, 1);
    if (mr_bind_machine(L)) mr_tracer_stop(b->tracer);
    b->tracer = NULL;
    return 0;
}

/* timeline([first]) -> the trace of the session; false: it begins only now, as tracing a GPU costs time.
 * timeline("count") -> the number of spans so far, also those of before a reset; it begins nothing. */
static int timeline(lua_State *L) {
    box *b = lua_touserdata(L, lua_upvalueindex(1));
    if (lua_type(L, 1) == LUA_TSTRING) {
        lua_pushinteger(L, b->tracer ? (lua_Integer)mr_tracer_count(b->tracer) : 0);
        return 1;
    }
    if (!b->tracer) {
        mr_raise(L, mr_tracer_start(mr_bind_machine(L), MOST_SPANS, &b->tracer));
        lua_pushboolean(L, false);
        return 1;
    }
    lua_Integer first = luaL_optinteger(L, 1, 0);
    const mr_trace **kept = mr_new_trace(L);
    mr_trace *trace = NULL;
    mr_raise(L, mr_tracer_snapshot(b->tracer, (uint64_t)first, NULL, 0, &trace));
    *kept = trace;
    return 1;
}

void mr_repl_timeline_push(lua_State *L) {
    mr_machine *machine = mr_bind_machine(L);
    box *b = mr_push_owner(L, sizeof *b, stop);
    if (machine && machine->backend->simulator)
        mr_error_destroy(mr_tracer_start(machine, MOST_SPANS, &b->tracer));
    lua_pushcclosure(L, timeline, 1);
}
