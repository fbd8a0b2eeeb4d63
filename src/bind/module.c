/* The module `mr`: opened on a backend, closed with the Lua state.
 *
 * Easiest to break: the order of finalizers at lua_close. Lua runs them in the reverse order of
 * creation, and the machine's box is created before any other object of ours, so it goes last. */
#include <string.h>

#include "base/embedded.h"
#include "bind/internal.h"
#include "bind/tensor.h"
#include "model/backend.h"

static const char machine_box; /* its address is the registry key */

const mr_class *const mr_classes[] = {&mr_machine_class,
                                      &mr_device_class,
                                      &mr_streams_class,
                                      &mr_stream_class,
                                      &mr_events_class,
                                      &mr_event_class,
                                      &mr_literal_class,
                                      &mr_creation_class,
                                      &mr_random_class,
                                      &mr_tensor_class,
                                      &mr_tensor_facts_class,
                                      &mr_tensor_view_class,
                                      &mr_tensor_move_class,
                                      &mr_operators_class,
                                      &mr_linear_class,
                                      &mr_linear_functions_class,
                                      &mr_joining_class,
                                      &mr_compare_class,
                                      &mr_format_class,
                                      &mr_forms_class,
                                      &mr_memory_class,
                                      &mr_hazard_class,
                                      &mr_simulator_class,
                                      &mr_help_class,
                                      NULL};

/* The machine that was closed last: its address, which says that functions that still name it come too late. A
 * finalizer of the script can run after ours, as the Lua state closes. */
static const mr_machine *closed_machine;

mr_machine *mr_machine_of(lua_State *L) {
    mr_machine *machine = lua_touserdata(L, lua_upvalueindex(1));
    if (__builtin_expect(machine == closed_machine, 0))
        mr_misuse(L, "the machine is closed: the script has ended");
    return machine;
}

mr_machine *mr_enter(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    machine->where = mr_bind_site(L);
    machine->called = NULL;
    machine->hook_context = L; /* whose stack the hooks and host functions may use */
    return machine;
}

mr_machine *mr_enter_as(lua_State *L, const char *name) {
    mr_machine *machine = mr_enter(L);
    machine->called = name;
    return machine;
}

/* A finalizer, or a function that has run some of the script's, may find there the state of a
 * coroutine that is gone. */
mr_machine *mr_lend_stack(lua_State *L) {
    mr_machine *machine = mr_machine_of(L);
    machine->hook_context = L;
    return machine;
}

mr_machine *mr_bind_machine(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &machine_box);
    mr_machine **box = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return box ? *box : NULL;
}

static int close_machine(lua_State *L) {
    mr_machine **box = lua_touserdata(L, 1);
    mr_machine *machine = *box;
    *box = NULL;
    if (machine) machine->hook_context = L;
    if (machine) mr_finalise_late(L);
    mr_machine_close(machine);
    closed_machine = machine;
    return 0;
}

static void collect_garbage(void *context) {
    lua_gc(context, LUA_GCCOLLECT);
}

/* --- the Lua modules inside the binary ---------------------------------------------------------- */

static int load_embedded(lua_State *L) {
    const mr_embedded *file = lua_touserdata(L, lua_upvalueindex(1));
    lua_pushfstring(L, "=%s", lua_tostring(L, 1)); /* "=millrace.nn": see mr_bind_frame */
    if (luaL_loadbufferx(L, (const char *)file->data, file->size, lua_tostring(L, -1), "t") !=
        LUA_OK)
        return lua_error(L);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static void preload_embedded(lua_State *L) {
    static const char folder[] = "lua/millrace/";
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (const mr_embedded *file = mr_embedded_files; file->name; file++) {
        size_t length = strlen(file->name);
        if (strncmp(file->name, folder, sizeof folder - 1) != 0 || length < 4) continue;
        lua_pushliteral(L, "millrace.");
        lua_pushlstring(L, file->name + sizeof folder - 1, length - (sizeof folder - 1) - 4);
        lua_concat(L, 2);
        lua_pushlightuserdata(L, (void *)file);
        lua_pushcclosure(L, load_embedded, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
}

mr_status mr_bind_open(lua_State *L, const mr_backend *backend, const mr_machine_options *options) {
    mr_machine **box = lua_newuserdatauv(L, sizeof *box, 0);
    *box = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, close_machine);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    mr_status status = mr_machine_open(backend, options, box);
    if (status) {
        lua_pop(L, 1);
        return status;
    }
    mr_machine *machine = *box;
    closed_machine = NULL; /* the address may come again */
    machine->hook_context = L;
    machine->collect = collect_garbage;
    lua_rawsetp(L, LUA_REGISTRYINDEX, &machine_box);
    mr_open_error(L);
    lua_createtable(L, 0, 128);
    lua_pushstring(L, backend->name);
    lua_setfield(L, -2, "backend");
    mr_open_machine(L, machine);
    mr_open_device(L, machine);
    mr_open_stream(L, machine);
    mr_open_event(L, machine);
    mr_open_tensor(L, machine);
    mr_open_creation(L, machine);
    mr_open_ops(L, machine);
    mr_open_cuda_forms(L, machine);
    mr_open_memory(L, machine);
    mr_open_hazard(L, machine);
    if (backend->simulator) mr_open_simulator(L, machine);
    mr_open_help(L, machine);
    preload_embedded(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "millrace");
    lua_pop(L, 1);
    return MR_OK;
}
