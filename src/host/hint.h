/* Hints for a script that has failed, and for one that does not read an option after it. */
#ifndef MR_HOST_HINT_H
#define MR_HOST_HINT_H

#include <lua.h>

/* The script has failed, and its message was said. Says a hint, if there is one, on standard error. `code` NULL:
 * the text is that of the file `name`. */
void mr_host_hint(lua_State *L, const char *name, const char *code);
/* Before the script runs: `option`, one of millrace's, stands after it. Says on standard error that it is an argument
 * of the script, unless the text of the script shows that it may read arguments. */
void mr_host_hint_misplaced(const char *path, const char *option);

#endif
