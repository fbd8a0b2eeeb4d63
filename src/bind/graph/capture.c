/* Capture: mr.graph.begin and finish, and a stream's properties about it. A function is captured on a side stream, as
 * PyTorch does.
 *
 * Easiest to break: the capture ends in every case, also after an error in the function, and the error that is raised
 * is then the function's. */
#include <string.h>

#include "bind/graph/graph.h"
#include "bind/internal.h"
#include "bind/machine/scope.h"
#include "bind/open.h"

/* --- state, options ------------------------------------------------------------------------------ */

static int drop_graph(lua_State *L) {
    mr_graph **box = lua_touserdata(L, 1);
    if (*box) mr_graph_device(*box)->machine->hooks.context = L;
    mr_graph_release(*box);
    *box = NULL;
    return 0;
}

static int drop_stream(lua_State *L) {
    mr_stream **box = lua_touserdata(L, 1);
    mr_stream_release(*box);
    *box = NULL;
    return 0;
}

static mr_capture_mode option_mode(lua_State *L, const mr_option_slots *options) {
    static const char *const names[] = {"global", "thread", "relaxed", NULL};
    const char *name = mr_option_name(L, options, "mode");
    for (int i = 0; names[i] && name; i++)
        if (strcmp(names[i], name) == 0) return (mr_capture_mode)i;
    if (name)
        mr_misuse(L, "mode: expected \"global\", \"thread\" or \"relaxed\", got \"%s\"", name);
    return MR_CAPTURE_GLOBAL;
}

static mr_capture_options capture_options(lua_State *L, const mr_option_slots *given) {
    return (mr_capture_options){.mode = option_mode(L, given),
                                .pool = mr_option_graph_pool(L, given),
                                .keeps_memory = !mr_option_boolean(L, given, "auto_free", true)};
}

/* --- a function ---------------------------------------------------------------------------------- */

static int call_on_stream(lua_State *L) {
    return mr_call_with(L);
}

/* A stream that only this capture uses. Objects made on it outlive it. */
static mr_stream *side_stream(lua_State *L, const mr_caller *caller) {
    mr_stream **box = mr_push_owner(L, sizeof *box, drop_stream);
    mr_stream_options options = {.nonblocking = true, .name = "capture"};
    mr_raise(L, mr_stream_create(caller, caller->machine->current_device, &options, box));
    return *box;
}

static void end_side_stream(const mr_caller *caller, mr_stream *given, mr_stream *stream) {
    if (!given) mr_error_destroy(mr_stream_close(caller, stream));
}

static void check_function(lua_State *L, const char *what, int fn) {
    if (lua_isfunction(L, fn)) return;
    bool is_swapped = mr_test(L, fn, &mr_kind_stream) && lua_isfunction(L, fn + 1);
    mr_misuse(L, "%s: expected a function, got %s%s", what, mr_type_text(L, fn),
              is_swapped ? ": the function comes first, and then {stream = s}" : "");
}

mr_graph *mr_capture_function(lua_State *L, const char *what, int fn, int options) {
    static const char *const known[] = {"stream", "mode", "auto_free", "pool", NULL};
    mr_caller caller = mr_enter(L);
    int before = lua_gettop(L);
    check_function(L, what, fn);
    mr_option_slots slots = mr_check_options(L, options, known);
    mr_stream *given = mr_option_stream(L, &slots, "stream");
    mr_capture_options how = capture_options(L, &slots);
    mr_graph **box = mr_push_owner(L, sizeof *box, drop_graph);
    int first = lua_gettop(L);
    mr_stream *stream = given ? given : side_stream(L, &caller);
    mr_push_module(L);
    lua_pushcclosure(L, call_on_stream, 1);
    mr_push_stream(L, &stream); /* keeps it */
    lua_pushvalue(L, -1);
    lua_insert(L, first + 1);
    lua_pushvalue(L, fn);
    mr_raise(L, mr_capture_begin(&caller, stream, &how));
    uint64_t id = mr_capture_facts_of(stream).id;
    int status = lua_pcall(L, 2, LUA_MULTRET, 0);
    mr_set_context(L);
    if (status != LUA_OK) {
        if (mr_capture_facts_of(stream).id == id) mr_capture_abandon(stream);
        end_side_stream(&caller, given, stream);
        lua_error(L);
    }
    mr_caller ends = caller;
    ends.name = "graph";
    mr_status finished = mr_capture_finish(&ends, stream, box);
    end_side_stream(&caller, given, stream);
    mr_raise(L, finished);
    int kept = given ? first + 1 : first + 2; /* the stream's box comes before its userdata */
    while (kept > first) lua_remove(L, kept--);
    while (--first > before) lua_remove(L, first); /* the values of options */
    return *box;
}

MR_FUNCTION(
    graph_capture, "capture",
    "mr.graph.capture(fn: function [, opts: {stream: stream, mode: string=\"global\", "
    "auto_free: boolean=true, pool: graph_pool}]) -> g: graph, ...",
    "Captures `fn()` and returns the graph, and what `fn` returned. The same as mr.graph(fn, "
    "opts). Nothing is carried out: g:launch() does that, as often as it is called (R35). `fn` "
    "runs with a stream of its own as the current one, or with `stream`. Tensors that it makes "
    "have fixed addresses, and each launch writes them again (R44). `mode`: which calls of the "
    "host are an error meanwhile (R40): \"global\", \"thread\" or \"relaxed\". `auto_free`=false: "
    "a launch is an error while memory of the last launch is not freed, as in CUDA. `pool`: the "
    "graph shares memory with other graphs of this pool (mr.graph.pool).") {
    lua_settop(L, 2);
    mr_graph *graph = mr_capture_function(L, "capture", 1, 2);
    mr_caller caller = mr_enter(L);
    mr_executable **box = mr_new_graph(L);
    mr_raise(L, mr_graph_instantiate(&caller, graph, box));
    lua_replace(L, 3); /* the graph's owner */
    return lua_gettop(L) - 2;
}

