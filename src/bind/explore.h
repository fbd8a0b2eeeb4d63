/* What the host program needs of mr.explore. */
#ifndef MR_BIND_EXPLORE_H
#define MR_BIND_EXPLORE_H

#include <lua.h>

/* A function of Lua: (chunk, bounds, arguments...) -> the number of its outcomes; 0: one, and that is an error. Runs the chunk under every schedule; the
 * outcome is what it prints and returns. Prints the result. `bounds`: as behind --explore=. MR_EXPLORE_INTERRUPTED: Ctrl-C
 * ended it, and it has printed what was found. */
#define MR_EXPLORE_INTERRUPTED (-1)
int mr_bind_explore_script(lua_State *L);

#endif
