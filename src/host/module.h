/* The backends that this build has, and `require "millrace"` in a plain lua5.4. The only place that
 * names the backends; main.c and the loadable module share it. */
#ifndef MR_HOST_MODULE_H
#define MR_HOST_MODULE_H

#include <lua.h>

#include "model/machine.h"

/* The backend for options->device: "auto", "virtual", "virtual:4", "cuda", "cuda:1" (NULL: auto); else an
 * error that says which words are known, or that this build has no such backend. Auto takes a GPU if there
 * is one that can be used, and says nothing if there is none. Turns "auto" into NULL; what follows the ":"
 * is the backend's to check. */
mr_status mr_backend_select(mr_machine_options *options, const mr_backend **out_backend);

/* The one that needs no GPU: on which times are predicted, whatever the machine is. */
const mr_backend *mr_backend_simulated(void);

/* Lua's entry point for millrace.so: opens the machine that MILLRACE_DEVICE asks for; in a state that has one,
 * gives the same module again. */
int luaopen_millrace(lua_State *L);

#endif
