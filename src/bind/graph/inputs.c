/* Named inputs of a graph. lua/millrace/graph_inputs.lua does the work; the names and tensors are the user value of the
 * graph's userdata, so they go with it. */
#include "bind/graph/graph.h"
#include "bind/internal.h"
#include "bind/open.h"

static const char inputs_key; /* its address is a registry key */

static int misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

static int is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test(L, 1, &mr_kind_tensor) != NULL);
    return 1;
}

static int type_of(lua_State *L) {
    lua_pushstring(L, mr_type_text(L, 1));
    return 1;
}

/* is_input(g, t): whether a node reads its memory, which is not the graph's own */
static int is_input(lua_State *L) {
    const mr_executable *x = mr_check_graph(L, 1);
    const mr_storage *storage = mr_check_tensor(L, 2)->storage;
    bool found = false;
    for (uint32_t i = 0; i < mr_graph_count(mr_executable_graph(x)) && !found; i++) {
        const mr_command *command = mr_executable_node_at(x, i).command;
        for (uint32_t k = 0; k < command->operand_count; k++)
            found |= command->operands[k].tensor->storage == storage &&
                     (command->operands[k].access & MR_READ);
    }
    lua_pushboolean(L, found && !storage->graph);
    return 1;
}

static const luaL_Reg tools[] = {{"misuse", misuse},
                                 {"is_tensor", is_tensor},
                                 {"type_of", type_of},
                                 {"is_input", is_input},
                                 {NULL, NULL}};

/* Pushes a function of the Lua module. */
static void push_function(lua_State *L, const char *name) {
    mr_push_embedded(L, &inputs_key, "millrace.graph_inputs", tools);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

static void push_state(lua_State *L) {
    if (lua_getiuservalue(L, 1, 1) == LUA_TTABLE) return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 2);
    lua_newtable(L);
    lua_setfield(L, -2, "tensors");
    lua_newtable(L);
    lua_setfield(L, -2, "values");
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, 1);
}

void mr_graph_copy_inputs(lua_State *L, mr_stream *stream) {
    if (lua_getiuservalue(L, 1, 1) != LUA_TTABLE) {
        lua_pop(L, 1);
        return;
    }
    push_function(L, "copy");
    lua_insert(L, -2);
    mr_push_stream(L, &stream);
    lua_call(L, 2, 0);
}

MR_FUNCTION(graph_inputs, "inputs", "g:inputs([tensors: table]) -> inputs: table",
            "Names inputs of the graph, and gives them values. `tensors`: {name = tensor}. A new "
            "name is for a tensor from before the capture that nodes read. For an existing name, "
            "the next launch copies the values of another tensor of the same shape and dtype to "
            "the input, on its stream. Returns the inputs by name.") {
    lua_settop(L, 2);
    mr_set_context(L);
    mr_check_graph(L, 1);
    push_state(L);
    if (!lua_isnil(L, 2)) {
        push_function(L, "set");
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 3);
        lua_pushvalue(L, 2);
        lua_call(L, 3, 0);
    }
    push_function(L, "list");
    lua_pushvalue(L, 3);
    lua_call(L, 1, 1);
    return 1;
}

static const mr_function *const functions[] = {&graph_inputs_function, NULL};

const mr_class mr_graph_inputs_class = {"graph", "Named inputs.", functions, NULL, &mr_kind_graph};
