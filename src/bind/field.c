/* Fields of tables, read where Lua's collector must not start: see internal.h. */
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
