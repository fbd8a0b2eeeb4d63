/* The way from Lua to the search and back: calls the function, turns its results into bytes, and the search's result
 * into tables.
 *
 * Easiest to break: an error of Lua must not pass through the search, which would then free nothing. So the function is
 * called protected, and its error is raised again once the search has returned. */
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/output.h"
#include "bind/explore.h"
#include "bind/explore_guard.h"
#include "bind/explore/parts.h"
#include "bind/field.h"
#include "bind/hazard/hazard.h"
#include "bind/internal.h"
#include "bind/ranks/comm.h"
#include "bind/trace/trace.h"
#include "bind/hazard/waits.h"
#include "explore/explore.h"
#include "explore/follow.h"
#include "explore/keep.h"
#include "model/backend.h"
#include "model/capture.h"
#include "model/simulator.h"
#include "tensor/tensor.h"

const mr_explore_host *mr_bind_explore_host;

/* --- keeping what the function changes ----------------------------------------------------------- */

/* While there is a keeper, a function is being explored. Ctrl-C may leave the Lua module at any instruction, so the
 * module itself could not note this. */
static int drop_keeper(lua_State *L) {
    mr_explore_keeper **keeper = lua_touserdata(L, 1);
    if (!*keeper) return 0;
    mr_explore_let_go(*keeper);
    *keeper = NULL;
    mr_bind_nccl_let_go(L);
    mr_bind_waits_repeats(L, false);
    mr_hazard_apart_end(mr_bind_hazard(L));
    mr_explore_guard_keep(L, NULL);
    return 0;
}

/* For the hazard checker: the result of mr.explore tells of hazards, the others do not. */
static mr_hazard_apart kind_of(const char *what) {
    bool is_stress = strcmp(what, "stress") == 0 || strcmp(what, "replay") == 0;
    return is_stress ? MR_HAZARD_STRESSED : MR_HAZARD_EXPLORED;
}

/* keep(what) -> keeper, to be closed */
int mr_explore_tool_keep(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const char *what = luaL_checkstring(L, 1);
    char call[200];
    snprintf(call, sizeof call,
             "mr.%s: it calls its function again and again, as the exploration does. %s", what,
             mr_machine_of(L)->rank
                 ? "An exploration follows all ranks: call mr.explore once, around mr.dist.spawn"
                 : "Explore the inner function only; a script that does so by itself needs no "
                   "--explore");
    mr_bind_explore_refuse(L, call);
    if (mr_explore_guard_is_busy(L))
        return mr_misuse(L, "%s: not inside mr.explore or mr.replay", what);
    if (mr_bind_waits_running(L))
        return mr_misuse(L,
                         "%s: not inside mr.waits, which would judge the waits of all its runs; "
                         "call one after the other",
                         what);
    /* Submits the commands that a function of mr.graph.auto holds back: they belong to the state before the search. */
    mr_raise(L, mr_capture_ask_host(&caller, MR_ASK_ACCESS, what, NULL, NULL, NULL));
    mr_explore_keeper **keeper = mr_push_owner(L, sizeof(mr_explore_keeper *), drop_keeper);
    mr_raise(L, mr_explore_keep(caller.machine, keeper));
    mr_bind_nccl_keep(L);
    mr_bind_tracer_keep(L);
    mr_module_of(L)->kept_tf32 = mr_module_of(L)->allow_tf32;
    mr_explore_guard_keep(L, *keeper);
    mr_raise(L, mr_hazard_apart_begin(mr_bind_hazard(L), kind_of(what)));
    return 1;
}

/* may_print(keeper): the function has launched a kernel that may call printf */
int mr_explore_tool_may_print(lua_State *L) {
    mr_explore_keeper **keeper = lua_touserdata(L, 1);
    lua_pushboolean(L, mr_explore_may_print(*keeper));
    return 1;
}

/* quiet(is_quiet): whether kernels print from now on */
int mr_explore_tool_quiet(lua_State *L) {
    mr_set_context(L)->bodies.quiet = lua_toboolean(L, 1);
    return 0;
}

/* A virtual device that was lost goes on with what there was before. A real one cannot: there, all begins anew. Work
 * that the function has not waited for may lose it only now. */
static mr_status end_work(const mr_caller *caller) {
    mr_machine *machine = caller->machine;
    mr_status status = mr_machine_drain(machine);
    if (!machine->lost) return status;
    mr_error_destroy(status);
    if (machine->backend->simulator) mr_machine_revive(machine);
    else MR_TRY(mr_machine_reset(caller));
    return mr_machine_drain(machine);
}

static void put_back_setting(mr_module *module) {
    module->allow_tf32 = module->kept_tf32;
}

