/* mr.machine: stepping the virtual GPU forward and back, and letting time pass. Absent on a real GPU.
 *
 * model/history.h says which state a step back restores, and which calls end the history. */
#include <math.h>

#include "bind/explore.h"
#include "bind/open.h"
#include "bind/outside.h"
#include "bind/machine/pending.h"
#include "bind/machine/polls.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"
#include "model/history.h"

MR_FUNCTION(machine_chooser, "chooser", "mr.machine.chooser([name: string]) -> before: string",
            "Sets the chooser, which decides the next step of the device where CUDA leaves a "
            "choice. \"timed\" follows the cost model; only then do times have a meaning. "
            "\"adversarial\" runs consumers as early as the rules allow, so that races show. "
            "\"random:SEED\" draws the steps. \"manual\": you call mr.machine.step; while the host "
            "waits, the oldest ready work runs until the wait ends. Returns the previous "
            "chooser.") {
    mr_machine *machine = mr_set_context(L);
    lua_settop(L, 1);
    lua_pushstring(L, machine->backend->simulator->chooser(machine));
    if (lua_isnil(L, 1)) return 1;
    mr_bind_explore_refuse_kind(L, MR_COMMAND_CHOOSER);
    mr_bind_waits_looks(L, "mr.machine.chooser", NULL);
    mr_raise(L, mr_machine_set_chooser(machine, mr_check_name(L, 1)));
    return 1;
}

