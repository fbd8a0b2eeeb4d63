/* Names that are not in a table of functions. */
#ifndef MR_BIND_MISSING_H
#define MR_BIND_MISSING_H

#include "bind/bind.h"

/* From now on, a name that is not in the table at the top of the stack, which is called `owner`, is an error. */
void mr_refuse_missing(lua_State *L, const char *owner);

#endif
