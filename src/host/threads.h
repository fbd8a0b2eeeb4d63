#ifndef MR_HOST_THREADS_H
#define MR_HOST_THREADS_H

#include <lua.h>

/* For ranks (mr.dist.spawn): Ctrl-C and limits reach the threads that they run on. Once the machine is open. */
void mr_threads_open(lua_State *L);

#endif
