/* mr.machine: what only a simulated device can do. Absent on a real GPU. */
#include <math.h>
#include <string.h>

#include "bind/internal.h"
#include "model/backend.h"

static const mr_simulator *simulator_of(const mr_machine *machine) {
    return machine->backend->simulator;
}

/* --- stepping ----------------------------------------------------------------------------------- */

MR_FUNCTION(
    machine_chooser, "chooser", "mr.machine.chooser([name: string]) -> before: string",
    "Who decides what the device does next where CUDA leaves a choice: \"timed\" (by the cost "
    "model; only then do times mean something), \"adversarial\" (consumers as early as the rules "
    "allow, so that races show), "
    "\"random:SEED\", or \"manual\" (mr.machine.step; a wait of the host runs the oldest first, "
    "until what "
    "it waits for holds). Returns the one of before.") {
    mr_machine *machine = mr_enter(L);
    lua_settop(L, 1);
    lua_pushstring(L, simulator_of(machine)->chooser(machine));
    if (!lua_isnil(L, 1))
        mr_raise(L, simulator_of(machine)->set_chooser(machine, mr_check_name(L, 1)));
    return 1;
}

MR_FUNCTION(machine_step, "step", "mr.machine.step([s: stream]) -> what: string?",
            "Lets the device take one step, of that stream or as the chooser picks. Returns a "
            "description of what moved, or nil when nothing could.") {
    char text[256];
    bool moved;
    mr_machine *machine = mr_enter(L);
    mr_stream *stream = lua_isnoneornil(L, 1) ? NULL : mr_check_stream(L, 1);
    mr_raise(L, mr_machine_step(machine, stream, &moved, text, sizeof text));
    if (moved) lua_pushstring(L, text);
    else lua_pushnil(L);
    return 1;
}

/* --- looking in --------------------------------------------------------------------------------- */

typedef struct {
    lua_State *L;
    int list;
    mr_stream *stream; /* of the queue that is being filled */
} queue_list;

static void set_site(lua_State *L, const char *key, mr_site where) {
    mr_push_site(L, where);
    lua_setfield(L, -2, key);
}

static void add_pending(void *context, const mr_pending *pending) {
    queue_list *queues = context;
    lua_State *L = queues->L;
    const mr_action *action = pending->action;
    if (action->stream != queues->stream) {
        queues->stream = action->stream;
        lua_createtable(L, 0, 2);
        mr_push_stream(L, action->stream);
        lua_setfield(L, -2, "stream");
        lua_newtable(L);
        lua_setfield(L, -2, "pending");
        lua_seti(L, queues->list, luaL_len(L, queues->list) + 1);
    }
    lua_geti(L, queues->list, luaL_len(L, queues->list));
    lua_getfield(L, -1, "pending");
    lua_createtable(L, 0, 5);
    lua_pushstring(L, action->name);
    lua_setfield(L, -2, "op");
    lua_pushinteger(L, (lua_Integer)action->seq);
    lua_setfield(L, -2, "seq");
    set_site(L, "where", action->where);
    lua_pushstring(L, pending->running ? "running" : pending->ready ? "ready" : "waiting");
    lua_setfield(L, -2, "state");
    if (pending->waits_for) {
        lua_pushinteger(L, (lua_Integer)pending->waits_for->seq);
        lua_setfield(L, -2, "waits_for");
    }
    lua_seti(L, -2, luaL_len(L, -2) + 1);
    lua_pop(L, 2);
}

MR_FUNCTION(
    machine_queues, "queues", "mr.machine.queues() -> queues: table[]",
    "What is pending: for each stream with work {stream=, pending={{op=, seq=, where=, state=, "
    "waits_for=}, ...}}, oldest first; state is \"running\", \"ready\" or \"waiting\", waits_for "
    "the seq of the operation of another stream that it waits for. Moves nothing.") {
    mr_machine *machine = mr_enter(L);
    lua_newtable(L);
    luaL_checkstack(L, 16, NULL);
    queue_list queues = {L, lua_gettop(L), NULL};
    simulator_of(machine)->pending(machine, add_pending, &queues);
    return 1;
}

MR_FUNCTION(machine_time, "time", "mr.machine.time() -> ms: number",
            "How far the devices have got, in virtual milliseconds. Moves nothing.") {
    mr_machine *machine = mr_enter(L);
    lua_pushnumber(L, (lua_Number)simulator_of(machine)->device_time(machine) * 1e-6);
    return 1;
}

/* --- setting ------------------------------------------------------------------------------------ */

