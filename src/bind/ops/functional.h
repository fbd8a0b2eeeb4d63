/* Functions of tensors whose bodies are in lua/millrace/functional.lua. */
#ifndef MR_BIND_OPS_FUNCTIONAL_H
#define MR_BIND_OPS_FUNCTIONAL_H

#include "bind/bind.h"

/* Calls one with the arguments of the running function, and returns its results. */
int mr_functional_call(lua_State *L, const char *name);
/* t[index] and t[index] = value where the index at 2 is a tensor. */
int mr_functional_get_index(lua_State *L);
int mr_functional_set_index(lua_State *L);

#endif
