/* Functions whose bodies are written in Lua. Their usage lines and help texts stand in front of the bodies, in
 * lua/millrace; scripts/lua_docs.c, which describes their form, makes an mr_function of each. */
#ifndef MR_BIND_LUA_BODY_H
#define MR_BIND_LUA_BODY_H

#include "bind/bind.h"

/* An embedded Lua module that has such bodies. Its address is the registry key of what it returned. */
struct mr_lua_module {
    const char *name;      /* "millrace.nn" */
    const luaL_Reg *tools; /* the C functions that it uses; see mr_push_embedded */
};
extern const mr_lua_module mr_lua_functional, mr_lua_nn, mr_lua_optim, mr_lua_data, mr_lua_dist;

/* The `call` of these functions. It loads the module at the first call of one of them. */
int mr_call_lua(lua_State *L);
/* Calls the function `name` of the table `path` ("lr_scheduler.Scheduler") in what the module returned, or of that
 * itself if `path` is empty. It gets the arguments of the running function. Returns the number of its results. */
int mr_call_lua_named(lua_State *L, const mr_lua_module *module, const char *path,
                      const char *name);

/* Marks the Lua module's function at that stack index: from now on its waits count as waits of the calling line, as in
 * mr.dist.Work. */
void mr_lua_note_waits_for_caller(lua_State *L, int at);
/* Whether the function of `frame` is one of them. */
bool mr_lua_waits_for_caller(lua_State *L, lua_Debug *frame);

#endif
