/* The functions that an untrusted script can use under --sandbox. limits.h has the limits on memory and time. */
#ifndef MR_HOST_SANDBOX_H
#define MR_HOST_SANDBOX_H

#include <lua.h>

/* Opens the libraries that an untrusted script may use, instead of luaL_openlibs. Unsafe functions are not
 * opened at all, so the script cannot find them in this state. Raises only if there is no memory. */
void mr_sandbox_open(lua_State *L);

/* Removes all functions that access files from the module table `mr` at the top of the stack. */
void mr_sandbox_close_module(lua_State *L);

#endif
