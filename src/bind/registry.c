/* The weak table that mr_push_stream and similar functions use: see registry.h. Lua clears weak values
 * before it runs finalizers, so an entry is removed before its userdata is finalised, and a reused address
 * never leads to a dead userdata. */
#include "bind/registry.h"

static const char objects; /* its address is the registry key */

bool mr_registry_push(lua_State *L, const void *object) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &objects);
    int type = lua_rawgetp(L, -1, object);
    lua_remove(L, -2);
    if (type == LUA_TUSERDATA) return true;
    lua_pop(L, 1);
    return false;
}

void mr_registry_add(lua_State *L, const void *object) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &objects);
    lua_pushvalue(L, -2);
    lua_rawsetp(L, -2, object);
    lua_pop(L, 1);
}

void mr_registry_open(lua_State *L) {
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "v");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &objects);
}
