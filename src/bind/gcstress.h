/* For tests (make check-san): checks two rules for code that calls Lua. With AddressSanitizer the Makefile includes
 * this in front of every file that includes lua.h; no file names it.
 *
 * 1. Code must hold an object that it uses after a call that may run the collector. If the environment has
 * MILLRACE_GCSTRESS, all garbage is collected before each such call, and finalizers run. The variable's value is the
 * pace: a place in the code first collects this many times, then half as often in each range that is twice as long.
 * Otherwise a test would take hours. A faulty place usually fails at its first calls.
 *
 * 2. Nothing may run the collector while observers are asked or told of a command, or while the checker asks about the
 * script. A finalizer may use the machine, and would change the state that an observer looks at. Such a call ends the
 * process. */
#ifndef MR_BIND_GCSTRESS_H
#define MR_BIND_GCSTRESS_H

#include <lauxlib.h>
#include <lua.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

bool mr_bind_is_telling(lua_State *L); /* bind/caller.c */

__attribute__((unused)) static void mr_gc_stress(lua_State *L, const char *file, unsigned line) {
    static unsigned passed[1024];
    static int always = -1; /* not known yet */
    if (mr_bind_is_telling(L)) {
        fprintf(stderr, "an observer may run Lua's collector at %s:%u\n", file, line);
        abort();
    }
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

#define MR_GC_STRESS(L, call) (mr_gc_stress(L, __FILE__, __LINE__), call)

#define lua_createtable(L, ...)   MR_GC_STRESS(L, lua_createtable(L, __VA_ARGS__))
#define lua_newuserdatauv(L, ...) MR_GC_STRESS(L, lua_newuserdatauv(L, __VA_ARGS__))
#define lua_newthread(L)          MR_GC_STRESS(L, lua_newthread(L))
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
#define luaL_addvalue(B)          MR_GC_STRESS((B)->L, luaL_addvalue(B))
#define luaL_newmetatable(L, ...) MR_GC_STRESS(L, luaL_newmetatable(L, __VA_ARGS__))
#define luaL_loadbufferx(L, ...)  MR_GC_STRESS(L, luaL_loadbufferx(L, __VA_ARGS__))
/* Makes an object only for upvalues. */
#define lua_pushcclosure(L, function, upvalues)                                                    \
    ((upvalues) > 0 ? mr_gc_stress(L, __FILE__, __LINE__) : (void)0,                               \
     lua_pushcclosure(L, function, upvalues))
/* These make a string of a number. */
#define MR_GC_STRESS_TEXT(L, index, call)                                                          \
    (lua_type(L, index) == LUA_TNUMBER ? mr_gc_stress(L, __FILE__, __LINE__) : (void)0, call)
#define lua_tolstring(L, index, size) MR_GC_STRESS_TEXT(L, index, lua_tolstring(L, index, size))
#define luaL_checklstring(L, index, size)                                                          \
    MR_GC_STRESS_TEXT(L, index, luaL_checklstring(L, index, size))
#define luaL_optlstring(L, index, otherwise, size)                                                 \
    MR_GC_STRESS_TEXT(L, index, luaL_optlstring(L, index, otherwise, size))

#endif
