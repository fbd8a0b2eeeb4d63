/* The libraries of --sandbox: see sandbox.h.
 *
 * Everything is an allow-list: a function that a later Lua adds to a library is not there until it is
 * named here. Functions that are safe only with some arguments are wrapped: the wrapper checks the
 * arguments. */
#include "host/sandbox.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <string.h>

#include "bind/graph/graph.h"
#include "bind/trace/trace.h"

/* --- wrapped functions ------------------------------------------------------------------ */

/* load(chunk, chunkname, mode, env) with mode "t": the virtual machine trusts bytecode. Upvalue:
 * Lua's own load. */
static int safe_load(lua_State *L) {
    luaL_checkany(L, 1);
    if (lua_gettop(L) < 3) lua_settop(L, 3);
    lua_pushliteral(L, "t");
    lua_replace(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* A finalizer runs with hooks disabled, so that no limit could stop it. */
static int safe_setmetatable(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (lua_istable(L, 2)) {
        lua_pushliteral(L, "__gc");
        if (lua_rawget(L, 2) != LUA_TNIL)
            return luaL_error(L, "setmetatable: __gc is not available under --sandbox");
        lua_pop(L, 1);
    }
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_settop(L, 3);
    lua_call(L, 2, 1);
    return 1;
}

/* Stopping or tuning the collector is not for strangers. */
static int safe_collectgarbage(lua_State *L) {
    static const char *const known[] = {"collect", "count", NULL};
    if (luaL_checkoption(L, 1, "collect", known) == 0) {
        lua_gc(L, LUA_GCCOLLECT);
        lua_pushinteger(L, 0);
    } else {
        lua_pushnumber(L, lua_gc(L, LUA_GCCOUNT) + lua_gc(L, LUA_GCCOUNTB) / 1024.0);
    }
    return 1;
}

/* Finds modules that are loaded already, and Lua modules inside the program; nothing from files. */
static int safe_require(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE); /* 2 */
    if (lua_getfield(L, 2, name) != LUA_TNIL) return 1;
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    if (lua_getfield(L, -1, name) == LUA_TNIL)
        return luaL_error(L, "require: module '%s' is not available under --sandbox", name);
    lua_pushvalue(L, 1);
    lua_pushliteral(L, ":preload:");
    lua_call(L, 2, 1);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushboolean(L, 1);
    }
    lua_pushvalue(L, -1);
    lua_setfield(L, 2, name);
    return 1;
}

/* --- libraries --------------------------------------------------------------------------------------- */

static const char *const base_functions[] = {
    "_G",       "_VERSION", "assert",   "error",  "getmetatable", "ipairs", "next",   "pairs",
    "pcall",    "print",    "rawequal", "rawget", "rawlen",       "rawset", "select", "tonumber",
    "tostring", "type",     "xpcall",   "load",   "setmetatable", NULL};
static const char *const string_functions[] = {
    "byte", "char",     "find", "format",  "gmatch", "gsub",   "len",   "lower", "match",
    "pack", "packsize", "rep",  "reverse", "sub",    "unpack", "upper", NULL};
static const char *const table_functions[] = {"concat", "insert", "move",   "pack",
                                              "remove", "sort",   "unpack", NULL};
static const char *const coroutine_functions[] = {
    "close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield", NULL};
static const char *const utf8_functions[] = {"char", "charpattern", "codepoint", "codes",
                                             "len",  "offset",      NULL};
static const char *const os_functions[] = {"clock", "date", "difftime", "time", NULL};
static const char *const math_functions[] = {
    "abs", "acos",       "asin", "atan",      "ceil", "cos",    "deg",
    "exp", "floor",      "fmod", "huge",      "log",  "max",    "maxinteger",
    "min", "mininteger", "modf", "pi",        "rad",  "random", "randomseed",
    "sin", "sqrt",       "tan",  "tointeger", "type", "ult",    NULL};

static const struct {
    const char *name;
    lua_CFunction open;
    const char *const *allowed;
} libraries[] = {{LUA_GNAME, luaopen_base, base_functions},
                 {LUA_STRLIBNAME, luaopen_string, string_functions},
                 {LUA_TABLIBNAME, luaopen_table, table_functions},
                 {LUA_COLIBNAME, luaopen_coroutine, coroutine_functions},
                 {LUA_UTF8LIBNAME, luaopen_utf8, utf8_functions},
                 {LUA_OSLIBNAME, luaopen_os, os_functions},
                 {LUA_MATHLIBNAME, luaopen_math, math_functions}};

static bool is_listed(const char *const *list, const char *name) {
    while (*list && strcmp(*list, name) != 0) list++;
    return *list != NULL;
}

/* Removes from the table on top of the stack every key that is not in the list. */
static void keep_listed(lua_State *L, const char *const *list) {
    lua_pushnil(L);
    while (lua_next(L, -2)) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TSTRING && is_listed(list, lua_tostring(L, -1))) continue;
        lua_pushvalue(L, -1);
        lua_pushnil(L);
        lua_rawset(L, -4); /* clearing a field keeps a traversal valid */
    }
}

/* Replaces the global function `name` by `wrapper`; the original is its upvalue. */
static void wrap(lua_State *L, const char *name, lua_CFunction wrapper) {
    lua_getglobal(L, name);
    lua_pushcclosure(L, wrapper, 1);
    lua_setglobal(L, name);
}

void mr_sandbox_open(lua_State *L) {
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        luaL_requiref(L, libraries[i].name, libraries[i].open, 0);
        keep_listed(L, libraries[i].allowed);
        lua_pop(L, 1);
    }
    /* Called after _G was reduced to its list: opens the libraries by name, and wraps functions. */
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        lua_getfield(L, -1, libraries[i].name);
        lua_setglobal(L, libraries[i].name);
    }
    lua_pop(L, 1);
    wrap(L, "load", safe_load);
    wrap(L, "setmetatable", safe_setmetatable);
    lua_pushcfunction(L, safe_collectgarbage);
    lua_setglobal(L, "collectgarbage");
    lua_pushcfunction(L, safe_require);
    lua_setglobal(L, "require");

    /* All strings share a metatable: out of reach, so that no script changes what s:len() means for
     * the Lua modules of the program. */
    lua_pushliteral(L, "");
    lua_getmetatable(L, -1);
    lua_pushliteral(L, "locked");
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 2);
}

/* --- the module ---------------------------------------------------------------------------------------- */

/* A model of the virtual GPU by its name, not by a path. Upvalue: mr.machine.model. */
static int safe_model(lua_State *L) {
    const char *name = lua_tostring(L, 1);
    if (name && strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
                    lua_rawlen(L, 1))
        return luaL_error(L, "model: --sandbox takes the name of a model, not a path: '%s'", name);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

void mr_sandbox_close_module(lua_State *L) {
    static const char *const reach_files[] = {"save", "load", "from_ipc_handle", NULL};
    for (const char *const *name = reach_files; *name; name++) {
        lua_pushnil(L);
        lua_setfield(L, -2, *name);
    }
    const mr_kind *const savers[] = {&mr_kind_trace, &mr_kind_graph};
    for (size_t i = 0; i < sizeof savers / sizeof *savers; i++) {
        mr_push_methods(L, savers[i]);
        lua_pushnil(L);
        lua_setfield(L, -2, "save");
        lua_pop(L, 1);
    }
    if (lua_getfield(L, -1, "machine") == LUA_TTABLE) {
        lua_getfield(L, -1, "model");
        lua_pushcclosure(L, safe_model, 1);
        lua_setfield(L, -2, "model");
    }
    lua_pop(L, 1);
}
