/* Names that PyTorch and CUDA have and this module has not: what to write instead. */
#ifndef MR_BIND_FOREIGN_H
#define MR_BIND_FOREIGN_H

#include "bind/bind.h"

/* The advice for `name` of an owner ("tensor", "stream", "event", "device", "mr"); NULL: none. `owner`
 * NULL: of any. */
const char *mr_foreign_advice(const char *owner, const char *name);

/* Makes the table `mr` at the top of the stack raise for names that it has not; `machine` and what
 * else only some backends have stays nil. Called when all that is in it is there. */
void mr_open_foreign(lua_State *L, mr_machine *machine);

#endif