/* put_back(keeper): all of before */
int mr_explore_tool_put_back(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_explore_keeper **keeper = lua_touserdata(L, 1);
    mr_raise(L, end_work(&caller));
    mr_bind_nccl_put_back(L);
    mr_bind_tracer_put_back(L);
    put_back_setting(mr_module_of(L));
    mr_raise(L, mr_explore_put_back(*keeper));
    mr_bind_waits_repeats(L, true);
    return 0;
}

/* --- calling the function ------------------------------------------------------------------------ */

/* Lives while our exploring call runs, and relies on its stack: 1 the Lua function that calls the script's, 2 the
 * keeper, 3 the error that ended it. */
typedef struct {
    lua_State *L;
    mr_machine *machine;
    bool failed; /* the error at 3 must be raised */
    bool shows;  /* progress, on a terminal */
    bool shown;
    mr_explore_keeper *keeper;
    mr_explore_value *value;
    mr_explore_refused refused;
    mr_explore_call call;
} caller_state;

/* The Lua module has made text and tensors of the values that the function returned. */
static int call_function(lua_State *L) {
    caller_state *s = lua_touserdata(L, 2);
    lua_settop(L, 1);
    lua_call(L, 0, LUA_MULTRET);
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    mr_buffer_add(&s->value->text, text, size);
    for (int i = 2; i <= lua_gettop(L); i++) {
        mr_tensor *t = mr_check_tensor(L, i);
        if (!mr_vec_push(&s->value->tensors, t)) mr_raise(L, mr_no_memory("for an outcome"));
        mr_tensor_retain(t);
    }
    return 0;
}

bool mr_explore_is_stopped(const mr_machine *machine) {
    return machine->hooks.interrupted && machine->hooks.interrupted(machine->hooks.context);
}

/* Whether Ctrl-C ends the search; it then returns its results so far to the script. */
bool mr_explore_takes_interrupt(const mr_machine *machine) {
    return machine->hooks.take_interrupt && machine->hooks.take_interrupt(machine->hooks.context);
}

static mr_status call_protected(caller_state *s, int argument_count) {
    lua_State *L = s->L;
    int status = lua_pcall(L, argument_count, 0, 0);
    mr_set_context(L);
    if (status == LUA_OK) return MR_OK;
    lua_replace(L, 3);
    s->failed = true;
    return mr_explore_is_stopped(s->machine)
               ? mr_fail(MR_CODE_INTERRUPTED, "interrupted in the function")
               : mr_fail(MR_CODE_UNKNOWN, "the function was ended");
}

static mr_status run_function(void *context, mr_explore_value *out_value) {
    caller_state *s = context;
    s->value = out_value;
    mr_push_module(s->L);
    lua_pushcclosure(s->L, call_function, 1);
    lua_pushvalue(s->L, 1);
    lua_pushlightuserdata(s->L, s);
    mr_status status = call_protected(s, 2);
    mr_bind_waits_repeats(s->L, true);
    MR_TRY(status);
    if (*s->refused.text) return mr_fail(MR_CODE_NOT_PERMITTED, "%s", s->refused.text);
    return MR_OK;
}

static mr_status collect_and_drain(caller_state *s) {
    s->machine->memory.stay_until_end = 0;
    s->machine->memory.collect_before_wait = false;
    lua_gc(s->L, LUA_GCCOLLECT);
    return mr_machine_drain(s->machine);
}

/* Between two runs Lua's collector takes what the last one has left. During a run it takes only objects of the run
 * itself, before a wait of the host (keep.c): the time of any other collection would not be repeatable. */
static mr_status begin_function(void *context) {
    caller_state *s = context;
    s->call.judged = s->call.seems_repeatable = s->call.ranks_are_apart = false;
    mr_bind_nccl_put_back(s->L); /* before the collection, as it lets communicators go */
    mr_bind_tracer_put_back(s->L);
    put_back_setting(mr_bind_module(s->L));
    MR_TRY(collect_and_drain(s));
    s->machine->memory.stay_until_end = s->machine->counts.next_storage;
    return mr_explore_put_back(s->keeper);
}

static void let_go(void *context) {
    caller_state *s = context;
    mr_error_destroy(
        collect_and_drain(s)); /* the next run begins with this error, and reports it */
    for (int i = 0; i < s->machine->device_count; i++)
        mr_error_destroy(mr_device_trim(s->machine->devices[i]));
}

