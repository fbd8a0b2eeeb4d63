#include "bind/path.h"

#include <string.h>

#include "bind/internal.h"

static const char redirection; /* its address is the key in the registry */

const char *mr_check_path(lua_State *L, const char *what, int arg) {
    size_t size;
    if (lua_type(L, arg) != LUA_TSTRING) mr_bad_argument(L, arg, "the path of a file");
    const char *path = lua_tolstring(L, arg, &size);
    if (strlen(path) != size || size == 0)
        mr_misuse(L, "%s: the path of a file is %s", what, size ? "cut by a NUL" : "empty");
    return path;
}

const char *mr_path_of(lua_State *L, int arg, mr_path_use use) {
    static const char *const names[] = {"read", "write", "write times"};
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &redirection) == LUA_TNIL) {
        lua_pop(L, 1);
        return lua_tostring(L, arg);
    }
    lua_pushvalue(L, arg);
    lua_pushstring(L, names[use]);
    lua_call(L, 2, 1);
    lua_replace(L, arg);
    return lua_tostring(L, arg);
}

int mr_path_tool_redirect(lua_State *L) {
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &redirection);
    return 0;
}
