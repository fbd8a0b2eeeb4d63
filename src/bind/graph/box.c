/* The userdata of a graph: state and check. Its methods are in graph.c. */
#include "bind/graph/graph.h"

const mr_kind mr_kind_graph = {.text = "a graph", .user_values = 1};

mr_executable **mr_new_graph(lua_State *L) {
    return mr_new(L, &mr_kind_graph, sizeof(mr_executable *));
}

mr_executable *mr_check_graph(lua_State *L, int arg) {
    mr_executable **box = mr_check(L, arg, &mr_kind_graph);
    if (!*box) mr_misuse(L, "the graph was closed");
    return *box;
}
