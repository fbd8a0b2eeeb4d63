/* Reductions. */
#ifndef MR_BIND_OPS_REDUCE_H
#define MR_BIND_OPS_REDUCE_H

#include "bind/bind.h"

/* Lua functions; which row they are for stands in their second upvalue. */
int mr_call_reduction(lua_State *L);
int mr_call_extreme(lua_State *L); /* max, min */

#endif
