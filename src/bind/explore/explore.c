/* mr.explore and what belongs to it. lua/millrace/explore.lua does the work on values and texts; it is given the tools
 * of run.c and tools.c. */
#include "bind/explore.h"

#include "bind/explore/entries.h"
#include "bind/explore_guard.h"
#include "bind/explore/parts.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/trace/trace.h"

static const char maker; /* its address is the registry key of the Lua module's result */

const mr_explore_bound mr_explore_bounds[] = {
    {"max", true, false, 1},   {"time", false, false, 0},   {"memory", true, false, 1},
    {"grain", true, false, 1}, {"preempt", true, false, 0}, {"polls", true, false, 1},
    {"seeds", true, false, 1}, {"seed", true, true, 0},     {"workers", true, false, 1},
    {NULL, false, false, 0}};

/* bounds() -> {max={whole=, least=}, ...}: the table above */
static int bounds(lua_State *L) {
    lua_newtable(L);
    for (const mr_explore_bound *b = mr_explore_bounds; b->name; b++) {
        lua_newtable(L);
        lua_pushboolean(L, b->whole);
        lua_setfield(L, -2, "whole");
        if (b->any) lua_pushinteger(L, LUA_MININTEGER);
        else lua_pushinteger(L, (lua_Integer)b->least);
        lua_setfield(L, -2, "least");
        lua_setfield(L, -2, b->name);
    }
    return 1;
}

static const luaL_Reg tools[] = {{"explore", mr_explore_tool_explore},
                                 {"replay", mr_explore_tool_replay},
                                 {"end_again", mr_explore_tool_end_again},
                                 {"keep", mr_explore_tool_keep},
                                 {"is_loss", mr_explore_tool_is_loss},
                                 {"may_print", mr_explore_tool_may_print},
                                 {"quiet", mr_explore_tool_quiet},
                                 {"put_back", mr_explore_tool_put_back},
                                 {"is_tensor", mr_explore_tool_is_tensor},
                                 {"kind", mr_explore_tool_kind},
                                 {"set_globals", mr_explore_tool_set_globals},
                                 {"fill", mr_explore_tool_fill},
                                 {"delay", mr_explore_tool_delay},
                                 {"is_unwritten", mr_explore_tool_is_unwritten},
                                 {"attempt", mr_explore_tool_attempt},
                                 {"drain", mr_explore_tool_drain},
                                 {"drained", mr_explore_tool_drained},
                                 {"end_captures", mr_explore_tool_end_captures},
                                 {"bytes", mr_explore_tool_bytes},
                                 {"misuse", mr_explore_tool_misuse},
                                 {"follow", mr_explore_tool_follow},
                                 {"bounds", bounds},
                                 {"check", mr_bind_check_judge},
                                 {"next_number", mr_explore_tool_next_number},
                                 {"uncollected", mr_explore_tool_uncollected},
                                 {"shown", mr_explore_tool_shown},
                                 {"seems_repeatable", mr_explore_tool_seems_repeatable},
                                 {"suspect", mr_explore_tool_suspect},
                                 {"ranks_are_apart", mr_explore_tool_ranks_are_apart},
                                 {"watch_ranks", mr_explore_tool_watch_ranks},
                                 {"facts", mr_explore_tool_facts},
                                 {"settings", mr_explore_tool_settings},
                                 {"copy_entries", mr_explore_tool_copy_entries},
                                 {"changed_entry", mr_explore_tool_changed_entry},
                                 {"walk", mr_explore_tool_walk},
                                 {"is_own", mr_explore_tool_is_own},
                                 {"rank", mr_explore_tool_rank},
                                 {"refuse", mr_explore_tool_refuse},
                                 {"write", mr_explore_tool_write},
                                 {"write_values", mr_explore_tool_write_values},
                                 {"outside", mr_outside_tool_set},
                                 {"absolute", mr_outside_tool_absolute},
                                 {"new_random", mr_outside_tool_new_random},
                                 {"keep_race", mr_trace_tool_keep_race},
                                 {"save_outcomes", mr_trace_tool_save_outcomes},
                                 {NULL, NULL}};

/* Pushes the table of functions that the Lua module makes of the tools. */
static void push_parts(lua_State *L) {
    mr_push_embedded(L, &maker, "millrace.explore", tools);
}