static void show_progress(caller_state *s, const mr_explore_progress *p) {
    char text[160];
    if (!s->shows || p->seconds < 1) return;
    s->shown = true;
    int size = mr_number_format(
        text, sizeof text,
        "\r\033[Kexplore: %llu schedule%s, %llu outcome%s, about %.2g %% of the choices",
        (unsigned long long)p->schedules, p->schedules == 1 ? "" : "s",
        (unsigned long long)p->outcomes, p->outcomes == 1 ? "" : "s", 100 * p->share);
    mr_output_write(stderr, text, (size_t)size);
    if (p->left < 0) return;
    size = mr_number_format(text, sizeof text, ", %.0f s left ", p->left);
    mr_output_write(stderr, text, (size_t)size);
}

static bool go_on(void *context, const mr_explore_progress *p) {
    caller_state *s = context;
    show_progress(s, p);
    return !mr_explore_is_stopped(s->machine);
}

/* A second Ctrl-C ends the script, so the findings are printed here. */
static void say_found(const mr_explore_result *r) {
    mr_buffer text = {0};
    mr_buffer_printf(&text, "explore: stopped after %llu schedule%s; %zu outcome%s so far\n",
                     (unsigned long long)r->schedules, r->schedules == 1 ? "" : "s",
                     r->outcomes.count, r->outcomes.count == 1 ? "" : "s");
    for (size_t i = 0; i < r->outcomes.count && i < 8; i++) {
        const mr_explore_outcome *o = &r->outcomes.items[i];
        mr_buffer_printf(&text, "  in %llu schedule%s: %s\n", (unsigned long long)o->count,
                         o->count == 1 ? "" : "s", o->schedule ? o->schedule : "");
    }
    if (text.data) mr_output_write(stderr, text.data, text.size);
    mr_buffer_free(&text);
}

static void end_runs_after(void *context, double worked, double waited) {
    (void)context;
    if (mr_bind_explore_host) mr_bind_explore_host->stop_after(worked, waited);
}

static const char *stopped_at(void *context) {
    (void)context;
    return mr_bind_explore_host ? mr_bind_explore_host->stop_place() : "";
}

static mr_site shown(void *context, mr_site where) {
    const caller_state *s = context;
    return mr_hazard_shown(mr_bind_hazard(s->L), where);
}

static const mr_hazard_totals *verdict(void *context) {
    const caller_state *s = context;
    return s->call.judged ? &s->call.totals : NULL;
}

static size_t races(void *context, const mr_explore_race **out_races) {
    const caller_state *s = context;
    *out_races = s->call.races;
    return s->call.judged ? s->call.race_count : 0;
}

static bool seems_repeatable(void *context) {
    return ((const caller_state *)context)->call.seems_repeatable;
}

static bool hosts_are_apart(void *context) {
    return ((const caller_state *)context)->call.ranks_are_apart;
}

static mr_explore_subject subject_of(caller_state *s) {
    mr_explore_keeper **keeper = lua_touserdata(s->L, 2);
    s->keeper = *keeper;
    s->machine = mr_set_context(s->L);
    s->shows = mr_output_has_codes(stderr); /* each line replaces the one before */
    return (mr_explore_subject){.context = s,
                                .machine = s->machine,
                                .begin = begin_function,
                                .let_go = let_go,
                                .run = run_function,
                                .go_on = go_on,
                                .end_runs_after = end_runs_after,
                                .stopped_at = stopped_at,
                                .shown = shown,
                                .verdict = verdict,
                                .races = races,
                                .seems_repeatable = seems_repeatable,
                                .hosts_are_apart = hosts_are_apart};
}

/* --- the result ---------------------------------------------------------------------------------- */

static int drop_result(lua_State *L) {
    mr_explore_result_free(lua_touserdata(L, 1));
    return 0;
}

/* Frees the texts and the value, which Lua has now: there may be many outcomes, and large ones. */
static void push_outcome(lua_State *L, mr_explore_outcome *o) {
    lua_createtable(L, 0, 8);
    lua_pushlstring(L, o->value, o->size);
    lua_setfield(L, -2, "raw");
    mr_set_integer(L, "text_size", o->text_size);
    mr_set_integer(L, "count", o->count);
    mr_set_integer(L, "switches", o->switches);
    lua_pushstring(L, o->schedule);
    lua_setfield(L, -2, "schedule");
    lua_pushstring(L, o->steps);
    lua_setfield(L, -2, "steps");
    lua_pushstring(L, o->difference);
    lua_setfield(L, -2, "difference_lines");
    mr_explore_outcome_free(o);
}

/* An integer, where the number is exact as one. */
static void set_count(lua_State *L, const char *key, double count) {
    if (count <= 9007199254740992.0) mr_set_integer(L, key, (uint64_t)count);
    else mr_set_number(L, key, count);
}

