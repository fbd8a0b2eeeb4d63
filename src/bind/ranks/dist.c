/* mr.dist: ranks in this process (collective/ranks.h), and processes that are ranks (collective/world.h).
 * lua/millrace/dist.lua has the functions that a rank calls; this file starts ranks. Each runs its function on a thread
 * of Lua, and on a C stack, of its own. */
#include <string.h>

#include "bind/ranks/comm.h"
#include "bind/explore.h"
#include "bind/explore_guard.h"
#include "bind/missing.h"
#include "bind/internal.h"
#include "bind/lua_body.h"
#include "bind/open.h"
#include "collective/ranks.h"
#include "collective/transport.h"
#include "collective/world.h"
#include "model/backend.h"

#define MOST            MR_MEETING_MOST
#define DEFAULT_TIMEOUT 600 /* seconds */

/* Registry key of the function that lua/millrace/dist.lua gave to when_put_back. */
static const char put_back_key;

void mr_bind_threads(lua_State *L, const mr_thread_hooks *hooks) {
    mr_bind_module(L)->threads = hooks;
}

/* This folder's state of a host, while another one runs. */
typedef struct {
    void *hook_context; /* the thread that called last */
    bool gradients_off, has_ended, has_failed;
    mr_thread_place place;
} host;

typedef struct mr_spawner {
    lua_State *L; /* of the caller */
    mr_machine *machine;
    mr_module *module;
    lua_State *threads[MOST];
    host hosts[MOST + 1]; /* the last one: the caller's */
    uint32_t count;
    uint32_t active; /* whose host runs */
    bool watched;    /* what they share */
    int arguments;
    int results; /* where the table of what ranks have returned is on the caller's stack */
} spawner;

static void enter(void *context, uint32_t rank) {
    spawner *s = context;
    host *was = &s->hosts[s->active], *now = &s->hosts[rank];
    const mr_thread_hooks *hooks = s->module->threads;
    was->hook_context = s->machine->hooks.context;
    /* this runs with a hook context of its own */
    if (s->watched) mr_bind_explore_ranks_turn(s->L);
    was->gradients_off = s->module->gradients_off;
    if (hooks && s->active < MOST) hooks->swap(&was->place);
    s->active = rank;
    if (hooks && rank < MOST) hooks->swap(&now->place);
    s->machine->hooks.context = now->hook_context;
    s->module->gradients_off = now->gradients_off;
}

static lua_State *parked_rank(const spawner *s, uint32_t rank) {
    bool is_parked = rank < s->count && rank != s->active && !s->hosts[rank].has_ended;
    return is_parked ? s->hosts[rank].hook_context : NULL;
}

/* Runs no code of the script, because its error would not be caught. */
static mr_status status_of(lua_State *co) {
    if (lua_istable(co, -1)) {
        lua_pushliteral(co, "message");
        lua_rawget(co, -2);
    } else {
        lua_pushvalue(co, -1);
    }
    const char *message = lua_type(co, -1) == LUA_TSTRING ? lua_tostring(co, -1) : NULL;
    mr_status error =
        message ? mr_fail(MR_CODE_UNKNOWN, "%s", message)
                : mr_fail(MR_CODE_UNKNOWN, "(error object is a %s value)", luaL_typename(co, -2));
    lua_pop(co, 1);
    return error;
}

/* Takes the results off its thread at once: other ranks can resume or close a thread that has ended. */
static mr_status run_rank(void *context, uint32_t rank) {
    spawner *s = context;
    lua_State *co = s->threads[rank];
    const mr_thread_hooks *hooks = s->module->threads;
    mr_thread_node node;
    if (hooks) hooks->enter(&node, co);
    int status = lua_pcall(co, s->arguments + 1, 1, 0);
    if (hooks) hooks->leave(&node);
    s->hosts[rank].has_ended = true;
    s->hosts[rank].has_failed = status != LUA_OK;
    mr_status error = status == LUA_OK ? MR_OK : status_of(co);
    lua_xmove(co, s->L, 1);
    /* the table has room for it, so no memory is needed */
    lua_rawseti(s->L, s->results, (lua_Integer)rank + 1);
    return error;
}

