/* coroutine.create, resume, wrap, close: see coroutine.h.
 *
 * Lua's own functions with one thing added: each lua_resume and lua_resetthread is entered into the
 * chain of running threads (interrupt.h). The node lives on the C stack: both calls return on every
 * way out, errors included, so it is always taken out again. */
#include "host/coroutine.h"

#include <lauxlib.h>
#include <lualib.h>

#include "host/interrupt.h"
#include "host/limits.h"

static lua_State *check_coroutine(lua_State *L) {
    lua_State *co = lua_tothread(L, 1);
    luaL_argexpected(L, co, 1, "coroutine");
    return co;
}

/* Moves `count` arguments from L to co and runs it. Returns the number of results, now on L, or -1
 * with an error value on L. */
static int resume(lua_State *L, lua_State *co, int count) {
    mr_running node;
    int results;
    if (!lua_checkstack(co, count)) {
        lua_pushliteral(L, "too many arguments to resume");
        return -1;
    }
    if (!mr_running_enter(&node, co)) {
        lua_pushliteral(L, "C stack overflow");
        return -1;
    }
    lua_xmove(L, co, count);
    int status = lua_resume(co, L, count, &results);
    mr_running_leave(&node);
    if (status != LUA_OK && status != LUA_YIELD) {
        lua_xmove(co, L, 1);
        return -1;
    }
    if (!lua_checkstack(L, results + 1)) {
        lua_pop(co, results);
        lua_pushliteral(L, "too many results to resume");
        return -1;
    }
    lua_xmove(co, L, results);
    return results;
}

/* Runs the pending __close of a suspended or failed coroutine. */
static int reset(lua_State *L, lua_State *co) {
    mr_running node;
    if (!mr_running_enter(&node, co)) return luaL_error(L, "C stack overflow");
    int status = lua_resetthread(co);
    mr_running_leave(&node);
    return status;
}

static int coroutine_create(lua_State *L) {
    luaL_checktype(L, 1, LUA_TFUNCTION);
    mr_limits_charge_coroutine();
    lua_State *co = lua_newthread(L);
    lua_pushvalue(L, 1);
    lua_xmove(L, co, 1);
    return 1;
}

static int coroutine_resume(lua_State *L) {
    lua_State *co = check_coroutine(L);
    int results = resume(L, co, lua_gettop(L) - 1);
    lua_pushboolean(L, results >= 0);
    if (results < 0) results = 1;
    lua_insert(L, -(results + 1));
    return results + 1;
}

static int wrapped(lua_State *L) {
    lua_State *co = lua_tothread(L, lua_upvalueindex(1));
    int results = resume(L, co, lua_gettop(L));
    if (results >= 0) return results;
    int status = lua_status(co);
    if (status != LUA_OK && status != LUA_YIELD) { /* the error is its own: it is dead, close it */
        status = reset(L, co);
        lua_xmove(co, L, 1);
    }
    if (status != LUA_ERRMEM && lua_type(L, -1) == LUA_TSTRING) {
        luaL_where(L, 1);
        lua_insert(L, -2);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

static int coroutine_wrap(lua_State *L) {
    coroutine_create(L);
    lua_pushcclosure(L, wrapped, 1);
    return 1;
}

/* How a coroutine that may not be closed is called; NULL: it may. */
static const char *not_closable(lua_State *L, lua_State *co) {
    lua_Debug frame;
    if (co == L) return "running";
    if (lua_status(co) == LUA_OK && lua_getstack(co, 0, &frame)) return "normal";
    return NULL;
}

static int coroutine_close(lua_State *L) {
    lua_State *co = check_coroutine(L);
    const char *state = not_closable(L, co);
    if (state) return luaL_error(L, "cannot close a %s coroutine", state);
    int status = reset(L, co);
    lua_pushboolean(L, status == LUA_OK);
    if (status == LUA_OK) return 1;
    lua_xmove(co, L, 1);
    return 2;
}

void mr_coroutine_open(lua_State *L) {
    static const luaL_Reg functions[] = {{"create", coroutine_create},
                                         {"resume", coroutine_resume},
                                         {"wrap", coroutine_wrap},
                                         {"close", coroutine_close},
                                         {NULL, NULL}};
    lua_getglobal(L, LUA_COLIBNAME);
    luaL_setfuncs(L, functions, 0);
    lua_pop(L, 1);
}
