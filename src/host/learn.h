/* `millrace learn`: what its Lua module (lua/millrace/learn.lua) asks of the host. */
#ifndef MR_HOST_LEARN_H
#define MR_HOST_LEARN_H

#include <lua.h>

/* Every order can be tried on the virtual GPU only. Some lessons are about two devices. */
#define MR_LEARN_DEVICE "virtual:2"

/* Pushes the function that runs `millrace learn`: it takes the arguments after the word, and returns the exit status.
 * Raises. */
void mr_learn_push(lua_State *L);

/* Pushes the table of functions that the Lua modules of lessons take: the prompt grades with them, too. Raises. */
void mr_learn_push_tools(lua_State *L);

#endif
