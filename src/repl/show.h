/* A value as the prompt shows it. */
#ifndef MR_REPL_SHOW_H
#define MR_REPL_SHOW_H

#include <lua.h>

/* Writes the value at `index` to stdout: as tostring has it, but a table (without __tostring) one level
 * deep. Waits for nothing; raises what a __tostring raises. */
void mr_show(lua_State *L, int index);

#endif
