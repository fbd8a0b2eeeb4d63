/* The userdata of a graph: it owns one executable, and with it the graph that this launches. */
#include <stdio.h>
#include <string.h>

#include "base/output.h"
#include "base/replace.h"
#include "bind/ranks/comm.h"
#include "bind/explore.h"
#include "bind/field.h"
#include "bind/graph/graph.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/outside.h"

/* --- state, check, constructor ------------------------------------------------------------------- */

static mr_graph *graph_at(lua_State *L, int arg) {
    return mr_executable_graph(mr_check_graph(L, arg));
}

static int drop_executable(lua_State *L) {
    mr_executable **box = lua_touserdata(L, 1);
    if (*box) mr_graph_device(mr_executable_graph(*box))->machine->hooks.context = L;
    mr_executable_release(*box);
    *box = NULL;
    return 0;
}

/* Keeps the executable at `arg` unchanged until the call ends: a finalizer may update or close the graph. */
static mr_executable *keep(lua_State *L, int arg) {
    mr_check_graph(L, arg);
    mr_executable **box = mr_push_owner(L, sizeof *box, drop_executable);
    mr_executable *x = *box = mr_check_graph(L, arg);
    mr_executable_retain(x);
    return x;
}

/* --- launching ----------------------------------------------------------------------------------- */

MR_FUNCTION(
    graph_launch, "launch", "g:launch([s: stream])",
    "Launches the graph on the stream, or on the current one (cudaGraphLaunch). It runs after the "
    "earlier work of the stream and earlier launches of `g` on any stream, and before the later "
    "work of the stream (R42). The host does not wait. On a capturing stream, the graph becomes a "
    "part of what is captured. Collectives of the graph are called again by each launch, and may "
    "wait for other ranks to call them, or to launch theirs.") {
    mr_caller caller = mr_enter(L);
    lua_settop(L, 2);
    mr_check_graph(L, 1);
    if (lua_isnil(L, 2)) {
        mr_push_stream(L, &mr_graph_device(graph_at(L, 1))->current);
        lua_replace(L, 2);
    }
    mr_graph_copy_inputs(L, mr_check_stream(L, 2));
    /* Copies run hooks. */
    mr_executable *x = mr_check_graph(L, 1);
    mr_stream *stream = mr_check_stream(L, 2);
    if (mr_graph_has_calls(mr_executable_graph(x))) mr_check_may_meet(L);
    mr_raise(L, mr_executable_launch(&caller, x, stream));
    return 0;
}

MR_FUNCTION(
    graph_instantiate, "instantiate", "g:instantiate() -> other: graph",
    "Makes a second executable of the same graph (cudaGraphInstantiate). Launches of `g` wait "
    "for each other, and launches of `other` do not wait for them (R42). A graph that allocates "
    "memory has one executable only (R44).") {
    mr_caller caller = mr_enter(L);
    keep(L, 1);
    mr_executable **box = mr_new_graph(L);
    mr_raise(L, mr_graph_instantiate(&caller, graph_at(L, 1), box));
    return 1;
}

MR_FUNCTION(
    graph_update, "update",
    "g:update(fn: function [, opts: {stream: stream, mode: string=\"global\", auto_free: "
    "boolean=true, pool: graph_pool}]) -> ...",
    "Captures `fn()`; later launches of `g` run that work (cudaGraphExecUpdate). Earlier launches "
    "are not affected (R43). Nodes and edges must be the same; what they read "
    "and write, and their numbers, may differ. Otherwise the error 910 names the first difference, "
    "and `g` is as it was. Returns what `fn` returned.") {
    lua_settop(L, 3);
    mr_check_graph(L, 1);
    mr_graph *graph = mr_capture_function(L, "update", 2, 3);
    mr_caller caller = mr_enter(L);
    mr_raise(L, mr_executable_update(&caller, mr_check_graph(L, 1), graph));
    return lua_gettop(L) - 4;
}

/* The index of a node of the graph at 1, from 0. */
static uint32_t check_node(lua_State *L, int arg, const char *name) {
    lua_Integer i = mr_check_integer(L, arg), count = mr_graph_count(graph_at(L, 1));
    if (i < 1 || i > count)
        mr_misuse(L, "%s: the graph has nodes 1 to %d, and no %lld", name, (int)count,
                  (long long)i);
    return (uint32_t)i - 1;
}

MR_FUNCTION(graph_enable, "enable", "g:enable(i: integer [, on: boolean=true])",
            "Switches node `i` on or off for later launches (cudaGraphNodeSetEnabled). Its place "
            "in the order "
            "stays (R43).") {
    mr_machine_of(L);
    mr_executable *x = mr_check_graph(L, 1);
    uint32_t i = check_node(L, 2, "enable");
    bool on = lua_isnoneornil(L, 3) || lua_toboolean(L, 3);
    mr_raise(L, mr_executable_enable(x, i, on));
    return 0;
}