static void push_combined(lua_State *L, const mr_explore_result *r) {
    lua_createtable(L, 0, 3);
    set_count(L, "outcomes", r->combined);
    set_count(L, "classes", r->classes);
    lua_createtable(L, (int)r->groups.count, 0);
    for (size_t i = 0; i < r->groups.count; i++) {
        const mr_explore_group *group = &r->groups.items[i];
        lua_createtable(L, 0, 3);
        mr_set_integer(L, "races", group->races);
        mr_set_integer(L, "schedules", group->schedules);
        mr_set_integer(L, "outcomes", group->outcomes);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "groups");
}

static void push_result(lua_State *L, mr_explore_result *r) {
    lua_createtable(L, 0, 9);
    mr_set_integer(L, "schedules", r->schedules);
    mr_set_integer(L, "runs", r->runs);
    mr_set_integer(L, "pairs", r->pairs);
    mr_set_number(L, "seconds", r->seconds);
    if (r->estimate > 0) mr_set_number(L, "estimate", r->estimate);
    if (r->by_priority) {
        mr_set_integer(L, "by_priority", r->by_priority);
        mr_set_number(L, "chance", r->chance);
    }
    lua_pushboolean(L, r->complete);
    lua_setfield(L, -2, "complete");
    lua_pushboolean(L, r->called_once);
    lua_setfield(L, -2, "called_once");
    lua_pushboolean(L, r->may_mix);
    lua_setfield(L, -2, "may_mix");
    lua_pushboolean(L, r->reads_fresh);
    lua_setfield(L, -2, "reads_fresh");
    lua_pushboolean(L, r->stages);
    lua_setfield(L, -2, "stages");
    lua_pushboolean(L, r->all_turns);
    lua_setfield(L, -2, "all_turns");
    if (r->settled) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "unseen");
    }
    if (r->interrupted) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "interrupted");
    }
    if (r->incomplete[0]) {
        lua_pushstring(L, r->incomplete);
        lua_setfield(L, -2, "incomplete");
    }
    if (r->untried.size) {
        lua_pushlstring(L, r->untried.data, r->untried.size);
        lua_setfield(L, -2, "untried_lines");
        mr_set_integer(L, "untried_count", r->untried_count);
    }
    if (r->groups.count) {
        push_combined(L, r);
        lua_setfield(L, -2, "combined");
    }
    if (r->alone.groups) {
        lua_createtable(L, 0, 4);
        lua_pushboolean(L, r->alone.reads);
        lua_setfield(L, -2, "reads");
        mr_set_integer(L, "groups", r->alone.groups);
        mr_set_integer(L, "tried", r->alone.tried);
        mr_set_integer(L, "races", r->alone.races);
        lua_setfield(L, -2, "alone");
    }
    if (r->unended.seconds > 0) {
        lua_createtable(L, 0, 4);
        lua_pushstring(L, r->unended.where);
        lua_setfield(L, -2, "where");
        mr_set_number(L, "seconds", r->unended.seconds);
        mr_set_number(L, "first", r->unended.first);
        lua_pushstring(L, r->unended.difference ? r->unended.difference : "");
        lua_setfield(L, -2, "difference_lines");
        lua_setfield(L, -2, "unended");
    }
    for (int i = 0; i < 2; i++) {
        if (!r->witness[i].schedule) continue;
        push_outcome(L, &r->witness[i]);
        lua_setfield(L, -2, i ? "reversed" : "in_order");
    }
    lua_createtable(L, (int)r->outcomes.count, 0);
    for (size_t i = 0; i < r->outcomes.count; i++) {
        push_outcome(L, &r->outcomes.items[i]);
        lua_rawseti(L, -2, (int)i + 1);
    }
    lua_setfield(L, -2, "outcomes");
}

/* --- the collector ------------------------------------------------------------------------------- */

bool mr_explore_stop_collector(lua_State *L) {
    bool runs = lua_gc(L, LUA_GCISRUNNING) != 0;
    lua_gc(L, LUA_GCSTOP);
    return runs;
}

void mr_explore_start_collector(lua_State *L, bool runs) {
    if (runs) lua_gc(L, LUA_GCRESTART);
}

/* --- tools --------------------------------------------------------------------------------------- */

static void raise_failure(caller_state *s, mr_status status) {
    if (!s->failed) {
        mr_raise(s->L, status);
        return;
    }
    mr_error_destroy(status);
    lua_settop(s->L, 3);
    lua_error(s->L);
}

/* explore(run, keeper, nil, most, seconds, overtaking, grain, polls, unspecified, samples, seed, memory in MB, full,
 * workers [, file, line, stream, number, file, line, stream, number]) -> result */
