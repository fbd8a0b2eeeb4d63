/* The part of millrace that a Lua state owns: the box, which every function of ours and the registry hold. It is made
 * and filled in open.c. */
#include "bind/internal.h"

static const char module_box; /* its address is the registry key */

void mr_keep_module(lua_State *L) {
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_box);
}

void mr_push_module(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &module_box);
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
