/* For tests (make check-san): before each call of a function of Lua's that may run the collector, all garbage is
 * collected, and finalizers run. With AddressSanitizer the Makefile includes this in front of every file that includes
 * lua.h; no file names it. It does nothing unless the environment has MILLRACE_GCSTRESS, so one build serves both. An
 * object that such a file uses after such a call must be held by something, or it is gone.
 *
 * The value of MILLRACE_GCSTRESS is the pace: a place in the code first collects this many times, then half as often
 * in each range that is twice as long. Otherwise a test would take hours. A faulty place usually fails at its first
 * calls. */
#ifndef MR_BIND_GCSTRESS_H
#define MR_BIND_GCSTRESS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

__attribute__((unused)) static void mr_gc_stress(lua_State *L, unsigned line) {
    static unsigned passed[1024];
    static int always = -1; /* not known yet */
    if (always < 0) {
        const char *pace = getenv("MILLRACE_GCSTRESS");
        always = pace ? atoi(pace) : 0;
    }
    if (always <= 0) return;
    unsigned times = passed[line & 1023]++;
    if (times % (times / (unsigned)always + 1)) return;
    /* Not while a script has stopped it, nor inside a finalizer. */
    if (lua_gc(L, LUA_GCISRUNNING) == 1) lua_gc(L, LUA_GCCOLLECT);
}

#define MR_GC_STRESS(L, call) (mr_gc_stress(L, __LINE__), call)

#define lua_createtable(L, ...)   MR_GC_STRESS(L, lua_createtable(L, __VA_ARGS__))
#define lua_newuserdatauv(L, ...) MR_GC_STRESS(L, lua_newuserdatauv(L, __VA_ARGS__))
#define lua_newthread(L)          MR_GC_STRESS(L, lua_newthread(L))
#define lua_pushcclosure(L, ...)  MR_GC_STRESS(L, lua_pushcclosure(L, __VA_ARGS__))
#define lua_pushlstring(L, ...)   MR_GC_STRESS(L, lua_pushlstring(L, __VA_ARGS__))
#define lua_pushstring(L, ...)    MR_GC_STRESS(L, lua_pushstring(L, __VA_ARGS__))
#define lua_pushfstring(L, ...)   MR_GC_STRESS(L, lua_pushfstring(L, __VA_ARGS__))
#define lua_pushvfstring(L, ...)  MR_GC_STRESS(L, lua_pushvfstring(L, __VA_ARGS__))
#define lua_concat(L, ...)        MR_GC_STRESS(L, lua_concat(L, __VA_ARGS__))
#define luaL_tolstring(L, ...)    MR_GC_STRESS(L, luaL_tolstring(L, __VA_ARGS__))
#define luaL_getsubtable(L, ...)  MR_GC_STRESS(L, luaL_getsubtable(L, __VA_ARGS__))
#define luaL_getmetafield(L, ...) MR_GC_STRESS(L, luaL_getmetafield(L, __VA_ARGS__))
#define luaL_traceback(L, ...)    MR_GC_STRESS(L, luaL_traceback(L, __VA_ARGS__))
#define luaL_addlstring(B, ...)   MR_GC_STRESS((B)->L, luaL_addlstring(B, __VA_ARGS__))
#define luaL_addstring(B, ...)    MR_GC_STRESS((B)->L, luaL_addstring(B, __VA_ARGS__))
#define luaL_pushresult(B)        MR_GC_STRESS((B)->L, luaL_pushresult(B))
/* Makes a string of a number. */
#define lua_tolstring(L, index, size)                                                              \
    (lua_type(L, index) == LUA_TNUMBER ? mr_gc_stress(L, __LINE__) : (void)0,                      \
     lua_tolstring(L, index, size))

#endif