/* Pushes a table that keeps the threads; each has the function, its rank and the other arguments on its stack. */
static void make_threads(lua_State *L, spawner *s, uint32_t count) {
    lua_createtable(L, (int)count, 0);
    for (uint32_t k = 0; k < count; k++) {
        lua_State *co = s->threads[k] = lua_newthread(L);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
        if (!lua_checkstack(co, s->arguments + LUA_MINSTACK))
            mr_misuse(L, "spawn: too many arguments");
        lua_pushvalue(L, 2);
        lua_xmove(L, co, 1);
        lua_pushinteger(co, k);
        for (int i = 0; i < s->arguments; i++) {
            lua_pushvalue(L, 3 + i);
            lua_xmove(L, co, 1);
        }
        s->hosts[k].hook_context = co;
        if (s->module->threads) s->module->threads->copy(&s->hosts[k].place);
    }
}

/* Whether each field of the table at `a` is the same in the table at `b`. */
static bool has_fields_of(lua_State *L, int a, int b) {
    bool same = true;
    for (lua_pushnil(L); same && lua_next(L, a);) {
        lua_pushvalue(L, -2);
        lua_rawget(L, b);
        same = lua_rawequal(L, -1, -2);
        lua_pop(L, same ? 2 : 3);
    }
    return same;
}

/* The same value, or plain tables with the same fields. Runs no code of the script. */
static bool same_error(lua_State *L, int a, int b) {
    if (lua_rawequal(L, a, b)) return true;
    if (!lua_istable(L, a) || !lua_istable(L, b)) return false;
    if (lua_getmetatable(L, a) || lua_getmetatable(L, b)) return false;
    return has_fields_of(L, a, b) && has_fields_of(L, b, a);
}

/* The lowest rank that ended by the same error as `first`. So which of them came first makes no difference. */
static uint32_t name_rank(lua_State *L, const spawner *s, uint32_t first) {
    uint32_t rank = 0;
    bool same = false;
    luaL_checkstack(L, LUA_MINSTACK, "spawn");
    for (; rank < first; rank++) {
        int top = lua_gettop(L);
        lua_rawgeti(L, s->results, (lua_Integer)first + 1);
        lua_rawgeti(L, s->results, (lua_Integer)rank + 1);
        same = s->hosts[rank].has_failed && same_error(L, top + 1, top + 2);
        lua_settop(L, top);
        if (same) break;
    }
    return rank;
}

/* Raises a rank's error, with the rank in front. */
static int raise_of(lua_State *L, const spawner *s, uint32_t rank) {
    lua_rawgeti(L, s->results, (lua_Integer)rank + 1);
    if (lua_type(L, -1) == LUA_TSTRING) {
        lua_pushfstring(L, "rank %d: %s", (int)rank, lua_tostring(L, -1));
    } else if (lua_istable(L, -1)) {
        lua_pushliteral(L, "rank");
        lua_pushinteger(L, rank);
        lua_rawset(L, -3);
    }
    return lua_error(L);
}

