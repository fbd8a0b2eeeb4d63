/* Rows of the INDEX family in Lua: see indexing.c. */
#ifndef MR_BIND_OPS_INDEXING_H
#define MR_BIND_OPS_INDEXING_H

#include "bind/bind.h"

int mr_call_pick(lua_State *L);
int mr_call_place(lua_State *L);

#endif
