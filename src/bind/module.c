/* What a Lua state has of millrace: the box, which every function of ours and the registry hold. It is made and
 * filled in open.c. */
#include "bind/foreign.h"
#include "bind/internal.h"

static const char module_box; /* its address is the registry key */

void mr_keep_module(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_box);
}

void mr_push_module(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &module_box);
}

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
    luaL_setfuncs(L, mr_foreign_tools, 0);
    lua_call(L, 1, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

mr_module *mr_bind_module(lua_State *L) {
    mr_push_module(L);
    mr_module *module = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return module;
}

mr_machine *mr_bind_machine(lua_State *L) {
    const mr_module *module = mr_bind_module(L);
    return module ? module->machine : NULL;
}
