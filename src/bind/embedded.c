/* Lua modules inside the binary: each is loaded once, and gets functions that a script does not have. */
#include <stdio.h>
#include <string.h>

#include "bind/foreign.h"
#include "bind/internal.h"

#define MOST_OPTIONS 32

/* no_option(key, names) -> the error text for an unknown option; `names` are the known ones, in one string: "op
 * group" */
static int no_option(lua_State *L) {
    char names[512];
    const char *known[MOST_OPTIONS + 1], *key = luaL_tolstring(L, 1, NULL);
    int count = 0;
    snprintf(names, sizeof names, "%s", luaL_checkstring(L, 2));
    for (char *next = names; *next && count < MOST_OPTIONS;) {
        size_t length = strcspn(next, " ");
        known[count++] = next;
        next += length;
        if (*next) *next++ = '\0';
    }
    known[count] = NULL;
    mr_push_no_option(L, key, known);
    return 1;
}

/* advice_of(owner) -> what to write instead of names of PyTorch, by name; owner nil: of all */
static int advice_of(lua_State *L) {
    const char *owner = luaL_optstring(L, 1, NULL);
    lua_newtable(L);
    mr_foreign row;
    for (int i = 0; mr_foreign_at(i, &row); i++) {
        if (owner && strcmp(row.owner, owner) != 0) continue;
        /* the first one if there are several */
        lua_pushstring(L, mr_foreign_advice(owner, row.name));
        lua_setfield(L, -2, row.name);
    }
    return 1;
}

/* The functions that each module gets besides its own tools. */
static const luaL_Reg common[] = {{"no_option", no_option}, {"advice_of", advice_of}, {NULL, NULL}};

void mr_push_embedded(lua_State *L, const void *key, const char *name, const luaL_Reg *tools) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) != LUA_TNIL) return;
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_pushstring(L, name);
    lua_call(L, 1, 1);
    lua_newtable(L);
    mr_push_module(L);
    luaL_setfuncs(L, tools, 1);
    luaL_setfuncs(L, common, 0);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}
