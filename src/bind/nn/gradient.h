/* Autograd: lua/millrace/autograd.lua does the work. These files are its way to tensors (gradient_tools.c) and what
 * scripts call (gradient.c). */
#ifndef MR_BIND_NN_GRADIENT_H
#define MR_BIND_NN_GRADIENT_H

#include "bind/bind.h"

extern const luaL_Reg mr_gradient_tools[]; /* ends with {NULL, NULL} */

/* Calls a function of the Lua module with the arguments of the running one, and returns its results. */
int mr_call_autograd(lua_State *L, const char *name);

/* Makes the unused tensor at `index` a leaf that requires gradients. */
void mr_gradient_require(lua_State *L, int index);
int mr_gradient_set_field(lua_State *L); /* __newindex of a tensor for a string */
/* Pushes the part of tostring about gradients for the tensor at `index`: "", ", requires_grad" for a leaf, or ",
 * grad_fn " and the operation that made it. */
void mr_push_gradient_text(lua_State *L, int index);

#endif
