/* Scopes: a stream or a device is current until its scope ends. */
#ifndef MR_BIND_MACHINE_SCOPE_H
#define MR_BIND_MACHINE_SCOPE_H

#include "bind/bind.h"

/* Argument 1 is the stream or device. */
int mr_push_scope(lua_State *L); /* a scope that has begun; for a <close> variable */
int mr_call_with(lua_State *L);  /* mr.with(where, fn, ...) */

#endif
