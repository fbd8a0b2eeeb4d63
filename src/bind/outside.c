#include "bind/outside.h"

#include <lualib.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "bind/internal.h"

static const char handlers; /* its address is the key in the registry */

/* Pushes the function of this name; false: there is none, and nothing is pushed. */
static bool push_handler(lua_State *L, const char *name) {
    int pushed = 1;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &handlers) == LUA_TTABLE) {
        pushed++;
        if (lua_getfield(L, -1, name) == LUA_TFUNCTION) {
            lua_remove(L, -2);
            return true;
        }
    }
    lua_pop(L, pushed);
    return false;
}

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
    if (push_handler(L, "file")) {
        lua_pushvalue(L, arg);
        lua_pushstring(L, names[use]);
        lua_call(L, 2, 1);
        lua_replace(L, arg);
    }
    return lua_tostring(L, arg);
}

void mr_push_time(lua_State *L, const char *name, double milliseconds) {
    bool is_asked = push_handler(L, "time");
    if (is_asked) lua_pushstring(L, name);
    lua_pushnumber(L, milliseconds);
    if (is_asked) lua_call(L, 2, 1);
}

void mr_note_times(lua_State *L) {
    if (push_handler(L, "times")) lua_call(L, 0, 0);
}

void mr_print_text(lua_State *L, const char *text, size_t size, bool has_times) {
    if (!push_handler(L, "print")) {
        mr_output_write(stdout, text, size);
        return;
    }
    lua_pushlstring(L, text, size);
    lua_pushboolean(L, has_times);
    lua_call(L, 2, 0);
}

int mr_outside_tool_set(lua_State *L) {
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &handlers);
    return 0;
}

int mr_outside_tool_absolute(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *slash = strrchr(path, '/');
    lua_pushlstring(L, slash ? path : "./", slash ? (size_t)(slash + 1 - path) : 2);
    char *folder = realpath(lua_tostring(L, -1), NULL);
    if (folder)
        lua_pushfstring(L, "%s%s%s", folder, strcmp(folder, "/") == 0 ? "" : "/",
                        slash ? slash + 1 : path);
    else lua_pushvalue(L, 1);
    free(folder);
    return 1;
}

int mr_outside_tool_new_random(lua_State *L) {
    lua_pushcfunction(L, luaopen_math);
    lua_call(L, 0, 1);
    lua_getfield(L, -1, "random");
    lua_getfield(L, -2, "randomseed");
    return 2;
}
