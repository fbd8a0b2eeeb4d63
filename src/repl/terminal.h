/* Whether the output of the prompt may contain colours and characters beyond ASCII. */
#ifndef MR_REPL_TERMINAL_H
#define MR_REPL_TERMINAL_H

#include <lua.h>

/* terminal() -> whether colours, and whether characters beyond ASCII may be written */
int mr_repl_terminal(lua_State *L);

#endif
