/* The timeline of a session at the prompt: a trace that begins with it on the virtual GPU, and when it is first asked
 * for on hardware. */
#ifndef MR_REPL_TIMELINE_H
#define MR_REPL_TIMELINE_H

#include <lua.h>

/* Pushes the function timeline([first]) -> trace: from span `first` on, which counts from 0; and
 * timeline("count") -> the number of spans so far. */
void mr_repl_timeline_push(lua_State *L);

#endif