/* A count of steps at `arg`; 1 when there is none. */
static uint32_t check_count(lua_State *L, int arg) {
    if (lua_isnoneornil(L, arg)) return 1;
    lua_Integer count = mr_check_integer(L, arg);
    if (count < 1) mr_bad_argument(L, arg, "a number of steps from 1 on");
    return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

MR_FUNCTION(
    machine_step, "step",
    "mr.machine.step([s: stream] [, n: integer=1]) -> what: string?, why: string?, done: integer",
    "Lets the device take `n` steps: of this stream, or those that the chooser picks. Returns what "
    "the last step was, with its line, its number (the `seq` of queues()), and which part of how "
    "many. If fewer than `n` steps were possible, `why` says what the stream waits for, and `what` "
    "is nil if there was none. `done` is the number of steps. Each step can be undone: see "
    "mr.machine.back.") {
    char text[256], why[MR_PENDING_TEXT];
    bool moved = true;
    mr_machine *machine = mr_set_context(L);
    mr_stream *stream = lua_isnoneornil(L, 1) ? NULL : mr_check_stream(L, 1);
    uint32_t count = check_count(L, 2), done = 0;
    mr_bind_explore_refuse_kind(L, MR_COMMAND_STEP);
    mr_bind_waits_looks(L, "mr.machine.step", NULL);
    lua_settop(L, 1); /* the stream stays */
    lua_pushnil(L);
    while (done < count && moved) {
        mr_raise(L, mr_machine_step(machine, stream, &moved, text, sizeof text));
        done += moved;
        if (moved && (done == count || done % 1024 == 0)) mr_check_stop(L, machine, 0, "stepping");
        if (!moved) break;
        lua_pushstring(L, text);
        lua_replace(L, 2);
    }
    if (done) mr_polls_stepped(L);
    lua_pushnil(L);
    if (done < count) {
        mr_pending_explain_stream(machine, stream, why);
        lua_pushstring(L, why);
        lua_replace(L, 3);
    }
    lua_pushinteger(L, done);
    return 3;
}

MR_FUNCTION(
    machine_back, "back", "mr.machine.back([n: integer=1]) -> undone: integer, why: string?",
    "Undoes the last `n` steps (mr.machine.step, mr.machine.pass): the bytes of all tensors, "
    "events, queues and clocks are as before. Returns how many steps were undone; if fewer than "
    "`n`, `why` names the call at which the history begins. Steps are kept under the chooser "
    "\"manual\". Steps before a call of the host that cannot be undone stay. Such calls are a "
    "submission, "
    "a synchronization, a query that said true, a new stream, a write to an older host tensor, and "
    "a setting. Reads, new host tensors and t:peek() do not matter. What a host function did in "
    "Lua stays, and the function runs again with its step. Reported hazards stay.") {
    uint32_t undone;
    const char *why;
    mr_machine *machine = mr_set_context(L);
    uint32_t count = check_count(L, 1);
    mr_bind_explore_refuse_kind(L, MR_COMMAND_BACK);
    mr_bind_waits_looks(L, "mr.machine.back", NULL);
    mr_raise(L, mr_machine_back(machine, count, &undone));
    mr_history_count(machine, &why);
    lua_pushinteger(L, undone);
    if (undone == count) return 1;
    if (*why) lua_pushstring(L, why);
    else if (undone) lua_pushliteral(L, "there are no earlier steps");
    else if (strcmp(machine->backend->simulator->chooser(machine), "manual") == 0)
        lua_pushliteral(L, "no step has been made since the host's last call, which is not undone");
    else
        lua_pushliteral(
            L, "no step has been made since the host's last call; steps are kept under the chooser "
               "\"manual\", or with mr.machine.history{always=true}");
    return 2;
}

MR_FUNCTION(machine_pass, "pass", "mr.machine.pass(ms: number)",
            "Advances the host's clock by this many milliseconds. Under the chooser \"timed\" the "
            "device works during this time.") {
    mr_machine *machine = mr_set_context(L);
    lua_Number ms = lua_tonumber(L, 1);
    if (lua_type(L, 1) != LUA_TNUMBER || !(ms >= 0) || !(ms <= 1e12))
        mr_bad_argument(L, 1, "milliseconds from 0 to 1e12");
    mr_bind_explore_refuse_kind(L, MR_COMMAND_PASS);
    mr_raise(L, mr_machine_pass(machine, (uint64_t)(ms * 1e6 + 0.5)));
    return 0;
}

static uint64_t limit_of(lua_State *L, const mr_option_slots *options, const char *name,
                         uint64_t otherwise, uint64_t most) {
    lua_Integer value = mr_option_integer(L, options, name, (lua_Integer)otherwise);
    if (value < 0) mr_misuse(L, "option `%s`: expected a number from 0 on", name);
    return (uint64_t)value > most ? most : (uint64_t)value;
}

MR_FUNCTION(
    machine_history, "history",
    "mr.machine.history([{steps: integer=4096, bytes: integer=268435456, always: boolean=false}]) "
    "-> history: table",
    "Sets how many steps mr.machine.back can undo at most, and how much memory of the host they "
    "may "
    "take; steps=0 keeps none. With always=true they are kept under every chooser, not only "
    "\"manual\". Returns {steps=, bytes=, always=, kept=, why=}: the limits, how many steps can be "
    "undone "
    "now, and what the history begins with.") {
    static const char *const known[] = {"steps", "bytes", "always", NULL};
    mr_machine *machine = mr_set_context(L);
    mr_history_limits limits = mr_history_limits_of(machine);
    if (!lua_isnoneornil(L, 1)) {
        mr_option_slots options = mr_check_options(L, 1, known);
        limits.steps = (uint32_t)limit_of(L, &options, "steps", limits.steps, UINT32_MAX / 2);
        limits.bytes = limit_of(L, &options, "bytes", limits.bytes, (uint64_t)1 << 50);
        limits.always = mr_option_boolean(L, &options, "always", limits.always);
        mr_bind_explore_refuse_kind(L, MR_COMMAND_HISTORY);
        mr_raise(L, mr_machine_set_history(machine, &limits));
    }
    const char *why;
    uint32_t kept = mr_history_count(machine, &why);
    lua_createtable(L, 0, 5);
    lua_pushinteger(L, limits.steps);
    lua_setfield(L, -2, "steps");
    lua_pushinteger(L, (lua_Integer)limits.bytes);
    lua_setfield(L, -2, "bytes");
    lua_pushboolean(L, limits.always);
    lua_setfield(L, -2, "always");
    lua_pushinteger(L, kept);
    lua_setfield(L, -2, "kept");
    lua_pushstring(L, why);
    lua_setfield(L, -2, "why");
    return 1;
}

MR_FUNCTION(machine_time, "time", "mr.machine.time() -> ms: number",
            "Returns how far the devices have advanced, in virtual milliseconds. The device does "
            "not advance.") {
    mr_machine *machine = mr_set_context(L);
    mr_observers_learned(machine);
    mr_push_time(L, "mr.machine.time", (double)mr_machine_device_time(machine) * 1e-6);
    return 1;
}

static const mr_function *const functions[] = {&machine_chooser_function,
                                               &machine_step_function,
                                               &machine_back_function,
                                               &machine_pass_function,
                                               &machine_history_function,
                                               &machine_time_function,
                                               NULL};

const mr_class mr_stepping_class = {"mr.machine", "Steps and time.", functions, NULL, NULL};

void mr_open_stepping(lua_State *L) {
    lua_newtable(L);
    mr_table_open(L, &mr_stepping_class);
    lua_setfield(L, -2, "machine");
}