static int call_part(lua_State *L, const char *name, int argument_count) {
    mr_set_context(L);
    lua_settop(L, argument_count);
    push_parts(L);
    lua_getfield(L, -1, name);
    lua_replace(L, -2);
    lua_insert(L, 1);
    lua_call(L, argument_count, LUA_MULTRET);
    return lua_gettop(L);
}

/* --- what scripts call --------------------------------------------------------------------------- */

MR_FUNCTION(
    explore_explore, "explore",
    "mr.explore(fn: function [, options: {max: integer=1000000, time: number=10, memory: "
    "integer=1024, grain: integer=1, preempt: integer, polls: integer=2, unspecified: "
    "boolean=false, full: boolean=false, seeds: integer, seed: integer=0, workers: "
    "integer}]) -> result: table",
    "Runs `fn` under every order that CUDA's rules allow and that can make a difference: one "
    "schedule of each class of equivalent ones (virtual GPU only). The outcome is the value that "
    "`fn` returns, or the error that it raises; tensors count by their bytes after all work. "
    "Returns a table to print: {schedules=, complete=, incomplete=, deterministic=, combined=, "
    "claim=, not_followed=, outcomes=, hazards=, hazard_count=, runs=, interrupted=}. incomplete "
    "says why the search is not complete. combined is for independent races: {outcomes=, classes=, "
    "groups=}. not_followed has clauses, or is nil. outcomes lists {value=, error=, count=, "
    "schedule=, steps=, difference=}. hazards is as of mr.hazard.check. After Ctrl-C, interrupted "
    "is true, and the other fields have what was found so far. `fn` must do the same when it is "
    "called "
    "again and reads the same values; it is called again only where it reads other values. `max`, "
    "`time` "
    "(seconds of the processor) and `memory` (megabytes of the process) bound the search; the "
    "first call of `fn` always runs to its end. If `time` is over, its last quarter was for "
    "`by_priority` random schedules, and `chance` is the probability that one of them shows a bug "
    "of depth 2. `full` also searches where a proof says that one schedule stands for others. "
    "`grain` cuts each operation into this number of parts. `preempt` bounds the pairs that run "
    "against the order of submission, and tries schedules with the fewest such pairs first. "
    "`polls` is how often in a "
    "row a query says no. `unspecified` also tries what CUDA leaves open besides the order. "
    "`seeds` is a number of random schedules to try instead. `workers` processes share a search of "
    "more than a tenth of a second; the default is the number of cores. The result is the same for "
    "each number.") {
    return call_part(L, "explore", 2);
}

MR_FUNCTION(explore_replay, "replay", "mr.replay(schedule: string, fn: function) -> ...",
            "Runs `fn` under a schedule that mr.explore has found, and returns what it returns. "
            "Everything that `fn` uses must be as it was then.") {
    return call_part(L, "replay", 2);
}

MR_FUNCTION(
    explore_stress, "stress",
    "mr.stress(fn: function [, options: {runs: integer=100, seed: integer=0, ms: number=1, "
    "schedule: string, patience: number=5000}]) -> result: table",
    "Calls `fn` `runs` times, with random delays of the device between its operations, and returns "
    "the different results: {runs=, outcomes={{value=, error=, count=, seed=}, ...}}; "
    "print it. Ctrl-C ends it with the calls so far, and interrupted=true. For any backend. It can "
    "find an outcome, but it proves nothing about other outcomes, unlike mr.explore. A "
    "delay takes at most `ms` milliseconds. {runs=1, seed=s} repeats the delays of an outcome. On "
    "a real GPU, device tensors from outside of `fn` are not restored between the calls. With "
    "`schedule`, a text that mr.explore has found, there are no delays: each call runs its "
    "operations in this order, also on a real GPU. `followed` is then the number of calls that "
    "did, and `unfollowed` the reason why another call could not. After `patience` milliseconds "
    "without progress, a call gives the schedule up (real GPU only).") {
    return call_part(L, "stress", 2);
}

int mr_bind_explore_script(lua_State *L) {
    int count = lua_gettop(L);
    push_parts(L);
    lua_getfield(L, -1, "script");
    lua_replace(L, -2);
    lua_insert(L, 1);
    lua_call(L, count, 1);
    return 1;
}

static const mr_function *const functions[] = {&explore_explore_function, &explore_replay_function,
                                               &explore_stress_function, NULL};
const mr_class mr_explore_class = {"mr", "Every schedule of a function.", functions, NULL, NULL};

void mr_open_explore(lua_State *L) {
    mr_table_open(L, &mr_explore_class);
}
