/* What a stranger's script can see under --sandbox. Limits on what it may use up: limits.h. */
#ifndef MR_HOST_SANDBOX_H
#define MR_HOST_SANDBOX_H

#include <lua.h>

/* Opens the libraries that a stranger may use, in place of luaL_openlibs. What is not safe is not
 * opened at all, so no trick finds it in this state. Raises only when memory is out. */
void mr_sandbox_open(lua_State *L);

/* Takes out of the module table `mr` at the top of the stack what reaches files. */
void mr_sandbox_close_module(lua_State *L);

#endif
