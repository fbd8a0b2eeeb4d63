/* One userdata for each C object: a weak table from address to userdata, so that the same stream is
 * the same Lua value however it was reached. */
#ifndef MR_BIND_REGISTRY_H
#define MR_BIND_REGISTRY_H

#include "bind/bind.h"

/* Pushes the userdata of `object` and returns true, or pushes nothing. */
bool mr_registry_push(lua_State *L, const void *object);
/* Makes the userdata at the top of the stack the one of `object`. */
void mr_registry_add(lua_State *L, const void *object);
void mr_registry_open(lua_State *L);

#endif