MR_FUNCTION(
    dist_spawn, "spawn", "mr.dist.spawn(n: integer, fn: function, ...: any) -> results: list",
    "Runs `fn(rank, ...)` for each rank from 0 to n-1, as n processes would: each on a device "
    "of its own, which is current, with its own clock and random numbers. Ranks meet at their "
    "collectives; if they cannot, each gets the error `deadlock`. All share the globals of this "
    "script. Returns what the functions returned first. If a rank fails, its error is raised with "
    "the rank in front: of several the first one; the lowest rank if they have the same error.") {
    mr_machine *machine = mr_set_context(L);
    lua_Integer count = luaL_checkinteger(L, 1);
    if (!lua_isfunction(L, 2)) mr_bad_argument(L, 2, "a function");
    if (count < 1 || count > MOST)
        mr_misuse(L, "spawn: expected 1 to %d ranks, got %d", MOST, (int)count);
    mr_collectives *c = mr_bind_collectives(L);
    int arguments = lua_gettop(L) - 2;
    spawner *s = lua_newuserdatauv(L, sizeof *s, 0);
    memset(s, 0, sizeof *s);
    s->L = L;
    s->machine = machine;
    s->module = mr_module_of(L);
    s->count = (uint32_t)count;
    s->active = MOST;
    s->arguments = arguments;
    lua_createtable(L, (int)count, 0);
    s->results = lua_gettop(L);
    make_threads(L, s, (uint32_t)count);
    s->watched = mr_bind_explore_watches_ranks(L);
    if (s->watched) mr_bind_explore_ranks_begin(L, 2, arguments + 1);
    mr_ranks_failure failed = {.rank = MOST};
    s->module->spawner = s;
    s->module->parked_rank = parked_rank;
    mr_status status = mr_ranks_run(c,
                                    &(mr_rank_functions){.count = (uint32_t)count,
                                                         .run = run_rank,
                                                         .enter = enter,
                                                         .each_turn = s->watched,
                                                         .context = s},
                                    &failed);
    s->module->spawner = NULL;
    if (s->watched) mr_bind_explore_ranks_end(L, status && !failed.is_deadlock);
    if (status && failed.rank < MOST) {
        mr_error_destroy(status);
        return raise_of(L, s, name_rank(L, s, failed.rank));
    }
    mr_raise(L, status);
    lua_pushvalue(L, s->results);
    return 1;
}

/* --- functions for lua/millrace/dist.lua --------------------------------------------------------------- */

static int tool_misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* join([timeout]): if this process was started as one of several ranks, and no ranks of its own run. Raises if an error
 * has separated the ranks. */
static int tool_join(lua_State *L) {
    mr_collectives *c = mr_bind_collectives(L);
    double timeout = luaL_optnumber(L, 1, DEFAULT_TIMEOUT);
    mr_started launch = mr_started_find();
    mr_fabric *fabric;
    mr_raise(L, mr_ranks_separated(c));
    if (mr_world_is_joined(c)) {
        if (!lua_isnoneornil(L, 1)) mr_world_set_timeout(c, timeout);
        return 0;
    }
    if (!launch.by || mr_ranks_current(c) != MOST) return 0;
    mr_bind_explore_refuse(L, MR_RANKS_NOT_EXPLORED);
    mr_raise(L, mr_world_not_joined(c));
    mr_raise(L, mr_transport_open(&launch, timeout, &fabric));
    mr_raise(L, mr_world_join(c, fabric, timeout, mr_enter(L).where));
    const mr_thread_hooks *hooks = mr_module_of(L)->threads;
    if (hooks) hooks->joined(launch.rank);
    return 0;
}

void mr_bind_rank_failed(lua_State *L, const char *error) {
    mr_module *module = mr_bind_module(L);
    if (module && module->collectives) mr_world_fail(module->collectives, error);
}

/* Whether the ranks are processes, and then the number of this one on its computer. */
static int tool_local_rank(lua_State *L) {
    mr_collectives *c = mr_bind_collectives(L);
    if (mr_world_is_joined(c)) lua_pushinteger(L, mr_world_local_rank(c));
    else lua_pushnil(L);
    return 1;
}

/* Whether the ranks are processes with real devices, which meet to make a group. */
static int tool_meets_for_groups(lua_State *L) {
    lua_pushboolean(L, mr_world_is_joined(mr_bind_collectives(L)) &&
                           !mr_machine_of(L)->backend->simulator);
    return 1;
}