MR_FUNCTION(graph_set, "set", "g:set(i: integer, fn: function)",
            "Gives node `i` other tensors and numbers in later launches of `g` "
            "(cudaGraphExecKernelNodeSetParams, cudaGraphExecMemcpyNodeSetParams and their like): "
            "those of the one operation, copy or launch that `fn()` submits. This is captured and "
            "does not run. The node keeps its operation and its place in the order; earlier "
            "launches are not affected (R43).") {
    lua_settop(L, 4);
    check_node(L, 2, "set");
    mr_graph *from = mr_capture_function(L, "set", 3, 4);
    mr_caller caller = mr_enter(L);
    uint32_t i = check_node(L, 2, "set"); /* the function may have closed the graph */
    mr_raise(L, mr_executable_set(&caller, mr_check_graph(L, 1), i, from));
    return 0;
}

/* --- looking ------------------------------------------------------------------------------------- */

static void push_operands(lua_State *L, const mr_command *command, uint8_t access) {
    lua_newtable(L);
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_operand *o = &command->operands[k];
        char name[64];
        if (!(o->access & access)) continue;
        snprintf(name, sizeof name, "#%llu", (unsigned long long)o->tensor->storage->id);
        lua_pushstring(L, o->tensor->name ? mr_name_text(o->tensor->name) : name);
        lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    }
}

