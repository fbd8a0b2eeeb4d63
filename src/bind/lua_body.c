#include "bind/lua_body.h"

#include <string.h>

int mr_call_lua_named(lua_State *L, const mr_lua_module *module, const char *path,
                      const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    mr_push_embedded(L, module, module->name, module->tools);
    while (*path) {
        size_t length = strcspn(path, ".");
        lua_pushlstring(L, path, length);
        lua_gettable(L, -2);
        lua_remove(L, -2);
        path += length + (path[length] == '.');
    }
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int mr_call_lua(lua_State *L) {
    const mr_function *function = lua_touserdata(L, lua_upvalueindex(2));
    return mr_call_lua_named(L, function->module, function->path, function->name);
}
