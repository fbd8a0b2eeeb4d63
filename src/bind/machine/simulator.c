/* mr.machine: functions that only a simulated device has: a model, settings, faults on request. Absent on a real GPU.
 * Stepping is in stepping.c, the list of pending work in pending.c. */
#include <math.h>
#include <string.h>

#include "bind/explore.h"
#include "bind/open.h"
#include "bind/hazard/waits.h"
#include "model/backend.h"

static const mr_simulator *simulator_of(const mr_machine *machine) {
    return machine->backend->simulator;
}

/* --- setting ------------------------------------------------------------------------------------ */

MR_FUNCTION(
    machine_model, "model", "mr.machine.model([name: string]) -> before: string",
    "Sets and returns the device model: \"h200\", \"h100\", \"a100\", \"rtx4090\", \"t4\", or the "
    "path of a model file. It can be changed only while nothing is pending and no device "
    "memory is in use. Returns the previous model.") {
    mr_machine *machine = mr_set_context(L);
    lua_settop(L, 1);
    lua_pushstring(L, simulator_of(machine)->model(machine));
    if (lua_isnil(L, 1)) return 1;
    mr_bind_explore_refuse_kind(L, MR_COMMAND_MODEL);
    mr_bind_waits_looks(L, "mr.machine.model", NULL);
    mr_raise(L, mr_machine_set_model(machine, mr_check_name(L, 1)));
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

MR_FUNCTION(machine_settings, "settings",
            "mr.machine.settings([changes: table]) -> settings: table",
            "Returns the settings: what CUDA leaves open, and how this machine decides it. "
            "docs/semantics.md lists the names. With a table, changes these settings first. The "
            "largest integer, math.maxinteger, means no limit; math.huge is accepted for it.") {
    mr_machine *machine = mr_set_context(L);
    const mr_simulator *simulator = simulator_of(machine);
    if (!lua_isnoneornil(L, 1)) {
        if (!lua_istable(L, 1)) mr_bad_argument(L, 1, "a table {setting=value}");
        mr_bind_explore_refuse_kind(L, MR_COMMAND_SETTING);
        mr_bind_waits_looks(L, "mr.machine.settings", NULL);
        for (int pass = 0; pass < 2; pass++) { /* all are checked before the first is changed */
            for (lua_pushnil(L); lua_next(L, 1); lua_pop(L, 1)) {
                if (lua_type(L, -2) != LUA_TSTRING)
                    mr_misuse(L, "settings have the form {name=value}");
                const char *name = lua_tostring(L, -2);
                const mr_setting_info *setting = find_setting(simulator, name);
                if (!setting)
                    mr_misuse(L,
                              "there is no setting `%s`: mr.machine.settings() lists the settings",
                              name);
                int64_t value = setting_value(L, setting);
                if (pass) mr_raise(L, mr_machine_set_setting(machine, name, value));
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
    "Submits an operation that fails with this code when it runs (\"illegal-address\", \"assert\", "
    "...). It shows how a device failure is reported later than its cause (R49, R50).") {
    mr_code code;
    mr_caller caller = mr_enter(L);
    const char *name = mr_check_name(L, 1);
    if (!mr_code_find(name, &code) || !mr_code_sticky(code))
        mr_misuse(L,
                  "fault: `%s` is not a failure of a kernel: expected illegal-address, "
                  "launch-timeout, assert, misaligned-address or launch-failure",
                  name);
    mr_raise(L, mr_stream_fault(&caller, mr_opt_stream(L, 2), code));
    return 0;
}

static const mr_function *const simulator_functions[] = {
    &machine_model_function, &machine_settings_function, &machine_fault_function, NULL};

const mr_class mr_simulator_class = {
    "mr.machine",
    "The virtual GPU: its chooser, its pending work, and its settings. nil on a real GPU.",
    simulator_functions, NULL, NULL};

/* Files that are opened earlier have made the table. */

void mr_open_simulator(lua_State *L) {
    lua_getfield(L, -1, "machine");
    mr_table_open(L, &mr_simulator_class);
    lua_pop(L, 1);
}