/* group(number, ranks): the communicator of this rank, or nil. */
static int tool_group(lua_State *L) {
    uint32_t ranks[MOST];
    uint32_t number = (uint32_t)luaL_checkinteger(L, 1);
    uint32_t count = (uint32_t)lua_rawlen(L, 2);
    mr_comm *comm;
    if (count > MOST)
        mr_misuse(L, "new_group: expected at most %d ranks, got %d", MOST, (int)count);
    for (uint32_t i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        ranks[i] = (uint32_t)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
    mr_raise(L, mr_world_group(mr_bind_collectives(L), number, ranks, count, &comm));
    if (comm) mr_push_comm(L, comm);
    else lua_pushnil(L);
    return 1;
}

/* The rank that runs and how many there are; nil: none runs. */
static int tool_rank(lua_State *L) {
    mr_collectives *c = mr_bind_collectives(L);
    if (mr_ranks_current(c) == MOST) {
        lua_pushnil(L);
        return 1;
    }
    lua_pushinteger(L, mr_ranks_current(c));
    lua_pushinteger(L, mr_ranks_count(c));
    return 2;
}

static int tool_world(lua_State *L) {
    mr_push_comm(L, mr_ranks_world(mr_bind_collectives(L)));
    return 1;
}

/* The number of resets of the machine: communicators from before a reset are lost. */
static int tool_epoch(lua_State *L) {
    lua_pushinteger(L, mr_machine_of(L)->epoch);
    return 1;
}

/* The line of the script that calls, as text. */
static int tool_place(lua_State *L) {
    mr_site where = mr_enter(L).where;
    lua_pushfstring(L, "%s:%d", where.file ? where.file : "?", where.line);
    return 1;
}

static int tool_in_group(lua_State *L) {
    lua_pushboolean(L, mr_collectives_in_group(mr_bind_collectives(L)));
    return 1;
}

/* is_called_again(): whether mr.explore, mr.replay or mr.stress is running its function */
static int tool_is_called_again(lua_State *L) {
    lua_pushboolean(L, mr_explore_guard_is_busy(L));
    return 1;
}

/* when_put_back(fn): fn is called before each further run of such a function, and after the last one */
static int tool_when_put_back(lua_State *L) {
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &put_back_key);
    return 0;
}

/* waits_for_caller(fn): the waits of fn count as those of the line that calls it */
static int tool_waits_for_caller(lua_State *L) {
    mr_lua_note_waits_for_caller(L, 1);
    return 0;
}

void mr_bind_dist_put_back(lua_State *L) {
    luaL_checkstack(L, LUA_MINSTACK, NULL);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &put_back_key) != LUA_TFUNCTION ||
        lua_pcall(L, 0, 0, 0) != LUA_OK)
        lua_pop(L, 1);
}

static const luaL_Reg tools[] = {{"misuse", tool_misuse},
                                 {"is_called_again", tool_is_called_again},
                                 {"when_put_back", tool_when_put_back},
                                 {"waits_for_caller", tool_waits_for_caller},
                                 {"rank", tool_rank},
                                 {"world", tool_world},
                                 {"epoch", tool_epoch},
                                 {"in_group", tool_in_group},
                                 {"barrier", mr_comm_barrier},
                                 {"reopen", mr_comm_reopen_own},
                                 {"place", tool_place},
                                 {"join", tool_join},
                                 {"group", tool_group},
                                 {"meets_for_groups", tool_meets_for_groups},
                                 {"local_rank", tool_local_rank},
                                 {NULL, NULL}};

const mr_lua_module mr_lua_dist = {"millrace.dist", tools};

static const mr_function *const functions[] = {&dist_spawn_function, NULL};

const mr_class mr_spawn_class = {"mr.dist", "Ranks.", functions, NULL, NULL};

void mr_open_dist(lua_State *L) {
    lua_newtable(L);
    mr_table_open(L, &mr_dist_class);
    mr_table_open(L, &mr_spawn_class);
    lua_newtable(L);
    mr_table_open(L, &mr_work_class);
    lua_setfield(L, -2, "Work");
    mr_refuse_missing(L, mr_dist_class.name);
    lua_setfield(L, -2, "dist");
}
