/* For observers, which must not run Lua's collector: see internal.h. */
#include <string.h>

#include "bind/internal.h"

void mr_push_field(lua_State *L, int table, const char *name) {
    table = lua_absindex(L, table);
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || strcmp(lua_tostring(L, -2), name) != 0) continue;
        lua_remove(L, -2);
        return;
    }
    lua_pushnil(L);
}

/* Calling a C function may run the collector only where fewer than LUA_MINSTACK places of the stack are left. */
bool mr_try_quietly(lua_State *L, lua_CFunction function, void *argument) {
    if (!lua_checkstack(L, LUA_MINSTACK + 4)) return false;
    lua_pushcfunction(L, function);
    lua_pushlightuserdata(L, argument);
    int status = lua_pcall(L, 1, 0, 0);
    if (status != LUA_OK) lua_pop(L, 1);
    return status == LUA_OK;
}
