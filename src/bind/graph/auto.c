/* mr.graph.auto: functions that become graphs by themselves. The script gets a Lua function, a
 * closure over the record and the script's function.
 *
 * Easiest to break: each begin of a call needs its end, also after an error in the function. */
#include "bind/bind.h"
#include "bind/field.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "graph/auto.h"

/* Upvalues of the function; 1 is the module. */
enum { UPVALUE_AUTO = 2, UPVALUE_FUNCTION = 3 };

static int drop_auto(lua_State *L) {
    mr_auto **box = lua_touserdata(L, 1);
    mr_auto *a = *box;
    *box = NULL;
    if (a) mr_auto_machine(a)->hooks.context = L;
    mr_auto_free(a);
    return 0;
}

static mr_auto *checked(lua_State *L, int index) {
    mr_auto *a = *(mr_auto **)lua_touserdata(L, index);
    if (!a) mr_misuse(L, "auto: Lua closes, and has taken the function's record already");
    return a;
}

static int call_auto(lua_State *L) {
    int given = lua_gettop(L);
    mr_caller caller = mr_enter(L);
    mr_auto *a = checked(L, lua_upvalueindex(UPVALUE_AUTO));
    luaL_checkstack(L, 2, "too many arguments");
    lua_pushvalue(L, lua_upvalueindex(UPVALUE_FUNCTION));
    lua_insert(L, 1);
    mr_raise(L, mr_auto_begin(&caller, a, caller.machine->current_device->current));
    int failed = lua_pcall(L, given, LUA_MULTRET, 0);
    mr_set_context(L);
    mr_status status = mr_auto_end(&caller, a, failed != LUA_OK);
    if (failed) {
        mr_error_destroy(status); /* the function's own error came first */
        return lua_error(L);
    }
    mr_raise(L, status);
    return lua_gettop(L);
}

MR_FUNCTION(
    graph_auto, "auto", "mr.graph.auto(fn: function) -> f: function",
    "Returns a function that calls `fn` with the same arguments and returns what it returns. If a "
    "call submits exactly the same work as the call before, a graph is launched instead. `fn` "
    "still runs at each call, so the values are always those of `fn`. Tensors that a call makes "
    "are valid until the next call: clone() a tensor to keep it longer. mr.graph.why(f) says why a "
    "call did not launch a graph. docs/graphs.md explains it.") {
    mr_caller caller = mr_enter(L);
    if (!lua_isfunction(L, 1))
        mr_misuse(L, "auto: expected a function, got %s", mr_type_text(L, 1));
    mr_push_module(L);
    mr_auto **box = mr_push_owner(L, sizeof *box, drop_auto);
    mr_raise(L, mr_auto_new(&caller, box));
    lua_pushvalue(L, 1);
    lua_pushcclosure(L, call_auto, 3);
    return 1;
}

MR_FUNCTION(
    graph_why, "why", "mr.graph.why(f: function) -> why: string?, counts: table",
    "Says why the last call of a function of mr.graph.auto did not launch a graph. nil: it did. "
    "Otherwise it names the first difference from the call before, or the first action that no "
    "graph "
    "can do, with its line. `counts`: {calls=, launches=, captures= (graphs that were made), "
    "nodes= (of the graph)}.") {
    mr_machine_of(L);
    if (lua_tocfunction(L, 1) != call_auto)
        mr_misuse(L, "why: expected a function that mr.graph.auto returned, got %s",
                  mr_type_text(L, 1));
    lua_getupvalue(L, 1, UPVALUE_AUTO);
    mr_auto_facts facts = mr_auto_facts_of(checked(L, -1));
    if (facts.why[0]) lua_pushstring(L, facts.why);
    else lua_pushnil(L);
    lua_createtable(L, 0, 4);
    mr_set_integer(L, "calls", facts.calls);
    mr_set_integer(L, "launches", facts.launches);
    mr_set_integer(L, "captures", facts.captures);
    mr_set_integer(L, "nodes", facts.nodes);
    return 2;
}

static const mr_function *const functions[] = {&graph_auto_function, &graph_why_function, NULL};

const mr_class mr_graph_auto_class = {"mr.graph", "Functions that become graphs by themselves.",
                                      functions, NULL, NULL};
