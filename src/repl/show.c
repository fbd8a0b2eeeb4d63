/* Values at the prompt: see show.h. The list part of a table comes first, then its keys in alphabetical
 * order, so the same table is always shown in the same way. */
#include "repl/show.h"

#include <ctype.h>
#include <lauxlib.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/output.h"

#define MOST_ENTRIES 20

static void write_text(lua_State *L, int index) {
    size_t length;
    const char *text = luaL_tolstring(L, index, &length);
    mr_output_write(stdout, text, length);
    lua_pop(L, 1);
}

static bool opens(lua_State *L, int index) {
    if (lua_type(L, index) != LUA_TTABLE) return false;
    if (luaL_getmetafield(L, index, "__tostring") == LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

/* Inside a table, where it must be seen what is a string. */
static void write_inner(lua_State *L, int index) {
    if (lua_type(L, index) == LUA_TSTRING) {
        putchar('"');
        write_text(L, index);
        putchar('"');
    } else if (opens(L, index)) {
        lua_pushnil(L);
        bool empty = !lua_next(L, index);
        if (!empty) lua_pop(L, 2);
        fputs(empty ? "{}" : "{...}", stdout);
    } else {
        write_text(L, index);
    }
}

static bool is_name(const char *text) {
    if (!isalpha((unsigned char)*text) && *text != '_') return false;
    while (isalnum((unsigned char)*text) || *text == '_') text++;
    return !*text;
}

/* Pushes the least name after the one at the top, which it replaces (nil: the least of all); false, and
 * pops it, when there is none. */
static bool next_name(lua_State *L, int table) {
    int last = lua_gettop(L);
    bool found = false;
    lua_pushnil(L); /* the best so far */
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING) continue;
        if (!lua_isnil(L, last) && !lua_compare(L, last, -2, LUA_OPLT)) continue;
        if (found && !lua_compare(L, -2, last + 1, LUA_OPLT)) continue;
        lua_pushvalue(L, -2);
        lua_replace(L, last + 1);
        found = true;
    }
    lua_remove(L, last);
    if (!found) lua_pop(L, 1);
    return found;
}

/* Writes what comes before the next entry. Returns false if the line is full. */
static bool begin_entry(int *shown) {
    if (*shown == MOST_ENTRIES) {
        fputs(", ...", stdout);
        return false;
    }
    if ((*shown)++) fputs(", ", stdout);
    return true;
}

static bool write_list(lua_State *L, int table, lua_Integer size, int *shown) {
    for (lua_Integer i = 1; i <= size; i++) {
        if (!begin_entry(shown)) return false;
        lua_rawgeti(L, table, i);
        write_inner(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return true;
}

static bool write_names(lua_State *L, int table, int *shown) {
    lua_pushnil(L);
    while (next_name(L, table)) {
        const char *name = lua_tostring(L, -1);
        if (!begin_entry(shown)) {
            lua_pop(L, 1);
            return false;
        }
        printf(is_name(name) ? "%s = " : "[\"%s\"] = ", name);
        lua_pushvalue(L, -1);
        lua_rawget(L, table);
        write_inner(L, lua_gettop(L));
        lua_pop(L, 1);
    }
    return true;
}

static void write_others(lua_State *L, int table, lua_Integer size, int *shown) {
    for (lua_pushnil(L); lua_next(L, table); lua_pop(L, 1)) {
        int key = lua_gettop(L) - 1;
        if (lua_type(L, key) == LUA_TSTRING) continue;
        if (lua_isinteger(L, key) && lua_tointeger(L, key) >= 1 && lua_tointeger(L, key) <= size)
            continue;
        if (!begin_entry(shown)) {
            lua_pop(L, 2);
            return;
        }
        putchar('[');
        write_inner(L, key);
        fputs("] = ", stdout);
        write_inner(L, key + 1);
    }
}

void mr_show(lua_State *L, int index) {
    int shown = 0;
    index = lua_absindex(L, index);
    luaL_checkstack(L, 12, "not enough Lua stack to show a value");
    if (!opens(L, index)) {
        write_text(L, index);
        return;
    }
    lua_Integer size = (lua_Integer)lua_rawlen(L, index);
    putchar('{');
    if (write_list(L, index, size, &shown) && write_names(L, index, &shown))
        write_others(L, index, size, &shown);
    putchar('}');
}
