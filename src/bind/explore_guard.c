/* Refuses calls that a function may not make while it is explored: other calls of scripts ask
 * here before they do anything.
 *
 * Easiest to break: the function may catch the error. So a refusal is noted, too, and ends the exploration. */
#include "bind/explore_guard.h"

#include <stdio.h>

#include "bind/explore.h"

/* Their addresses are registry keys. */
/* the mr_explore_keeper while a function is explored, replayed or stressed */
static const char busy;
static const char of_rank; /* with it: the rank that has called that, from 1; 0: no rank has */
static const char search;  /* the mr_explore_refused while all schedules of it are searched */
static const char calls;   /* the mr_explore_call */
/* a text: the first call that may return something else in another run */
static const char differs;
static const char ranks; /* functions of lua/millrace/explore/apart.lua */

static void put(lua_State *L, const char *key, void *value) {
    if (value) lua_pushlightuserdata(L, value);
    else lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

void mr_explore_guard_keep(lua_State *L, mr_explore_keeper *keeper) {
    put(L, &busy, keeper);
    lua_pushinteger(L, keeper ? mr_machine_of(L)->rank : 0);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &of_rank);
}

bool mr_explore_guard_is_busy(lua_State *L) {
    return mr_under_key(L, &busy) != NULL;
}

void mr_explore_guard_search(lua_State *L, mr_explore_refused *refused) {
    put(L, &search, refused);
}

void mr_explore_guard_calls(lua_State *L, mr_explore_call *call) {
    put(L, &calls, call);
}

void mr_bind_explore_judged(lua_State *L, const mr_hazard_totals *totals,
                            const mr_hazard_report *reports, size_t count) {
    mr_explore_call *call = mr_under_key(L, &calls);
    if (!call || call->has_hazards) return;
    call->judged = true;
    call->has_hazards = count > 0;
    call->totals = *totals;
    call->race_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (reports[i].kind > MR_HAZARD_USE_BEFORE_ALLOC) continue; /* not of two commands */
        call->races[call->race_count++] =
            (mr_explore_race){reports[i].first.seq, reports[i].second.seq};
    }
}

/* seems_repeatable(): true if the last call used no source of difference, such as a clock */
int mr_explore_tool_seems_repeatable(lua_State *L) {
    mr_explore_call *call = mr_under_key(L, &calls);
    if (call) call->seems_repeatable = true;
    return 0;
}

/* ranks_are_apart(): true if in the last call the ranks shared no changed data */
int mr_explore_tool_ranks_are_apart(lua_State *L) {
    mr_explore_call *call = mr_under_key(L, &calls);
    if (call) call->ranks_are_apart = !call->watch_failed;
    return 0;
}

/* watch_ranks(table of functions, or nil): what mr.dist.spawn calls from now on */
int mr_explore_tool_watch_ranks(lua_State *L) {
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &ranks);
    return 0;
}

bool mr_bind_explore_watches_ranks(lua_State *L) {
    bool watches = lua_rawgetp(L, LUA_REGISTRYINDEX, &ranks) == LUA_TTABLE;
    lua_pop(L, 1);
    return watches;
}

/* The call may fail for want of memory. */
static void call_watch(lua_State *L, int argument_count) {
    mr_explore_call *call = mr_under_key(L, &calls);
    if (lua_pcall(L, argument_count, 0, 0) == LUA_OK) return;
    lua_pop(L, 1);
    if (call) call->watch_failed = true;
}

static void push_watch(lua_State *L, const char *name) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &ranks);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
}

void mr_bind_explore_ranks_begin(lua_State *L, int first, int count) {
    luaL_checkstack(L, count + 4, "spawn: too many arguments");
    push_watch(L, "begin");
    for (int i = 0; i < count; i++) lua_pushvalue(L, first + i);
    call_watch(L, count);
}

void mr_bind_explore_ranks_turn(lua_State *L) {
    push_watch(L, "turn");
    call_watch(L, 0);
}

void mr_bind_explore_tells_number(lua_State *L) {
    if (!mr_machine_of(L)->rank || !mr_bind_explore_watches_ranks(L)) return;
    push_watch(L, "ask");
    call_watch(L, 0);
}

void mr_bind_explore_ranks_end(lua_State *L, bool failed) {
    push_watch(L, "finish");
    lua_pushboolean(L, failed);
    call_watch(L, 1);
}

void mr_bind_explore_refuse(lua_State *L, const char *what) {
    mr_explore_refused *refused = mr_under_key(L, &search);
    if (!refused) return;
    mr_site where = mr_enter(L).where;
    snprintf(refused->text, sizeof refused->text, "the function calls %s (%s:%d)", what,
             where.file ? where.file : "?", where.line);
    mr_misuse(L, "not permitted inside mr.explore: %s", what);
}

void mr_bind_explore_refuse_meeting(lua_State *L) {
    static const char why[] =
        "mr.dist: the other ranks take part once, and this one runs again and again. Call "
        "mr.explore, mr.replay or mr.stress around mr.dist.spawn, or use --ranks N --explore";
    lua_rawgetp(L, LUA_REGISTRYINDEX, &of_rank);
    bool is_of_rank = lua_tointeger(L, -1) != 0;
    lua_pop(L, 1);
    if (!is_of_rank) return;
    mr_bind_explore_refuse(L, why);
    mr_misuse(L, "%s", why);
}

void mr_bind_explore_differs(lua_State *L, const char *what) {
    if (!mr_under_key(L, &search)) return;
    bool known = lua_rawgetp(L, LUA_REGISTRYINDEX, &differs) == LUA_TSTRING;
    lua_pop(L, 1);
    if (known) return;
    mr_site where = mr_enter(L).where;
    lua_pushfstring(L, "The function calls %s (%s:%d)", what, where.file ? where.file : "?",
                    where.line);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &differs);
}

/* suspect() -> what mr_bind_explore_differs has noted since the last suspect(), as a sentence; or nil */
int mr_explore_tool_suspect(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &differs);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &differs);
    return 1;
}

void mr_bind_explore_refuse_kind(lua_State *L, mr_command_id kind) {
    mr_bind_explore_refuse(L, mr_explore_refusal(kind));
}

static void refuse_end(lua_State *L, mr_explore_keeper *keeper, const char *what) {
    mr_raise(L, mr_explore_refuse_end(keeper, what, mr_enter(L).where));
}

void mr_bind_explore_frees(lua_State *L, const mr_storage *storage) {
    mr_explore_keeper *keeper = mr_under_key(L, &busy);
    if (keeper && mr_explore_had_storage(keeper, storage)) refuse_end(L, keeper, "frees a tensor");
}

void mr_bind_explore_closes_stream(lua_State *L, const mr_stream *stream) {
    mr_explore_keeper *keeper = mr_under_key(L, &busy);
    if (keeper && mr_explore_had_stream(keeper, stream)) refuse_end(L, keeper, "closes a stream");
}

void mr_bind_explore_closes_event(lua_State *L, const mr_event *event) {
    mr_explore_keeper *keeper = mr_under_key(L, &busy);
    if (keeper && mr_explore_had_event(keeper, event)) refuse_end(L, keeper, "closes an event");
}
