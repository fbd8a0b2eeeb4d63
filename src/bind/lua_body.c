#include "bind/lua_body.h"

#include <string.h>

/* All values on the stack are results. */
static int end_of_body(lua_State *L, int status, lua_KContext context) {
    (void)status, (void)context;
    return lua_gettop(L);
}

int mr_call_lua_named(lua_State *L, const mr_lua_module *module, const char *path,
                      const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    mr_push_embedded(L, module, module->name, module->tools);
    while (*path) {
        size_t length = strcspn(path, ".");
        lua_pushlstring(L, path, length);
        lua_gettable(L, -2);
        lua_remove(L, -2);
        path += length + (path[length] == '.');
    }
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, end_of_body); /* tasks yield in it (task.c) */
    return end_of_body(L, LUA_OK, 0);
}

int mr_call_lua(lua_State *L) {
    const mr_function *function = lua_touserdata(L, lua_upvalueindex(2));
    return mr_call_lua_named(L, function->module, function->path, function->name);
}

/* Its address is a registry key: a table whose keys are functions of Lua modules that wait for their callers. */
static const char for_caller;

void mr_lua_note_waits_for_caller(lua_State *L, int at) {
    lua_pushvalue(L, at);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &for_caller) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &for_caller);
    }
    lua_insert(L, -2);
    lua_pushboolean(L, true);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

bool mr_lua_waits_for_caller(lua_State *L, lua_Debug *frame) {
    bool found = false;
    if (!lua_checkstack(L, 4)) return false;
    int top = lua_gettop(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &for_caller) == LUA_TTABLE) {
        lua_getinfo(L, "f", frame);
        found = lua_rawget(L, -2) != LUA_TNIL;
    }
    lua_settop(L, top);
    return found;
}
