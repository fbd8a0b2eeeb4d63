/* mr.machine: what only a simulated device can do. Absent on a real GPU. */
#include <math.h>
#include <string.h>

#include "bind/open.h"
#include "model/backend.h"

static const mr_simulator *simulator_of(const mr_machine *machine) {
    return machine->backend->simulator;
}

/* --- stepping ----------------------------------------------------------------------------------- */

MR_FUNCTION(machine_chooser, "chooser", "mr.machine.chooser([name: string]) -> before: string",
            "Sets and returns what decides the next step of the device where CUDA leaves a choice: "
            "\"timed\" (follows the cost model; only then do times have a meaning), "
            "\"adversarial\" (runs consumers as early as the rules allow, so that races show), "
            "\"random:SEED\", or \"manual\" (you call mr.machine.step; while the host waits, the "
            "oldest ready work runs until the wait ends). Returns the previous chooser.") {
    mr_machine *machine = mr_set_context(L);
    lua_settop(L, 1);
    lua_pushstring(L, simulator_of(machine)->chooser(machine));
    if (!lua_isnil(L, 1)) mr_raise(L, mr_machine_set_chooser(machine, mr_check_name(L, 1)));
    return 1;
}

MR_FUNCTION(machine_step, "step", "mr.machine.step([s: stream]) -> what: string?",
            "Lets the device take one step: of this stream, or the one that the chooser picks. "
            "Returns a description of the step, with its line and its number (the `seq` of "
            "queues()), or nil if no step was possible.") {
    char text[256];
    bool moved;
    mr_machine *machine = mr_set_context(L);
    mr_stream *stream = lua_isnoneornil(L, 1) ? NULL : mr_check_stream(L, 1);
    mr_raise(L, mr_machine_step(machine, stream, &moved, text, sizeof text));
    if (moved) lua_pushstring(L, text);
    else lua_pushnil(L);
    return 1;
}

/* --- looking in --------------------------------------------------------------------------------- */

/* Of one pending command, what is shown. */
typedef struct {
    mr_stream *stream; /* owned */
    const char *name;  /* interned */
    mr_site where;
    uint64_t seq, waits_for; /* 0: for none */
    const char *state;
} row;

static void set_site(lua_State *L, const char *key, mr_site where) {
    mr_push_site(L, where);
    lua_setfield(L, -2, key);
}

static int drop_rows(lua_State *L) {
    mr_buffer *rows = lua_touserdata(L, 1);
    for (size_t i = 0; i < rows->size / sizeof(row); i++) {
        mr_stream *stream = ((row *)(void *)rows->data)[i].stream;
        stream->device->machine->hook_context = L;
        mr_stream_release(stream);
    }
    mr_buffer_free(rows);
    return 0;
}

static void copy_pending(void *context, const mr_pending *pending) {
    mr_buffer *rows = context;
    const mr_command *command = pending->command;
    row copy = {.stream = command->stream,
                .name = command->name,
                .where = command->where,
                .seq = command->seq,
                .waits_for = pending->waits_for ? pending->waits_for->seq : 0,
                .state = pending->running ? "running"
                         : pending->ready ? "ready"
                                          : "waiting"};
    mr_buffer_add(rows, (const char *)&copy, sizeof copy);
    if (!rows->failed) mr_stream_retain(copy.stream);
}

static void push_pending(lua_State *L, const row *r) {
    lua_createtable(L, 0, 5);
    lua_pushstring(L, r->name);
    lua_setfield(L, -2, "op");
    lua_pushinteger(L, (lua_Integer)r->seq);
    lua_setfield(L, -2, "seq");
    set_site(L, "where", r->where);
    lua_pushstring(L, r->state);
    lua_setfield(L, -2, "state");
    if (!r->waits_for) return;
    lua_pushinteger(L, (lua_Integer)r->waits_for);
    lua_setfield(L, -2, "waits_for");
}

/* Pushes {stream=, pending={...}} of the rows from *next on that are of one stream. */
static void push_queue(lua_State *L, const row *rows, size_t count, size_t *next) {
    mr_stream *stream = rows[*next].stream;
    lua_createtable(L, 0, 2);
    mr_push_stream(L, &stream);
    lua_setfield(L, -2, "stream");
    lua_newtable(L);
    for (int i = 1; *next < count && rows[*next].stream == stream; i++, ++*next) {
        push_pending(L, &rows[*next]);
        lua_rawseti(L, -2, i);
    }
    lua_setfield(L, -2, "pending");
}

MR_FUNCTION(
    machine_queues, "queues", "mr.machine.queues() -> queues: table[]",
    "Returns the pending work: for each stream with work {stream=, pending={{op=, seq=, where=, "
    "state=, waits_for=}, ...}}, oldest first. `state` is \"running\", \"ready\" or \"waiting\". "
    "`waits_for` is the seq of an operation of another stream. The device does not advance.") {
    mr_machine *machine = mr_set_context(L);
    mr_buffer *copy = mr_push_owner(L, sizeof *copy, drop_rows);
    mr_machine_pending(machine, copy_pending, copy);
    if (copy->failed) mr_raise(L, mr_fail(MR_CODE_OUT_OF_MEMORY, "queues: no memory"));
    const row *rows = (const row *)(const void *)copy->data;
    size_t count = copy->size / sizeof *rows, next = 0;
    lua_newtable(L);
    for (int i = 1; next < count; i++) {
        push_queue(L, rows, count, &next);
        lua_rawseti(L, -2, i);
    }
    return 1;
}

MR_FUNCTION(machine_time, "time", "mr.machine.time() -> ms: number",
            "Returns how far the devices have advanced, in virtual milliseconds. The device does "
            "not advance.") {
    mr_machine *machine = mr_set_context(L);
    lua_pushnumber(L, (lua_Number)mr_machine_device_time(machine) * 1e-6);
    return 1;
}

/* --- setting ------------------------------------------------------------------------------------ */

MR_FUNCTION(machine_model, "model", "mr.machine.model([name: string]) -> before: string",
            "Sets and returns the device model: \"h200\", \"a100\", \"rtx4090\", \"t4\", or the "
            "path of a model file. It can be changed only while nothing is pending and no device "
            "memory is in use. Returns the previous model.") {
    mr_machine *machine = mr_set_context(L);
    lua_settop(L, 1);
    lua_pushstring(L, simulator_of(machine)->model(machine));
    if (!lua_isnil(L, 1)) mr_raise(L, mr_machine_set_model(machine, mr_check_name(L, 1)));
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
        for (int pass = 0; pass < 2; pass++) { /* all are looked at before the first is changed */
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
    &machine_chooser_function, &machine_step_function,
    &machine_queues_function,  &machine_time_function,
    &machine_model_function,   &machine_settings_function,
    &machine_fault_function,   NULL};

const mr_class mr_simulator_class = {
    "mr.machine",
    "The virtual GPU: its chooser, its pending work, and its settings. nil on a real GPU.",
    simulator_functions, NULL, NULL};

void mr_open_simulator(lua_State *L) {
    lua_newtable(L);
    mr_table_open(L, &mr_simulator_class);
    lua_setfield(L, -2, "machine");
}
