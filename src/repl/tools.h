/* The host's functions for the Lua modules of the prompt (lua/millrace/prompt): a table of functions that each of them
 * gets. No script may get it: it has what --sandbox takes away. */
#ifndef MR_REPL_TOOLS_H
#define MR_REPL_TOOLS_H

#include <lua.h>

#include "repl/repl.h"

/* Pushes the table. `host` is kept by address. */
void mr_tools_push(lua_State *L, const mr_repl_host *host);

/* Pushes the result of the module "session", which is run at the first call; the tools are at `tools`. Raises. nil:
 * there is no such module. */
void mr_tools_require(lua_State *L, int tools, const char *name);

#endif
