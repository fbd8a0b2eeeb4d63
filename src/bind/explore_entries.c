/* Entries of tables, for explore/watch.lua: copies of them, and what is not as in a copy. */
#include "bind/explore_entries.h"

#include <string.h>

/* Names of millrace's own modules: they are loaded when they are first needed. */
static bool is_left_out(lua_State *L, int key, const char *prefix) {
    if (!prefix || lua_type(L, key) != LUA_TSTRING) return false;
    return strncmp(lua_tostring(L, key), prefix, strlen(prefix)) == 0;
}

/* copy_entries(t, copy, most [, prefix]) -> how many. No more than `most` + 1; without those whose names begin so. */
int mr_explore_tool_copy_entries(lua_State *L) {
    lua_Integer most = luaL_checkinteger(L, 3), count = 0;
    const char *prefix = luaL_optstring(L, 4, NULL);
    lua_settop(L, 4);
    lua_pushnil(L);
    while (count <= most && lua_next(L, 1)) {
        if (is_left_out(L, -2, prefix)) {
            lua_pop(L, 1);
            continue;
        }
        count++;
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, 2);
    }
    lua_pushinteger(L, count);
    return 1;
}

/* The same value, or both are no number. */
static bool is_same(lua_State *L, int a, int b) {
    if (lua_rawequal(L, a, b)) return true;
    return lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER &&
           !lua_rawequal(L, a, a) && !lua_rawequal(L, b, b);
}

/* changed_entry(t, copy, count [, prefix]) -> how many were compared [, true, a key whose value is not as in the copy
 * of so many entries; nil: the copy does not have it any more] */
int mr_explore_tool_changed_entry(lua_State *L) {
    lua_Integer were = luaL_checkinteger(L, 3), count = 0;
    const char *prefix = luaL_optstring(L, 4, NULL);
    lua_settop(L, 4);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        bool out = is_left_out(L, -2, prefix);
        lua_pushvalue(L, -2);
        if (!out) lua_rawget(L, 2);
        if (!out && !is_same(L, -2, -1)) {
            lua_pushinteger(L, count + 1);
            lua_pushboolean(L, true);
            lua_pushvalue(L, -5);
            return 3;
        }
        count += !out;
        lua_pop(L, 2);
    }
    lua_pushinteger(L, count);
    if (count == were) return 1;
    lua_pushboolean(L, true);
    lua_pushnil(L);
    while (lua_next(L, 2)) { /* one that the table has no more */
        lua_pushvalue(L, -2);
        bool is_gone = lua_rawget(L, 1) == LUA_TNIL;
        lua_pop(L, 2);
        if (is_gone) return 3;
    }
    return 2;
}
