/* Graphs of the CUDA backend: which of them become graphs of the driver, and what is launched. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include "graph/graph.h"
#include "model/observer.h"

static void add_one(mr_stream *s, mr_tensor *t) {
    mr_tensor *out = NULL;
    mr_call call = {.in_count = 2,
                    .in = {{.tensor = t}, {.scalar = {.is_integer = true, .i = 1, .f = 1}}},
                    .out = t,
                    .in_place = true,
                    .stream = s};
    bool is_new;
    OK(mr_call_run(&caller, &mr_ops[MR_OP_add], &call, &out, &is_new));
    mr_tensor_release(out);
}

static mr_graph *captured(mr_stream *s, mr_tensor *t, int times) {
    mr_graph *graph;
    OK(mr_capture_begin(&caller, s, &(mr_capture_options){0}));
    for (int i = 0; i < times; i++) add_one(s, t);
    OK(mr_capture_finish(&caller, s, &graph));
    return graph;
}

static void a_capture_launches_nothing(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 4);
    mr_graph *graph = captured(s, t, 3);
    assert_int_equal(mr_graph_count(graph), 3);
    assert_int_equal(fake->launches, 0);
    mr_graph_release(graph);
    drop(t);
    mr_stream_release(s);
}

static void a_launch_is_one_call_of_the_driver(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 4);
    mr_graph *graph = captured(s, t, 100);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, graph, &x));
    fake->graph_launches = 0;
    for (int i = 0; i < 5; i++) OK(mr_executable_launch(&caller, x, s));
    assert_int_equal(fake->graph_launches, 5);
    assert_int_equal(fake->captured, 100);
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(fake->kernels_run, 500);
    assert_int_equal(fake->graphs, 1);
    mr_executable_release(x);
    assert_int_equal(fake->graphs, 0);
    mr_graph_release(graph);
    drop(t);
    mr_stream_release(s);
}

/* Where the driver refuses, each command is submitted. */
static void a_refused_graph_is_launched_command_by_command(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 4);
    mr_graph *graph = captured(s, t, 10);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, graph, &x));
    fake->refuse_graphs = true;
    fake->graph_launches = fake->kernels_run = 0;
    OK(mr_executable_launch(&caller, x, s));
    OK(mr_executable_launch(&caller, x, s));
    fake->refuse_graphs = false;
    OK(mr_stream_synchronize(&caller, s));
    assert_int_equal(fake->graph_launches, 0);
    assert_int_equal(fake->kernels_run, 20);
    mr_executable_release(x);
    mr_graph_release(graph);
    drop(t);
    mr_stream_release(s);
}

static int told;

static void count(mr_observer *observer, const mr_command *command, bool host_waited) {
    (void)observer, (void)host_waited;
    told += command->kind == MR_COMMAND_OP && command->node != NULL;
}

static void observers_are_told_of_each_node(void **state) {
    (void)state;
    mr_stream *a = free_stream(), *b = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, a, 4), *u = tensor(MR_MEMORY_DEVICE, a, 4);
    mr_graph *graph;
    mr_executable *x;
    OK(mr_capture_begin(&caller, a, &(mr_capture_options){0}));
    OK(mr_stream_wait_stream(&caller, b, a));
    add_one(a, t);
    add_one(b, u);
    OK(mr_stream_wait_stream(&caller, a, b));
    add_one(a, u);
    OK(mr_capture_finish(&caller, a, &graph));
    OK(mr_graph_instantiate(&caller, graph, &x));
    assert_int_equal(mr_executable_lanes(x), 2);
    mr_observer observer = {.name = "count", .did = count};
    OK(mr_observer_add(machine, &observer));
    told = fake->graph_launches = 0;
    OK(mr_executable_launch(&caller, x, b));
    assert_int_equal(told, 3);
    assert_int_equal(fake->graph_launches, 1);
    mr_observer_remove(machine, &observer);
    OK(mr_stream_synchronize(&caller, b));
    mr_executable_release(x);
    mr_graph_release(graph);
    drop(t);
    drop(u);
    mr_stream_release(a);
    mr_stream_release(b);
}

static void a_graph_outlives_a_reset_and_is_refused(void **state) {
    (void)state;
    mr_stream *s = free_stream();
    mr_tensor *t = tensor(MR_MEMORY_DEVICE, s, 4);
    mr_graph *graph = captured(s, t, 2);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, graph, &x));
    OK(mr_executable_launch(&caller, x, s));
    OK(mr_machine_reset(&caller));
    own_registered = fake->registered;
    FAILS(MR_CODE_INVALID_HANDLE, "mr.reset", mr_executable_launch(&caller, x, device->legacy));
    mr_executable_release(x);
    mr_graph_release(graph);
    drop(t);
    mr_stream_release(s);
}

CUDA_TEST_MAIN(TEST(a_capture_launches_nothing), TEST(a_launch_is_one_call_of_the_driver),
               TEST(a_refused_graph_is_launched_command_by_command),
               TEST(observers_are_told_of_each_node), TEST(a_graph_outlives_a_reset_and_is_refused))

#else
CUDA_TEST_MAIN()
#endif
