/* Names that PyTorch and CUDA have and this module has not: what to write instead. */
#ifndef MR_BIND_FOREIGN_H
#define MR_BIND_FOREIGN_H

#include "bind/bind.h"

/* The advice for `name` of an owner ("tensor", "stream", "event", "device", "mr"); NULL: none. `owner`
 * NULL: of any. */
const char *mr_foreign_advice(const char *owner, const char *name);

/* From now on, a name that is not in the table at the top of the stack, which is called `owner`, is an error. */
void mr_refuse_missing(lua_State *L, const char *owner);

#endif
