/* Handles by which processes share memory and events. */
#ifndef MR_BIND_MACHINE_IPC_H
#define MR_BIND_MACHINE_IPC_H

#include "bind/bind.h"

/* The MR_IPC_HANDLE_BYTES of the handle at `index`. Raises if it is not one. */
const char *mr_check_ipc_handle(lua_State *L, int index, const char *what);

/* Why the virtual GPU has none. */
#define MR_NO_IPC_EVENTS "its events are records of a simulation, which no other process can see"

#endif
