/* The coroutine functions that start Lua threads, rewritten so that these threads can be stopped. */
#ifndef MR_HOST_COROUTINE_H
#define MR_HOST_COROUTINE_H

#include <lua.h>

/* Replaces create, resume, wrap and close in the global table `coroutine`; they behave as Lua's own.
 * May raise (out of memory). */
void mr_coroutine_open(lua_State *L);

#endif
