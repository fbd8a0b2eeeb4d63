/* Entries of tables, for explore/watch.lua and explore/repeatable.lua: copies of them, differences from a copy, and
 * whether a walk has an order that depends on addresses. */
#include "bind/explore/entries.h"

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

/* The same value, or both are NaN. */
static bool is_same(lua_State *L, int a, int b) {
    if (lua_rawequal(L, a, b)) return true;
    return lua_type(L, a) == LUA_TNUMBER && lua_type(L, b) == LUA_TNUMBER &&
           !lua_rawequal(L, a, a) && !lua_rawequal(L, b, b);
}

/* changed_entry(t, copy, count [, prefix]) -> how many were compared [, true, a changed key]. A changed key has another
 * value than in the copy of `count` entries; nil: the copy does not have it any more. */
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

/* --- the order of a walk -------------------------------------------------------------------------- */

/* Whether a key of this type is placed in a table by an address, which differs in each run. */
static bool has_address(lua_State *L, int key) {
    switch (lua_type(L, key)) {
    case LUA_TTABLE:
    case LUA_TFUNCTION:
    case LUA_TUSERDATA:
    case LUA_TLIGHTUSERDATA:
    case LUA_TTHREAD: return true;
    default: return false;
    }
}

/* Walks by millrace's own modules do not count. */
static bool is_called_by_script(lua_State *L) {
    lua_Debug ar;
    if (!lua_getstack(L, 1, &ar) || !lua_getinfo(L, "S", &ar)) return true;
    return strncmp(ar.source, "=millrace", sizeof "=millrace" - 1) != 0;
}

/* Another key comes after the key at -2. */
static bool has_more(lua_State *L) {
    lua_pushvalue(L, -2);
    bool more = lua_next(L, 1);
    lua_pop(L, more ? 2 : 0);
    return more;
}

/* next, as Lua's own. Its upvalue becomes true where two keys come in an order of addresses. */
static int walk_next(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 2);
    bool was_address = has_address(L, 2), is_first = lua_isnil(L, 2);
    if (!lua_next(L, 1)) {
        lua_pushnil(L);
        return 1;
    }
    bool *met = lua_touserdata(L, lua_upvalueindex(1));
    if (!*met && (was_address || has_address(L, -2)) && (!is_first || has_more(L)))
        *met = is_called_by_script(L);
    return 2;
}

static int go_on_pairs(lua_State *L, int status, lua_KContext context) {
    (void)L, (void)status, (void)context;
    return 3;
}

/* pairs, as Lua's own, but with that `next`, its upvalue. */
static int walk_pairs(lua_State *L) {
    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") == LUA_TNIL) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushvalue(L, 1);
        lua_pushnil(L);
    } else {
        lua_pushvalue(L, 1);
        lua_callk(L, 1, 3, 0, go_on_pairs);
    }
    return 3;
}

/* met(): whether an order of addresses was met since the last call */
static int walk_met(lua_State *L) {
    bool *met = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushboolean(L, *met);
    *met = false;
    return 1;
}

/* walk() -> functions in the place of next and pairs, and one that tells whether they have met an order of addresses */
int mr_explore_tool_walk(lua_State *L) {
    bool *met = lua_newuserdatauv(L, sizeof *met, 0);
    *met = false;
    int at = lua_gettop(L);
    lua_pushvalue(L, at);
    lua_pushcclosure(L, walk_next, 1);
    lua_pushvalue(L, -1);
    lua_pushcclosure(L, walk_pairs, 1);
    lua_pushvalue(L, at);
    lua_pushcclosure(L, walk_met, 1);
    return 3;
}
