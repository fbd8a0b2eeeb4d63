/* Tasks: mr.run, mr.sleep, e:await(), s:await(). Their bodies are in lua/millrace/tasks.lua; this file has the
 * functions that they cannot write in Lua. A waiting task yields out of these calls (mr_call_lua_named). */
#include "bind/ranks/task.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "bind/explore_guard.h"
#include "bind/internal.h"
#include "bind/lua_body.h"
#include "bind/open.h"
#include "model/backend.h"
#include "model/hosts.h"

/* --- functions for lua/millrace/tasks.lua ------------------------------------------------------------------- */

static int tool_misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* where() -> the script's line, "a.lua:7" */
static int tool_where(lua_State *L) {
    mr_push_site(L, mr_enter(L).where);
    return 1;
}

/* The number of resets of the machine: streams from before a reset are lost. */
static int tool_epoch(lua_State *L) {
    lua_pushinteger(L, mr_machine_of(L)->epoch);
    return 1;
}

/* How time passes. "explored": not at all, as a function is explored. "real": by itself. "timed": by pass, and the
 * device works meanwhile. "stepped": by pass, and the device works only while the host waits. */
static int tool_time_passes(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    const mr_simulator *simulator = machine->backend->simulator;
    bool is_timed = simulator && strcmp(simulator->chooser(machine), "timed") == 0;
    lua_pushstring(L, mr_explore_guard_is_busy(L) ? "explored"
                      : !simulator                ? "real"
                      : is_timed                  ? "timed"
                                                  : "stepped");
    return 1;
}

/* clock() -> the host's clock in ms */
static int tool_clock(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    mr_observers_learned(machine);
    lua_pushnumber(L, (lua_Number)mr_machine_time(machine) * 1e-6);
    return 1;
}

/* pass(ms): lets this time pass on the virtual GPU's clock; or sleeps on this computer, where a signal may end it
 * earlier. */
static int tool_pass(lua_State *L) {
    mr_machine *machine = mr_set_context(L);
    double ns = luaL_checknumber(L, 1) * 1e6;
    if (machine->backend->simulator) {
        mr_raise(L, mr_machine_pass(machine, (uint64_t)ceil(ns)));
        return 0;
    }
    struct timespec time = {.tv_sec = (time_t)(ns / 1e9)};
    time.tv_nsec = (long)(ns - (double)time.tv_sec * 1e9);
    if (nanosleep(&time, NULL) != 0 && errno != EINTR) return luaL_error(L, "cannot sleep");
    return 0;
}

static void note_moving(void *context, const mr_pending *pending) {
    bool *is_moving = context;
    *is_moving |= pending->running || pending->ready;
}

/* is_moving() -> whether some work of the virtual GPU runs or could */
static int tool_is_moving(lua_State *L) {
    bool is_moving = false;
    mr_machine_pending(mr_machine_of(L), note_moving, &is_moving);
    lua_pushboolean(L, is_moving);
    return 1;
}

/* ask(task, once, last, query, what) -> the result of query(what), which counts as a task's query (model/hosts.h) */
static int tool_ask(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    mr_host_ask ask = {.task = (uint32_t)luaL_checkinteger(L, 1),
                       .once = lua_toboolean(L, 2),
                       .last = lua_toboolean(L, 3)};
    machine->hosts.asks = &ask;
    int status = lua_pcall(L, 1, 1, 0);
    machine->hosts.asks = NULL;
    return status == LUA_OK ? 1 : lua_error(L);
}

static const char tasks_box; /* its address is a registry key */

/* keep(threads): the list of the tasks' coroutines, with weak values; `n` is how many. */
static int tool_keep(lua_State *L) {
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &tasks_box);
    return 0;
}

bool mr_bind_push_tasks(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &tasks_box) != LUA_TNIL) return true;
    lua_pop(L, 1);
    return false;
}

lua_Integer mr_bind_task_count(lua_State *L) {
    mr_push_field(L, -1, "n"); /* the checker asks, inside a command */
    lua_Integer count = lua_tointeger(L, -1);
    lua_pop(L, 1);
    return count;
}

static const luaL_Reg tools[] = {{"misuse", tool_misuse},       {"where", tool_where},
                                 {"epoch", tool_epoch},         {"time_passes", tool_time_passes},
                                 {"clock", tool_clock},         {"pass", tool_pass},
                                 {"is_moving", tool_is_moving}, {"ask", tool_ask},
                                 {"keep", tool_keep},           {NULL, NULL}};

static const mr_lua_module module = {"millrace.tasks", tools};

/* --- functions ------------------------------------------------------------------------------------------ */

MR_FUNCTION(task_run, "run", "mr.run(fn: function, ...: function) -> ...: any",
            "Runs the functions as tasks: each in a coroutine of its own, with a current stream "
            "and a current device of its own, at first those of the caller. While a task awaits an "
            "event or a stream, sleeps or yields, the other tasks continue. They have turns in the "
            "order of the arguments. Returns the first result of each function. If a task fails, "
            "the others are closed, and its error is raised.") {
    return mr_call_lua_named(L, &module, "", "run");
}

MR_FUNCTION(task_sleep, "sleep", "mr.sleep(ms: number)",
            "Waits for this many milliseconds of the host's clock; in a task of mr.run, other "
            "tasks continue meanwhile. In mr.explore it takes no time: the task only lets the "
            "other tasks continue. "
            "To keep a stream busy, use mr.spin.") {
    return mr_call_lua_named(L, &module, "", "sleep");
}

MR_FUNCTION(event_await, "await", "e:await()",
            "The host waits as in synchronize; in a task of mr.run, other tasks go on meanwhile.") {
    mr_check_event(L, 1);
    return mr_call_lua_named(L, &module, "", "await");
}

MR_FUNCTION(stream_await, "await", "s:await()",
            "The host waits as in synchronize; in a task of mr.run, other tasks go on meanwhile. "
            "It also waits for work that they submit to the stream meanwhile.") {
    mr_check_stream(L, 1);
    return mr_call_lua_named(L, &module, "", "await");
}

static const mr_function *const task_functions[] = {&task_run_function, &task_sleep_function, NULL};
const mr_class mr_tasks_class = {
    "mr", "Tasks: functions that wait without holding each other up. docs/tasks.md explains them.",
    task_functions, NULL, NULL};

static const mr_function *const event_functions[] = {&event_await_function, NULL};
const mr_class mr_event_await_class = {"event", "Waiting in a task.", event_functions, NULL,
                                       &mr_kind_event};

static const mr_function *const stream_functions[] = {&stream_await_function, NULL};
const mr_class mr_stream_await_class = {"stream", "Waiting in a task.", stream_functions, NULL,
                                        &mr_kind_stream};

void mr_open_tasks(lua_State *L) {
    mr_table_open(L, &mr_tasks_class);
    mr_class_extend(L, &mr_event_await_class);
    mr_class_extend(L, &mr_stream_await_class);
}
