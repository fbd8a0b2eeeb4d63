/* Which files were run: see source.h. The module has the list, with the bound of interned strings. */
#include "bind/internal.h"
#include "bind/source.h"

#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

void mr_source_add(lua_State *L, const char *path) {
    mr_module *module = mr_bind_module(L);
    if (module && module->machine) mr_intern(&module->sources, path, strlen(path), NULL);
}

mr_script *mr_source_read(lua_State *L, const char *file) {
    mr_module *module = mr_bind_module(L);
    if (!file || !mr_is_interned(&module->sources, file)) return NULL;
    return mr_script_read(&module->scripts, file);
}

void mr_source_locate(lua_State *L, const char *file, const char *text, size_t size, int *io_line) {
    mr_script *script = mr_source_read(L, file);
    int line = script ? mr_script_line_of(script, text, size) : 0;
    if (line) *io_line = line;
    mr_script_free(script);
}

/* ---- what runs files. The first upvalue is Lua's own function. */

static int all_results(lua_State *L, int status, lua_KContext base) {
    (void)status;
    return lua_gettop(L) - (int)base;
}

/* loadfile and dofile: the file is argument 1. */
static int run_file(lua_State *L) {
    if (lua_type(L, 1) == LUA_TSTRING) mr_source_add(L, lua_tostring(L, 1));
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_callk(L, lua_gettop(L) - 1, LUA_MULTRET, 0, all_results);
    return all_results(L, LUA_OK, 0);
}

/* A searcher of package.searchers: the file is its second result, if it found one. */
static int search_file(lua_State *L) {
    lua_settop(L, 1);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, 1, 2);
    if (lua_isfunction(L, 1) && lua_type(L, 2) == LUA_TSTRING) mr_source_add(L, lua_tostring(L, 2));
    return 2;
}

static void watch_global(lua_State *L, const char *name) {
    if (lua_getglobal(L, name) == LUA_TFUNCTION) {
        lua_pushcclosure(L, run_file, 1);
        lua_setglobal(L, name);
    } else {
        lua_pop(L, 1);
    }
}

static void watch_searcher(lua_State *L) {
    int top = lua_gettop(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, LUA_LOADLIBNAME) == LUA_TTABLE &&
        lua_getfield(L, -1, "searchers") == LUA_TTABLE &&
        lua_rawgeti(L, -1, 2) == LUA_TFUNCTION) { /* the one for Lua files */
        lua_pushcclosure(L, search_file, 1);
        lua_rawseti(L, -2, 2);
    }
    lua_settop(L, top);
}

/* Plain Lua keeps the script's path in arg[0]. */
static void add_main(lua_State *L) {
    if (lua_getglobal(L, "arg") == LUA_TTABLE) {
        if (lua_rawgeti(L, -1, 0) == LUA_TSTRING) mr_source_add(L, lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

void mr_source_watch(lua_State *L) {
    static const char watched; /* its address is a registry key */
    bool again = lua_rawgetp(L, LUA_REGISTRYINDEX, &watched) != LUA_TNIL;
    lua_pop(L, 1);
    if (again) return;
    lua_pushboolean(L, true);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &watched);
    watch_global(L, "loadfile");
    watch_global(L, "dofile");
    watch_searcher(L);
    add_main(L);
}
