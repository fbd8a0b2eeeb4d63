/* The userdata of a pool of graphs (graph/pool.c): memory that graphs share. It holds one reference; each graph has
 * another. */
#include "bind/graph/graph.h"
#include "bind/internal.h"
#include "bind/open.h"

static const mr_kind kind = {.text = "a pool of graphs"};

/* --- check, constructor -------------------------------------------------------------------------- */

static mr_graph_pool *check_pool(lua_State *L, int arg) {
    mr_graph_pool **box = mr_check(L, arg, &kind);
    if (!*box) mr_misuse(L, "the pool was already collected");
    return *box;
}

mr_graph_pool *mr_option_graph_pool(lua_State *L, const mr_option_slots *options) {
    int at = mr_option_at(L, options, "pool");
    if (!at) return NULL;
    if (!mr_test(L, at, &kind)) mr_bad_option(L, at, "pool", "a pool of mr.graph.pool()");
    return check_pool(L, at);
}

MR_FUNCTION(
    graph_pool, "pool", "mr.graph.pool() -> p: graph_pool",
    "Makes a pool for graphs of the current device (torch.cuda.graph_pool_handle). Graphs that are "
    "captured with {pool = p} share memory: a capture reuses memory of earlier graphs of the pool, "
    "if no tensor of the script refers to it any more. Such graphs must not run at the same time; "
    "the hazard checker reports if they may. After the launch of another graph that has its "
    "memory, a tensor "
    "cannot be used until its own graph is launched again (R44).") {
    mr_caller caller = mr_enter(L);
    mr_graph_pool **box = mr_new(L, &kind, sizeof *box);
    mr_raise(L, mr_graph_pool_new(&caller, box));
    return 1;
}

/* --- metamethods, properties --------------------------------------------------------------------- */

MR_FUNCTION(graph_pool_gc, "__gc", "", "Gives up the pool; its graphs keep what they share.") {
    mr_graph_pool **box = mr_check(L, 1, &kind);
    mr_graph_pool *pool = *box;
    mr_set_context(L);
    *box = NULL;
    mr_graph_pool_release(pool);
    return 0;
}

MR_FUNCTION(graph_pool_tostring, "__tostring", "", "\"graph_pool (2 graphs, 4096 bytes)\".") {
    mr_graph_pool_facts facts = mr_graph_pool_facts_of(check_pool(L, 1));
    lua_pushfstring(L, "graph_pool (%I graphs, %I bytes)", (lua_Integer)facts.graphs,
                    (lua_Integer)facts.bytes);
    return 1;
}

static int get_bytes(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_graph_pool_facts_of(check_pool(L, 1)).bytes);
    return 1;
}

static int get_saved(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)mr_graph_pool_facts_of(check_pool(L, 1)).saved);
    return 1;
}

static int get_graphs(lua_State *L) {
    lua_pushinteger(L, mr_graph_pool_facts_of(check_pool(L, 1)).graphs);
    return 1;
}

static int get_allocations(lua_State *L) {
    lua_pushinteger(L, mr_graph_pool_facts_of(check_pool(L, 1)).allocations);
    return 1;
}

static int get_device(lua_State *L) {
    mr_push_device(L, mr_graph_pool_device(check_pool(L, 1)));
    return 1;
}

static const mr_property properties[] = {
    {"bytes", "integer", "Bytes of memory that the graphs of the pool have together.", get_bytes},
    {"saved", "integer", "How many bytes more they would have without the pool.", get_saved},
    {"graphs", "integer", "How many graphs were captured with it and still exist.", get_graphs},
    {"allocations", "integer", "How many pieces the memory consists of.", get_allocations},
    {"device", "device", "The device of its graphs.", get_device},
    {NULL, NULL, NULL, NULL}};

/* --- opening ------------------------------------------------------------------------------------- */

static const mr_function *const functions[] = {&graph_pool_gc_function,
                                               &graph_pool_tostring_function, NULL};

const mr_class mr_graph_pool_class = {
    "graph_pool",
    "Memory shared by graphs that never run at the same time. docs/graphs.md explains it.",
    functions, properties, &kind};

static const mr_function *const table_functions[] = {&graph_pool_function, NULL};

const mr_class mr_graph_pools_class = {"mr.graph", "Memory that graphs share.", table_functions,
                                       NULL, NULL};

void mr_open_graph_pool(lua_State *L) {
    mr_class_open(L, &mr_graph_pool_class);
}
