/* Hints behind the message of a script that has failed. */
#ifndef MR_HOST_HINT_H
#define MR_HOST_HINT_H

#include <lua.h>

/* The script has failed, and its message was said. Says a hint, if there is one, on standard error. `code` NULL:
 * the text is that of the file `name`. */
void mr_host_hint(lua_State *L, const char *name, const char *code);

#endif
