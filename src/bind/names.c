/* The names under which functions of ours were registered: for messages and for help. */
#include <string.h>

#include "bind/internal.h"

bool mr_push_table(lua_State *L, const char *owner) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "millrace");
    lua_remove(L, -2);
    if (!lua_istable(L, -1)) {
        lua_pop(L, 1);
        return false;
    }
    while (lua_istable(L, -1) && (owner = strchr(owner, '.')) != NULL) {
        owner++;
        lua_pushlstring(L, owner, strcspn(owner, "."));
        lua_rawget(L, -2); /* the table raises for what is not in it */
        lua_remove(L, -2);
    }
    if (lua_istable(L, -1)) return true;
    lua_pop(L, 1);
    return false;
}

const char *mr_registered_name(lua_State *L, int arg, const char **out_owner) {
    arg = lua_absindex(L, arg);
    for (const mr_class *const *class = mr_bind_module(L)->classes; *class; class ++) {
        if ((*class)->kind) mr_push_methods(L, (*class)->kind);
        else if (!mr_push_table(L, (*class)->name)) continue;
        for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
            if (!lua_rawequal(L, -1, arg) || lua_type(L, -2) != LUA_TSTRING) continue;
            const char *name = lua_tostring(L, -2); /* stays: the table holds it */
            if (out_owner) *out_owner = (*class)->name;
            lua_pop(L, 3);
            return name;
        }
        lua_pop(L, 1);
    }
    return NULL;
}
