/* Tools of explore/watch.lua: see entries.c. */
#ifndef MR_BIND_EXPLORE_ENTRIES_H
#define MR_BIND_EXPLORE_ENTRIES_H

#include "bind/bind.h"

int mr_explore_tool_copy_entries(lua_State *L);
int mr_explore_tool_changed_entry(lua_State *L);
int mr_explore_tool_walk(lua_State *L);

#endif