/* --- piece by piece ------------------------------------------------------------------------------ */

MR_FUNCTION(
    graph_begin, "begin",
    "mr.graph.begin(s: stream [, opts: {mode: string=\"global\", auto_free: boolean=true, "
    "pool: graph_pool}])",
    "Begins a capture on the stream (cudaStreamBeginCapture). Its work from now on is "
    "captured and not carried out. A stream that waits for an event of the capture joins it "
    "(R36). mr.graph.finish(s) ends it.") {
    static const char *const known[] = {"mode", "auto_free", "pool", NULL};
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    mr_option_slots slots = mr_check_options(L, 2, known);
    mr_capture_options how = capture_options(L, &slots);
    mr_raise(L, mr_capture_begin(&caller, stream, &how));
    return 0;
}

MR_FUNCTION(
    graph_finish, "finish", "mr.graph.finish(s: stream) -> g: graph",
    "Ends the capture that began on this stream (cudaStreamEndCapture), and returns its graph. "
    "Each stream that joined it must have been joined to `s` again (R36). After an error the "
    "streams can be used as before.") {
    mr_caller caller = mr_enter(L);
    mr_stream *stream = mr_check_stream(L, 1);
    mr_graph **graph = mr_push_owner(L, sizeof *graph, drop_graph);
    mr_executable **box = mr_new_graph(L);
    mr_raise(L, mr_capture_finish(&caller, stream, graph));
    mr_raise(L, mr_graph_instantiate(&caller, *graph, box));
    return 1;
}

/* --- streams ------------------------------------------------------------------------------------- */

MR_FUNCTION(
    stream_is_capturing, "is_capturing", "s:is_capturing() -> capturing: boolean",
    "Returns whether the stream captures: it began a capture, or joined one. Also true for a "
    "capture that has been invalidated (R38).") {
    mr_machine_of(L);
    lua_pushboolean(L, mr_capture_facts_of(mr_stream_at(L, 1)).capturing);
    return 1;
}

MR_FUNCTION(stream_capture_info, "capture_info", "s:capture_info() -> info: table",
            "Returns {status=\"none\", \"active\" or \"invalidated\", id=, mode=, nodes= (so far), "
            "where= (of its begin), origin= (its first stream), reason= and reason_where= (of the "
            "call that invalidated it)}.") {
    static const char *const modes[] = {"global", "thread", "relaxed"};
    mr_set_context(L);
    mr_capture_facts facts = mr_capture_facts_of(mr_stream_at(L, 1));
    mr_stream *origin = (mr_stream *)facts.origin;
    mr_buffer *reason = mr_push_buffer(L);
    if (facts.invalidated) mr_buffer_puts(reason, facts.reason);
    lua_createtable(L, 0, 8);
    lua_pushstring(L, !facts.capturing ? "none" : facts.invalidated ? "invalidated" : "active");
    lua_setfield(L, -2, "status");
    if (!facts.capturing) return 1;
    lua_pushinteger(L, (lua_Integer)facts.id);
    lua_setfield(L, -2, "id");
    lua_pushstring(L, modes[facts.mode]);
    lua_setfield(L, -2, "mode");
    lua_pushinteger(L, facts.nodes);
    lua_setfield(L, -2, "nodes");
    mr_push_site(L, facts.begun);
    lua_setfield(L, -2, "where");
    if (facts.invalidated) {
        lua_pushvalue(L, -2);
        mr_buffer_to_text(L);
        lua_setfield(L, -2, "reason");
        mr_push_site(L, facts.reason_where);
        lua_setfield(L, -2, "reason_where");
    }
    facts = mr_capture_facts_of(mr_stream_at(L, 1)); /* a finalizer may have ended it */
    if (facts.origin && facts.origin == origin) {
        mr_push_stream(L, &origin);
        lua_setfield(L, -2, "origin");
    }
    return 1;
}

static const mr_function *const stream_functions[] = {&stream_is_capturing_function,
                                                      &stream_capture_info_function, NULL};

const mr_class mr_stream_capture_class = {"stream", "Streams and captures.", stream_functions, NULL,
                                          &mr_kind_stream};

/* --- opening ------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {&graph_capture_function, &graph_begin_function,
                                               &graph_finish_function, NULL};

const mr_class mr_graphs_class = {
    "mr.graph",
    "Graphs: work of streams, captured once and launched many times. mr.graph(fn) captures "
    "a "
    "function; the others are the pieces. docs/graphs.md explains captures and their errors.",
    functions, NULL, NULL};

/* mr.graph(...): the table itself is argument 1. */
static int call_table(lua_State *L) {
    lua_remove(L, 1);
    check_function(L, "graph", 1);
    return graph_capture(L);
}

void mr_open_graph_capture(lua_State *L) {
    mr_class_extend(L, &mr_stream_capture_class);
    lua_createtable(L, 0, 8);
    mr_table_open(L, &mr_graphs_class);
    mr_table_open(L, &mr_graph_auto_class);
    mr_table_open(L, &mr_graph_pools_class);
    lua_createtable(L, 0, 1);
    mr_push_module(L);
    lua_pushcclosure(L, call_table, 1);
    lua_setfield(L, -2, "__call");
    lua_setmetatable(L, -2);
    lua_setfield(L, -2, "graph");
}
