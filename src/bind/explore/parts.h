/* Shared by the files of mr.explore: explore.c has the functions that scripts call, run.c has the search and the
 * calls of the function. tools.c has the rest of what the Lua module needs. explore_guard.h has what the function
 * may not do. */
#ifndef MR_BIND_EXPLORE_PARTS_H
#define MR_BIND_EXPLORE_PARTS_H

#include "bind/bind.h"
#include "explore/explore.h"
#include "explore/keep.h"

/* ---- run.c */

bool mr_explore_is_stopped(const mr_machine *machine); /* by Ctrl-C */
/* Takes a Ctrl-C that ends the search: the results so far are returned to the script. False: it was the second one. */
bool mr_explore_takes_interrupt(const mr_machine *machine);

int mr_explore_tool_keep(lua_State *L);
int mr_explore_tool_is_loss(lua_State *L);
int mr_explore_tool_may_print(lua_State *L);
int mr_explore_tool_quiet(lua_State *L);
int mr_explore_tool_put_back(lua_State *L);
int mr_explore_tool_explore(lua_State *L);
int mr_explore_tool_replay(lua_State *L);
int mr_explore_tool_end_again(lua_State *L);
int mr_explore_tool_follow(lua_State *L);

bool mr_explore_stop_collector(lua_State *L);             /* whether it ran */
void mr_explore_start_collector(lua_State *L, bool runs); /* as it was before */

/* ---- tools.c */

int mr_explore_tool_is_tensor(lua_State *L);
int mr_explore_tool_is_unwritten(lua_State *L);
int mr_explore_tool_kind(lua_State *L);
int mr_explore_tool_facts(lua_State *L);
int mr_explore_tool_settings(lua_State *L);
int mr_explore_tool_is_own(lua_State *L);
int mr_explore_tool_rank(lua_State *L);
int mr_explore_tool_set_globals(lua_State *L);
int mr_explore_tool_fill(lua_State *L);
int mr_explore_tool_delay(lua_State *L);
int mr_explore_tool_attempt(lua_State *L);
int mr_explore_tool_drain(lua_State *L);
int mr_explore_tool_drained(lua_State *L);
int mr_explore_tool_end_captures(lua_State *L);
int mr_explore_tool_bytes(lua_State *L);
int mr_explore_tool_misuse(lua_State *L);
int mr_explore_tool_next_number(lua_State *L);
int mr_explore_tool_uncollected(lua_State *L);
int mr_explore_tool_shown(lua_State *L);
int mr_explore_tool_refuse(lua_State *L);
int mr_explore_tool_write(lua_State *L);
int mr_explore_tool_write_values(lua_State *L);

#endif
