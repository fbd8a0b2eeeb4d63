/* Functions of tensors that are made of several rows: the Lua module millrace.functional carries them out. This file
 * has the functions that it cannot write in Lua. */
#include "bind/lua_body.h"
#include "bind/open.h"
#include "bind/ops/functional.h"

/* --- tools of the Lua module -------------------------------------------------------------------- */

static int tool_misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

static int tool_is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test_tensor(L, 1) != NULL);
    return 1;
}

/* Raises if the tensor was freed. */
static int tool_check(lua_State *L) {
    mr_check_tensor(L, 1);
    return 0;
}

/* may_read(name, t): raises if a capture forbids the wait for the values of t, which the function `name` needs. */
static int tool_may_read(lua_State *L) {
    mr_caller caller = mr_enter_as(L, luaL_checkstring(L, 1));
    mr_raise(L, mr_may_read(&caller, mr_check_tensor(L, 2)));
    return 0;
}

static const luaL_Reg tools[] = {{"misuse", tool_misuse},
                                 {"is_tensor", tool_is_tensor},
                                 {"check", tool_check},
                                 {"may_read", tool_may_read},
                                 {NULL, NULL}};

const mr_lua_module mr_lua_functional = {"millrace.functional", tools};

int mr_functional_call(lua_State *L, const char *name) {
    return mr_call_lua_named(L, &mr_lua_functional, "", name);
}

int mr_functional_get_index(lua_State *L) {
    return mr_functional_call(L, "get_index");
}

int mr_functional_set_index(lua_State *L) {
    return mr_functional_call(L, "set_index");
}

void mr_open_functional(lua_State *L) {
    mr_class_extend(L, &mr_functional_class);
    mr_table_open(L, &mr_functional_functions_class);
    mr_class_extend(L, &mr_composite_class);
    mr_table_open(L, &mr_composite_functions_class);
}
