/* Showing a value at the prompt. */
#ifndef MR_REPL_SHOW_H
#define MR_REPL_SHOW_H

#include <lua.h>

/* Writes the value at `index` to stdout: like tostring, except that a table without __tostring is shown
 * one level deep. Waits for nothing. Raises errors of __tostring. */
void mr_show(lua_State *L, int index);

#endif
