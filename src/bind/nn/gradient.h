/* Autograd: lua/millrace/autograd.lua does the work. These files are its way to tensors (gradient_tools.c) and what
 * scripts call (gradient.c). */
#ifndef MR_BIND_NN_GRADIENT_H
#define MR_BIND_NN_GRADIENT_H

#include "bind/bind.h"

extern const luaL_Reg mr_gradient_tools[]; /* ends with {NULL, NULL} */

/* Calls a function of the Lua module with the arguments of the running one, and returns its results. */
int mr_call_autograd(lua_State *L, const char *name);

#endif