MR_FUNCTION(machine_model, "model", "mr.machine.model([name: string]) -> before: string",
            "The device model: \"h200\", \"a100\", \"rtx4090\", \"t4\", or the path of a model "
            "file. Can be "
            "changed while nothing is pending and no device memory is in use.") {
    mr_machine *machine = mr_enter(L);
    lua_settop(L, 1);
    lua_pushstring(L, simulator_of(machine)->model(machine));
    if (!lua_isnil(L, 1))
        mr_raise(L, simulator_of(machine)->set_model(machine, mr_check_name(L, 1)));
    return 1;
}

static const mr_setting_info *find_setting(const mr_simulator *simulator, const char *name) {
    size_t count;
    const mr_setting_info *settings = simulator->settings(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(settings[i].name, name) == 0) return &settings[i];
    return NULL;
}

static int64_t setting_value(lua_State *L, const mr_setting_info *setting) {
    if (strcmp(setting->type, "boolean") == 0) {
        if (!lua_isboolean(L, -1))
            mr_misuse(L, "setting `%s`: expected true or false, got %s", setting->name,
                      mr_type_text(L, -1));
        return lua_toboolean(L, -1);
    }
    int is_integer;
    lua_Integer value = lua_tointegerx(L, -1, &is_integer);
    if (lua_type(L, -1) != LUA_TNUMBER || (!is_integer && lua_tonumber(L, -1) != HUGE_VAL))
        mr_misuse(L, "setting `%s`: expected an integer, got %s", setting->name,
                  mr_type_text(L, -1));
    return is_integer ? value : INT64_MAX; /* math.huge: no bound */
}

MR_FUNCTION(
    machine_settings, "settings", "mr.machine.settings([changes: table]) -> settings: table",
    "What CUDA leaves open, and how this machine decides it: docs/semantics.md lists the names. "
    "With a table, changes those; returns all values as they are then. The "
    "largest integer, math.maxinteger, stands for no bound; math.huge may be given for it.") {
    mr_machine *machine = mr_enter(L);
    const mr_simulator *simulator = simulator_of(machine);
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "a table {setting=value}");
        for (int pass = 0; pass < 2; pass++) { /* all are looked at before the first is changed */
            for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
                if (lua_type(L, -2) != LUA_TSTRING)
                    mr_misuse(L, "settings are written {name=value}");
                const char *name = lua_tostring(L, -2);
                const mr_setting_info *setting = find_setting(simulator, name);
                if (!setting)
                    mr_misuse(L, "there is no setting `%s`: mr.machine.settings() lists them",
                              name);
                int64_t value = setting_value(L, setting);
                if (pass) mr_raise(L, simulator->set_setting(machine, name, value));
            }
        }
    }
    size_t count;
    const mr_setting_info *settings = simulator->settings(&count);
    lua_createtable(L, 0, (int)count);
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        mr_raise(L, simulator->get_setting(machine, settings[i].name, &value));
        if (strcmp(settings[i].type, "boolean") == 0) lua_pushboolean(L, value != 0);
        else lua_pushinteger(L, value);
        lua_setfield(L, -2, settings[i].name);
    }
    return 1;
}

MR_FUNCTION(
    machine_fault, "fault", "mr.machine.fault(code: string [, s: stream])",
    "Submits an operation that fails with that code when its turn comes (\"illegal-address\", "
    "\"assert\", ...): to see how a failure of the device shows later than its cause (R49, R50).") {
    mr_code code;
    mr_enter(L);
    const char *name = mr_check_name(L, 1);
    if (!mr_code_find(name, &code) || !mr_code_sticky(code))
        mr_misuse(L,
                  "fault: `%s` is no failure of a running kernel: illegal-address, launch-timeout, "
                  "assert, misaligned-address and launch-failure are",
                  name);
    mr_raise(L, mr_stream_fault(mr_opt_stream(L, 2), code));
    return 0;
}

static const mr_function *const simulator_functions[] = {
    &machine_chooser_function, &machine_step_function,
    &machine_queues_function,  &machine_time_function,
    &machine_model_function,   &machine_settings_function,
    &machine_fault_function,   NULL};

const mr_class mr_simulator_class = {
    "mr.machine",
    "The virtual GPU itself: who decides, what is pending, what CUDA "
    "leaves open. nil on a real GPU.",
    simulator_functions, NULL};

void mr_open_simulator(lua_State *L, mr_machine *machine) {
    lua_newtable(L);
    mr_table_open(L, machine, &mr_simulator_class);
    lua_setfield(L, -2, "machine");
}
