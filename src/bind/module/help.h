/* Facts about functions and tables from help, for the prompt. */
#ifndef MR_BIND_MODULE_HELP_H
#define MR_BIND_MODULE_HELP_H

#include <lua.h>

/* Pushes the usage line of the function at `index`; nil: it is not one of millrace's. */
void mr_help_push_usage(lua_State *L, int index);

/* "mr.hazard" for that table; "stream" for a stream; NULL: the value at `index` is of another kind. */
const char *mr_help_owner(lua_State *L, int index);
/* Pushes the metatable of the objects of a class ("stream"), or nil. */
void mr_help_push_class(lua_State *L, const char *name);

/* Pops a function, which from now on shows the text of a page. */
void mr_help_set_pager(lua_State *L);

#endif
