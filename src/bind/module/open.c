/* The module `mr`: opened on a backend, closed with the Lua state.
 *
 * Easiest to break: the order of finalizers at lua_close. Lua runs them in the reverse order of
 * creation, and the module's box is created before any other object of ours, so it goes last. Finalizers of objects
 * that the script made before that run even later: they find the box without a machine. */
#include <string.h>

#include "base/embedded.h"
#include "bind/internal.h"
#include "collective/comm.h"
#include "bind/open.h"
#include "script/script.h"
#include "model/backend.h"
#include "model/outside.h"

static const char module_table; /* its address is the registry key */

/* In the order of the reference page. */
static const mr_class *const classes[] = {&mr_machine_class,
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
                                          &mr_functional_class,
                                          &mr_functional_functions_class,
                                          &mr_composite_class,
                                          &mr_composite_functions_class,
                                          &mr_tensor_view_functions_class,
                                          &mr_indexing_class,
                                          &mr_indexing_functions_class,
                                          &mr_linear_class,
                                          &mr_linear_functions_class,
                                          &mr_joining_class,
                                          &mr_gradient_class,
                                          &mr_gradient_mode_class,
                                          &mr_autograd_class,
                                          &mr_compare_class,
                                          &mr_compare_methods_class,
                                          &mr_format_class,
                                          &mr_op_list_class,
                                          &mr_files_class,
                                          &mr_dlpack_class,
                                          &mr_dlpack_functions_class,
                                          &mr_ipc_class,
                                          &mr_ipc_functions_class,
                                          &mr_ipc_event_class,
                                          &mr_nn_class,
                                          &mr_nn_module_class,
                                          &mr_nn_init_class,
                                          &mr_nn_utils_class,
                                          &mr_nn_parallel_class,
                                          &mr_optim_class,
                                          &mr_optimizer_class,
                                          &mr_lr_scheduler_class,
                                          &mr_scheduler_class,
                                          &mr_data_class,
                                          &mr_forms_class,
                                          &mr_kernels_class,
                                          &mr_kernel_class,
                                          &mr_kernel_profile_class,
                                          &mr_modules_class,
                                          &mr_module_class,
                                          &mr_module_kernels_class,
                                          &mr_module_variables_class,
                                          &mr_elementwise_class,
                                          &mr_memory_class,
                                          &mr_comm_class,
                                          &mr_nccl_class,
                                          &mr_dist_class,
                                          &mr_spawn_class,
                                          &mr_work_class,
                                          &mr_hazard_class,
                                          &mr_hazard_ask_class,
                                          &mr_graphs_class,
                                          &mr_graph_auto_class,
                                          &mr_graph_pools_class,
                                          &mr_graph_pool_class,
                                          &mr_graph_class,
                                          &mr_graph_inputs_class,
                                          &mr_stream_capture_class,
                                          &mr_tasks_class,
                                          &mr_event_await_class,
                                          &mr_stream_await_class,
                                          &mr_stepping_class,
                                          &mr_pending_class,
                                          &mr_peek_class,
                                          &mr_tracer_class,
                                          &mr_timeline_class,
                                          &mr_trace_class,
                                          &mr_sync_debug_class,
                                          &mr_simulator_class,
                                          &mr_explore_class,
                                          &mr_waits_class,
                                          &mr_help_class,
                                          NULL};

/* Lua keeps the box's memory until all finalizers have run; later ones find no machine in it. */
static int close_module(lua_State *L) {
    mr_module *module = lua_touserdata(L, 1);
    mr_machine *machine = module->machine;
    if (!machine) return 0;
    machine->hooks.context = L;
    mr_finalise_late(L);
    mr_collectives_free(module->collectives);
    mr_scripts_free(&module->scripts);
    mr_interned_free(&module->sources);
    *module = (mr_module){.classes = module->classes}; /* messages and help still name functions */
    mr_loans_collect(machine);
    mr_machine_close(machine);
    return 0;
}

