/* Calls that a function may not make while it is explored, replayed or stressed. The files of mr.explore mark its
 * beginning and end; some calls behave differently in between. explore.h has the refusals. */
#ifndef MR_BIND_EXPLORE_GUARD_H
#define MR_BIND_EXPLORE_GUARD_H

#include "bind/bind.h"
#include "explore/explore.h"
#include "explore/keep.h"
#include "hazard/hazard.h"

/* The action of the function that no search can follow; "" */
typedef struct {
    char text[240];
} mr_explore_refused;

/* Facts about the last call of the function. */
typedef struct {
    bool judged, seems_repeatable;
    /* an earlier call had hazards: later calls are not judged */
    bool has_hazards;
    bool ranks_are_apart, watch_failed; /* by explore/apart.lua */
    /* of the checker, where it was judged */
    mr_hazard_totals totals;
    mr_explore_race races[MR_HAZARD_MAX_REPORTS];
    size_t race_count;
} mr_explore_call;

void mr_explore_guard_keep(lua_State *L, mr_explore_keeper *keeper); /* NULL: none */
bool mr_explore_guard_is_busy(lua_State *L);                         /* there is a keeper */
/* Begins a search of all schedules: refused calls of the function are noted there; NULL: ends it. */
void mr_explore_guard_search(lua_State *L, mr_explore_refused *refused);
/* Notes facts about its calls there; NULL: not any more. */
void mr_explore_guard_calls(lua_State *L, mr_explore_call *call);
int mr_explore_tool_seems_repeatable(lua_State *L);
int mr_explore_tool_ranks_are_apart(lua_State *L);
int mr_explore_tool_watch_ranks(lua_State *L);
int mr_explore_tool_suspect(lua_State *L);

#endif
