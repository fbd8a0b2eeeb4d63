/* The parts of the module: each file that has some defines a class, and a function that adds it. Only open.c asks for
 * them all. */
#ifndef MR_BIND_OPEN_H
#define MR_BIND_OPEN_H

#include "bind/bind.h"

extern const mr_class mr_compare_class, mr_compare_methods_class, mr_creation_class, mr_forms_class,
    mr_device_class, mr_event_class, mr_events_class, mr_format_class, mr_hazard_class,
    mr_help_class, mr_joining_class, mr_linear_class, mr_linear_functions_class, mr_machine_class,
    mr_memory_class, mr_comm_class, mr_nccl_class, mr_spawn_class, mr_operators_class,
    mr_random_class, mr_simulator_class, mr_stepping_class, mr_pending_class, mr_peek_class,
    mr_stream_class, mr_streams_class, mr_tensor_class, mr_tensor_facts_class, mr_literal_class,
    mr_tensor_move_class, mr_tensor_view_class, mr_kernel_class, mr_kernels_class, mr_module_class,
    mr_modules_class, mr_module_kernels_class, mr_module_variables_class, mr_kernel_profile_class,
    mr_elementwise_class, mr_explore_class, mr_waits_class, mr_trace_class, mr_tracer_class,
    mr_timeline_class, mr_sync_debug_class, mr_tasks_class, mr_event_await_class,
    mr_stream_await_class;
extern const mr_class mr_gradient_class, mr_gradient_mode_class, mr_autograd_class;
extern const mr_class mr_hazard_ask_class;
extern const mr_class mr_op_list_class, mr_files_class;
extern const mr_class mr_dlpack_class, mr_dlpack_functions_class, mr_ipc_class,
    mr_ipc_functions_class, mr_ipc_event_class;
/* Classes whose functions are written in Lua (bind/lua_body.h). */
extern const mr_class mr_nn_class, mr_nn_module_class, mr_nn_init_class, mr_nn_utils_class,
    mr_optim_class, mr_optimizer_class, mr_lr_scheduler_class, mr_scheduler_class, mr_data_class,
    mr_nn_parallel_class, mr_dist_class, mr_work_class;
extern const mr_class mr_graph_class, mr_graphs_class, mr_stream_capture_class, mr_graph_auto_class,
    mr_graph_pool_class, mr_graph_pools_class, mr_graph_inputs_class;
extern const mr_class mr_functional_class, mr_functional_functions_class, mr_composite_class,
    mr_composite_functions_class;

extern const mr_class mr_tensor_view_functions_class;
extern const mr_class mr_indexing_class, mr_indexing_functions_class;

/* Each adds to the `mr` table at the top of the stack. */
void mr_open_compare(lua_State *L);
void mr_open_creation(lua_State *L);
void mr_open_cuda_forms(lua_State *L);
void mr_open_device(lua_State *L);
void mr_open_dlpack(lua_State *L);
void mr_open_error(lua_State *L);
mr_status mr_bind_name_fault(lua_State *L, mr_status status); /* mr_module.name_fault */
void mr_open_elementwise(lua_State *L);
void mr_open_event(lua_State *L);
void mr_open_explore(lua_State *L);
void mr_open_missing(lua_State *L);
void mr_open_files(lua_State *L);
void mr_open_format(lua_State *L);
void mr_open_gradient(lua_State *L);
void mr_open_hazard(lua_State *L);
void mr_open_hazard_ask(lua_State *L);
void mr_open_functional(lua_State *L);
void mr_open_indexing(lua_State *L);
void mr_open_ipc(lua_State *L);
void mr_open_graph(lua_State *L);
void mr_open_graph_capture(lua_State *L);
void mr_open_graph_pool(lua_State *L);
void mr_open_help(lua_State *L);
void mr_open_joining(lua_State *L);
void mr_open_kernel(lua_State *L);
void mr_open_kernel_module(lua_State *L);
void mr_open_kernel_profile(lua_State *L);
void mr_open_kernel_variable(lua_State *L);
void mr_open_linear(lua_State *L);
void mr_open_machine(lua_State *L);
void mr_open_memory(lua_State *L);
void mr_open_nccl(lua_State *L);
void mr_open_dist(lua_State *L);
void mr_open_operators(lua_State *L);
void mr_open_nn(lua_State *L);
void mr_open_ops(lua_State *L);
void mr_open_op_list(lua_State *L);
void mr_open_random(lua_State *L);
void mr_open_scope(lua_State *L);
void mr_open_stepping(lua_State *L);
void mr_open_pending(lua_State *L);
void mr_open_peek(lua_State *L);
void mr_open_simulator(lua_State *L);
void mr_open_stream(lua_State *L);
void mr_open_sync_debug(lua_State *L);
void mr_open_tasks(lua_State *L);
void mr_open_tensor(lua_State *L);
void mr_open_tensor_facts(lua_State *L);
void mr_open_tensor_index(lua_State *L);
void mr_open_literal(lua_State *L);
void mr_open_tensor_move(lua_State *L);
void mr_open_tensor_view(lua_State *L);
void mr_open_waits(lua_State *L);
void mr_open_trace(lua_State *L);
void mr_open_tracer(lua_State *L);

#endif
