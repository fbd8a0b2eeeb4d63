/* Functions of Lua's libraries that a script can keep busy for hours, in a form that Ctrl-C and the limits of the
 * sandbox stop. No hook of Lua reaches a C function. The size of the arguments bounds the time of all others;
 * table.sort of many millions of elements takes longest. */
#ifndef MR_HOST_LIBRARY_H
#define MR_HOST_LIBRARY_H

#include <lua.h>

/* Once the libraries are open: replace functions of `string` and `table` by ones that do the same. */
void mr_strings_open(lua_State *L);
void mr_tables_open(lua_State *L);

#endif
