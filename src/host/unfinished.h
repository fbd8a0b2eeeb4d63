/* Finishes the work that a script has not waited for, when it is over. */
#ifndef MR_HOST_UNFINISHED_H
#define MR_HOST_UNFINISHED_H

#include <lua.h>

/* A Lua function without arguments: raises the error of a user's kernel that is still pending. The devices go on only
 * if there is such a kernel. On hardware nothing is done while host functions are pending: a wait would run them, and
 * the end of a program drops them. The machine must have been opened, and be in no host function. */
int mr_unfinished_ask(lua_State *L);

#endif
