/* The coroutines of mr.run's tasks, for the search for the script's variables. */
#ifndef MR_BIND_RANKS_TASK_H
#define MR_BIND_RANKS_TASK_H

#include "bind/bind.h"

/* Pushes their list; false, and pushes nothing: there was none. Then how many, of the list at the top. */
bool mr_bind_push_tasks(lua_State *L);
lua_Integer mr_bind_task_count(lua_State *L);

#endif
