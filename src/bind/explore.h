/* What the host program needs of mr.explore. */
#ifndef MR_BIND_EXPLORE_H
#define MR_BIND_EXPLORE_H

#include <lua.h>

/* A function of Lua: (chunk, bounds, arguments...) -> whether its outcomes differ. Runs the chunk under every schedule; the
 * outcome is what it prints and returns. Prints the result. `bounds`: as behind --explore=. */
int mr_bind_explore_script(lua_State *L);

#endif
