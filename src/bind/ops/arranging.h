/* Rows that put elements in another order, or choose some of them, in Lua: see arranging.c. */
#ifndef MR_BIND_OPS_ARRANGING_H
#define MR_BIND_OPS_ARRANGING_H

#include "bind/bind.h"

int mr_call_sorting(lua_State *L);
int mr_call_moving(lua_State *L);
int mr_call_compacting(lua_State *L);

#endif