static void collect_garbage(void *context) {
    lua_gc(context, LUA_GCCOLLECT);
    mr_loans_collect(mr_bind_machine(context));
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
        lua_pushlstring(L, file->name + 4, length - 8); /* "millrace/prompt/session" */
        luaL_gsub(L, lua_tostring(L, -1), "/", ".");
        lua_remove(L, -2);
        lua_pushlightuserdata(L, (void *)file);
        lua_pushcclosure(L, load_embedded, 1);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
}

/* package.preload.millrace: a script that clears package.loaded and requires the module again gets the same one. */
static int load_again(lua_State *L) {
    return mr_bind_push(L);
}

bool mr_bind_push(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &module_table) == LUA_TTABLE) return true;
    lua_pop(L, 1);
    return false;
}

typedef void part(lua_State *L); /* adds its functions to the table on the top of the stack */

static void open_each(lua_State *L, part *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++) parts[i](L);
}
#define OPEN_EACH(L, parts) open_each(L, parts, sizeof(parts) / sizeof *(parts))

static void open_parts(lua_State *L, bool simulates) {
    static part *const first[] = {mr_open_machine,
                                  mr_open_device,
                                  mr_open_stream,
                                  mr_open_event,
                                  mr_open_tensor,
                                  mr_open_tensor_facts,
                                  mr_open_tensor_index,
                                  mr_open_tensor_view,
                                  mr_open_tensor_move,
                                  mr_open_peek,
                                  mr_open_literal,
                                  mr_open_joining,
                                  mr_open_compare,
                                  mr_open_format,
                                  mr_open_creation,
                                  mr_open_random,
                                  mr_open_ops,
                                  mr_open_op_list,
                                  mr_open_files,
                                  mr_open_dlpack,
                                  mr_open_ipc,
                                  mr_open_operators,
                                  mr_open_functional,
                                  mr_open_indexing,
                                  mr_open_linear,
                                  mr_open_gradient,
                                  mr_open_nn,
                                  mr_open_cuda_forms,
                                  mr_open_kernel_module,
                                  mr_open_kernel,
                                  mr_open_kernel_profile,
                                  mr_open_kernel_variable,
                                  mr_open_elementwise,
                                  mr_open_memory,
                                  mr_open_nccl,
                                  mr_open_dist,
                                  mr_open_hazard,
                                  mr_open_hazard_ask,
                                  mr_open_graph,
                                  mr_open_graph_capture,
                                  mr_open_graph_pool,
                                  mr_open_trace,
                                  mr_open_tracer,
                                  mr_open_sync_debug,
                                  mr_open_tasks};
    static part *const of_simulator[] = {mr_open_stepping, mr_open_pending, mr_open_simulator};
    static part *const last[] = {mr_open_explore, mr_open_waits, mr_open_help, mr_open_missing};
    OPEN_EACH(L, first);
    if (simulates) OPEN_EACH(L, of_simulator);
    OPEN_EACH(L, last);
}

/* `require` and mr_bind_push find the module's table, which is on the top of the stack. */
static void register_module(lua_State *L) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "millrace");
    lua_pop(L, 1);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, load_again);
    lua_setfield(L, -2, "millrace");
    lua_pop(L, 1);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &module_table);
}

mr_status mr_bind_open(lua_State *L, const mr_backend *backend, const mr_machine_options *options) {
    mr_module *module = lua_newuserdatauv(L, sizeof *module, 0);
    *module = (mr_module){0};
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, close_module);
    lua_setfield(L, -2, "__gc");
    lua_pushliteral(L, "millrace");
    lua_setfield(L, -2, "__name"); /* explore/repeatable.lua meets it in functions */
    lua_setmetatable(L, -2);
    mr_status status = mr_machine_open(backend, options, &module->machine);
    if (status) {
        lua_pop(L, 1);
        return status;
    }
    module->machine->hooks.context = L;
    module->machine->hooks.collect = collect_garbage;
    mr_keep_module(L);
    module->classes = classes;
    mr_open_error(L);
    module->name_fault = mr_bind_name_fault;
    lua_createtable(L, 0, 128);
    lua_pushstring(L, backend->name);
    lua_setfield(L, -2, "backend");
    open_parts(L, backend->simulator != NULL);
    preload_embedded(L);
    register_module(L);
    return MR_OK;
}
