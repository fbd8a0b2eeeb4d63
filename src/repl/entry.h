/* Whether a text is an entry of the prompt, or the beginning of one. */
#ifndef MR_REPL_ENTRY_H
#define MR_REPL_ENTRY_H

#include <lua.h>
#include <stdbool.h>
#include <stddef.h>

/* More lines may yet make it one, as an expression or as statements: Lua's parser says so. Commands (":queues", "?x") are
 * whole. Raises only when memory is out. */
bool mr_entry_is_incomplete(lua_State *L, const char *text, size_t size);

#endif