static void push_node(lua_State *L, const mr_executable *x, uint32_t i) {
    mr_graph_node n = mr_executable_node_at(x, i);
    char stream[100];
    lua_createtable(L, 0, 8);
    lua_pushinteger(L, (lua_Integer)i + 1);
    lua_setfield(L, -2, "index");
    mr_set_text(L, "kind", mr_graph_kind_text(n.command));
    mr_set_text(L, "name", n.command->name);
    mr_set_text(L, "stream", mr_stream_describe(n.command->stream, stream, sizeof stream));
    mr_push_site(L, n.command->where);
    lua_setfield(L, -2, "where");
    lua_pushboolean(L, mr_executable_enabled(x)[i]);
    lua_setfield(L, -2, "enabled");
    lua_createtable(L, (int)n.after_count, 0);
    for (uint32_t k = 0; k < n.after_count; k++) {
        lua_pushinteger(L, (lua_Integer)n.after[k] + 1);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    lua_setfield(L, -2, "after");
    push_operands(L, n.command, MR_READ);
    lua_setfield(L, -2, "reads");
    push_operands(L, n.command, MR_WRITE);
    lua_setfield(L, -2, "writes");
}

MR_FUNCTION(
    graph_nodes, "nodes", "g:nodes() -> nodes: table[]",
    "Returns a table for each node, in the order of their capture: {index=, kind=, name=, where=, "
    "stream=, after=, reads=, writes=, enabled=}. kind is \"kernel\", \"copy\", \"host function\", "
    "\"alloc\" or \"free\". stream is the one on which it was captured. after lists the numbers of "
    "the nodes that it comes after; reads and writes list names of tensors.") {
    mr_set_context(L);
    const mr_executable *x = keep(L, 1);
    uint32_t count = mr_graph_count(mr_executable_graph(x));
    lua_createtable(L, (int)count, 0);
    for (uint32_t i = 0; i < count; i++) {
        push_node(L, x, i);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

MR_FUNCTION(graph_print, "print", "g:print() -> text: string",
            "Prints the nodes, a line for each, and returns the text.") {
    mr_set_context(L);
    mr_buffer *text = mr_push_buffer(L);
    const mr_executable *x = mr_check_graph(L, 1);
    mr_graph_write_text(x, text);
    mr_buffer_to_text(L);
    size_t size;
    const char *shown = lua_tolstring(L, -1, &size);
    mr_print_text(L, shown, size, false);
    mr_output_flush(stdout);
    return 1;
}

typedef void (*writer)(const mr_executable *executable, mr_buffer *out);

static writer writer_for(lua_State *L, const char *path) {
    static const struct {
        const char *ending;
        writer write;
    } writers[] = {{".dot", mr_graph_write_dot},
                   {".json", mr_graph_write_json},
                   {".svg", mr_graph_write_svg},
                   {".txt", mr_graph_write_text}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        size_t size = strlen(writers[i].ending);
        if (length > size && strcmp(path + length - size, writers[i].ending) == 0)
            return writers[i].write;
    }
    mr_misuse(L, "save: \"%s\" does not say in which format: end it with .dot, .svg, .json or .txt",
              path);
    return NULL;
}

static mr_status write_text(void *context, FILE *file) {
    const mr_buffer *text = context;
    if (text->failed) return mr_no_memory("for the text of the graph");
    fwrite(text->data, 1, text->size, file);
    return MR_OK;
}

MR_FUNCTION(graph_save, "save", "g:save(path: string)",
            "Writes the graph to a file. The ending of its name says how: .dot (Graphviz), .svg (a "
            "picture), .json, .txt (what print shows). The file appears complete or not at all.") {
    mr_set_context(L);
    writer write = writer_for(L, mr_check_path(L, "save", 2));
    const char *path = mr_path_of(L, 2, MR_PATH_WRITE);
    mr_buffer *text = mr_push_buffer(L);
    const mr_executable *x = mr_check_graph(L, 1);
    write(x, text);
    mr_raise(L, mr_replace_file(path, write_text, text));
    return 0;
}

/* --- closing, properties ------------------------------------------------------------------------- */

static void close_graph(lua_State *L) {
    mr_executable **box = mr_check(L, 1, &mr_kind_graph);
    mr_executable *x = *box;
    mr_set_context(L);
    *box = NULL;
    mr_executable_release(x);
}

MR_FUNCTION(graph_close, "close", "g:close()",
            "Closes the graph. Returns at once. Pending launches still run; after them the memory "
            "of the graph is freed, unless a tensor refers to it.") {
    mr_machine_of(L);
    close_graph(L);
    return 0;
}

MR_FUNCTION(graph_close_variable, "__close", "", "The end of a <close> variable: g:close().") {
    close_graph(L);
    return 0;
}

MR_FUNCTION(graph_gc, "__gc", "", "Gives up the graph; waits for nothing.") {
    close_graph(L);
    return 0;
}

MR_FUNCTION(graph_tostring, "__tostring", "", "\"graph #1 (3 nodes)\".") {
    mr_executable **box = mr_check(L, 1, &mr_kind_graph);
    mr_bind_explore_tells_number(L);
    if (*box) {
        const mr_graph *graph = mr_executable_graph(*box);
        lua_pushfstring(L, "graph #%I (%d nodes)", (lua_Integer)mr_graph_number(graph),
                        (int)mr_graph_count(graph));
    } else {
        lua_pushliteral(L, "graph (closed)");
    }
    return 1;
}

static int get_id(lua_State *L) {
    mr_bind_explore_tells_number(L);
    lua_pushinteger(L, (lua_Integer)mr_graph_number(graph_at(L, 1)));
    return 1;
}

static int get_node_count(lua_State *L) {
    lua_pushinteger(L, mr_graph_count(graph_at(L, 1)));
    return 1;
}

static int get_edge_count(lua_State *L) {
    lua_pushinteger(L, mr_graph_edge_count(graph_at(L, 1)));
    return 1;
}

static int get_bytes(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_graph_bytes(graph_at(L, 1)));
    return 1;
}

static int get_lanes(lua_State *L) {
    lua_pushinteger(L, mr_executable_lanes(mr_check_graph(L, 1)));
    return 1;
}

static int get_expanded(lua_State *L) {
    lua_pushstring(L, mr_executable_expanded(mr_check_graph(L, 1)));
    return 1;
}

static int get_rebuilt(lua_State *L) {
    lua_pushstring(L, mr_executable_rebuilt(mr_check_graph(L, 1)));
    return 1;
}

static int get_where(lua_State *L) {
    mr_push_site(L, mr_graph_begun(graph_at(L, 1)));
    return 1;
}

static int get_device(lua_State *L) {
    mr_push_device(L, mr_graph_device(graph_at(L, 1)));
    return 1;
}

static const mr_property properties[] = {
    {"id", "integer", "The number of the capture.", get_id},
    {"node_count", "integer", "How many nodes it has.", get_node_count},
    {"edge_count", "integer", "How many edges it has.", get_edge_count},
    {"nbytes", "integer", "Bytes of memory that were allocated in the capture (R44).", get_bytes},
    {"lanes", "integer", "How many chains of nodes a launch may run at once.", get_lanes},
    {"expanded", "string?",
     "On a real GPU: why the last launch was submitted node by node. nil: it was one call of the "
     "driver.",
     get_expanded},
    {"rebuilt", "string?",
     "On a real GPU: why the driver could not apply the last update or set to its graph, in its "
     "own words. The driver got a new graph, and the first launch after that takes longer. nil: "
     "the driver could apply it (R43).",
     get_rebuilt},
    {"where", "string?", "The line that began the capture.", get_where},
    {"device", "device", "The device of the capture.", get_device},
    {NULL, NULL, NULL, NULL}};

static const mr_function *const functions[] = {&graph_launch_function,
                                               &graph_instantiate_function,
                                               &graph_update_function,
                                               &graph_enable_function,
                                               &graph_set_function,
                                               &graph_nodes_function,
                                               &graph_print_function,
                                               &graph_save_function,
                                               &graph_close_function,
                                               &graph_close_variable_function,
                                               &graph_gc_function,
                                               &graph_tostring_function,
                                               NULL};

const mr_class mr_graph_class = {"graph",
                                 "A captured graph, and an executable of it. It does not change, "
                                 "except by update, enable and set.",
                                 functions, properties, &mr_kind_graph};

void mr_open_graph(lua_State *L) {
    mr_class_open(L, &mr_graph_class);
    mr_class_extend(L, &mr_graph_inputs_class);
}
