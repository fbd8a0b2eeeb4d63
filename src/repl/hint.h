/* Hints for a failed script, as the prompt would show them. */
#ifndef MR_REPL_HINT_H
#define MR_REPL_HINT_H

#include <lua.h>

/* Pushes a line about a habit of another language or library, or nil, for the script with this text. `name` is what
 * `message` calls it. Runs no code of the script. Raises when memory is out. */
void mr_hint_push(lua_State *L, const char *name, const char *text, const char *message);

#endif
