/* Tables of functions: an unknown name is an error that suggests the probable name. */
#include "bind/missing.h"

#include <string.h>

#include "bind/foreign.h"
#include "bind/nearest.h"
#include "bind/open.h"

/* Tables that only some backends have: scripts test `if mr.machine then`. */
static bool is_optional(const char *name) {
    return strcmp(name, "machine") == 0;
}

/* Upvalues: the module, and the name of the table. */
static int no_such_name(lua_State *L) {
    if (lua_type(L, 2) != LUA_TSTRING) return 0;
    const char *owner = lua_tostring(L, lua_upvalueindex(2)), *name = lua_tostring(L, 2);
    if (is_optional(name)) return 0;
    const char *advice = mr_foreign_advice(owner, name);
    if (!advice) advice = mr_foreign_advice(NULL, name);
    if (advice) return mr_misuse(L, "there is no `%s.%s`: %s", owner, name, advice);
    mr_nearest nearest;
    mr_nearest_begin(&nearest, name);
    for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING) mr_nearest_offer(&nearest, lua_tostring(L, -2));
    const char *meant = mr_nearest_found(&nearest);
    if (meant)
        return mr_misuse(L, "there is no `%s.%s`: did you mean `%s.%s`?", owner, name, owner,
                         meant);
    return mr_misuse(L, "there is no `%s.%s`: help(\"%s\") lists all names", owner, name, owner);
}

void mr_refuse_missing(lua_State *L, const char *owner) {
    lua_createtable(L, 0, 1);
    mr_push_module(L);
    lua_pushstring(L, owner);
    lua_pushcclosure(L, no_such_name, 2);
    lua_setfield(L, -2, "__index");
    lua_setmetatable(L, -2);
}

void mr_open_missing(lua_State *L) {
    mr_refuse_missing(L, "mr");
}
