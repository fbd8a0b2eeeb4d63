/* Between the files that bind graphs. */
#ifndef MR_BIND_GRAPH_GRAPH_H
#define MR_BIND_GRAPH_GRAPH_H

#include "bind/bind.h"
#include "graph/graph.h"

extern const mr_kind mr_kind_graph;

/* box.c. The executable of the userdata at `arg`. */
mr_executable *mr_check_graph(lua_State *L, int arg);
/* Pushes an empty one, and returns where its executable goes. */
mr_executable **mr_new_graph(lua_State *L);

/* inputs.c: new values of inputs, in front of a launch of the graph at index 1. */
void mr_graph_copy_inputs(lua_State *L, mr_stream *stream);

/* pool.c: the option `pool`; NULL: it is not given. */
mr_graph_pool *mr_option_graph_pool(lua_State *L, const mr_option_slots *options);

/* capture.c: captures the function at index `fn` with the options at `options`, for the function `what` of scripts.
 * Pushes a value that keeps the graph, and then the function's results. */
mr_graph *mr_capture_function(lua_State *L, const char *what, int fn, int options);

#endif