int mr_explore_tool_explore(lua_State *L) {
    caller_state s = {.L = L};
    mr_explore_options options = {.most = (uint64_t)luaL_checkinteger(L, 4),
                                  .seconds = luaL_checknumber(L, 5),
                                  .overtaking = (int)luaL_checkinteger(L, 6),
                                  .grain = (uint32_t)luaL_checkinteger(L, 7),
                                  .polls = (unsigned)luaL_checkinteger(L, 8),
                                  .unspecified = lua_toboolean(L, 9),
                                  .samples = (uint64_t)luaL_checkinteger(L, 10),
                                  .seed = (uint64_t)luaL_checkinteger(L, 11),
                                  .memory = (uint64_t)luaL_checkinteger(L, 12) << 20,
                                  .full = lua_toboolean(L, 13),
                                  .workers = (unsigned)luaL_checkinteger(L, 14)};
    for (int i = 0; i < 2; i++) {
        int at = 15 + 4 * i;
        options.pair[i] = (mr_explore_side){
            .where = {luaL_optstring(L, at, NULL), (int)luaL_optinteger(L, at + 1, 0)},
            .stream = luaL_optstring(L, at + 2, NULL),
            .number = (uint64_t)luaL_optinteger(L, at + 3, 0)};
    }
    lua_settop(L, 22);
    mr_explore_subject subject = subject_of(&s);
    mr_explore_result *result = mr_push_owner(L, sizeof *result, drop_result);
    bool runs = mr_explore_stop_collector(L);
    mr_explore_guard_search(L, &s.refused);
    mr_explore_guard_calls(L, &s.call);
    mr_status status = mr_explore(&subject, &options, result);
    mr_explore_guard_search(L, NULL);
    mr_explore_guard_calls(L, NULL);
    mr_explore_start_collector(L, runs);
    if (s.shown) mr_output_write(stderr, "\r\033[K", 4);
    if (status) raise_failure(&s, status);
    bool ends = result->interrupted && mr_bind_explore_host && mr_bind_explore_host->take_end();
    if (result->interrupted && !ends && !mr_explore_takes_interrupt(s.machine)) {
        say_found(result);
        mr_raise(L, mr_fail(MR_CODE_INTERRUPTED, "interrupted while schedules were explored"));
    }
    push_result(L, result);
    lua_pushboolean(L, ends);
    lua_setfield(L, -2, "ends");
    return 1;
}

/* end_again(): the process was asked to end, and what was found has been said */
int mr_explore_tool_end_again(lua_State *L) {
    (void)L;
    if (mr_bind_explore_host) mr_bind_explore_host->end_again();
    return 0;
}

/* replay(run, keeper, nil, schedule) -> whether the function did what the schedule says */
int mr_explore_tool_replay(lua_State *L) {
    caller_state s = {.L = L};
    mr_explore_value value = {0};
    bool followed;
    const char *schedule = luaL_checkstring(L, 4);
    mr_explore_subject subject = subject_of(&s);
    bool runs = mr_explore_stop_collector(L);
    mr_status status = mr_explore_replay(&subject, schedule, &value, &followed);
    mr_explore_start_collector(L, runs);
    mr_explore_value_free(&value);
    if (status) raise_failure(&s, status);
    lua_pushboolean(L, followed);
    return 1;
}

static int drop_value(lua_State *L) {
    mr_explore_value_free(lua_touserdata(L, 1));
    return 0;
}

/* follow(run, keeper, nil, schedule, patience in ms) -> why it could not be followed, or nil; the text of the value */
int mr_explore_tool_follow(lua_State *L) {
    caller_state s = {.L = L};
    char why[240] = "";
    const char *schedule = luaL_checkstring(L, 4);
    uint64_t patience = (uint64_t)(luaL_checknumber(L, 5) * 1e6);
    mr_explore_subject subject = subject_of(&s);
    mr_explore_value *value = mr_push_owner(L, sizeof *value, drop_value);
    bool runs = mr_explore_stop_collector(L), followed = true;
    mr_status status =
        s.machine->backend->simulator
            ? mr_explore_replay(&subject, schedule, value, &followed)
            : mr_explore_follow(&subject, schedule, patience, value, why, sizeof why);
    mr_explore_start_collector(L, runs);
    if (status) raise_failure(&s, status);
    if (followed && !*why) lua_pushnil(L);
    else lua_pushstring(L, *why ? why : "the function does not follow the schedule");
    lua_pushlstring(L, value->text.data ? value->text.data : "", value->text.size);
    return 2;
}
