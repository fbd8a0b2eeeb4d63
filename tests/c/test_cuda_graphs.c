/* Graphs of the CUDA backend: which of them become graphs of the driver, and what is launched. */
#include "cuda_fixture.h"

#if MR_HAVE_CUDA

#include "graph/graph.h"
#include "model/observer.h"
#include "ops/ids.h"

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

/* ---- events of outside: R45 */

typedef struct {
    mr_stream *a, *b;
    mr_tensor *t;
    mr_event *before, *middle;
    mr_graph *graph;
    mr_executable *x;
} outside;

/* Waits for `before`, adds, records `middle`, adds. */
static outside captured_with_events(bool before_is_known) {
    outside o = {.a = free_stream(), .b = free_stream()};
    mr_event_options options = {0};
    o.t = tensor(MR_MEMORY_DEVICE, o.a, 4);
    OK(mr_event_create(&caller, &options, &o.before));
    OK(mr_event_create(&caller, &options, &o.middle));
    if (before_is_known) OK(mr_event_record(&caller, o.before, o.a));
    OK(mr_stream_synchronize(&caller, o.a));
    OK(mr_capture_begin(&caller, o.a, &(mr_capture_options){0}));
    OK(mr_capture_external(&caller, MR_COMMAND_WAIT, o.before, o.a));
    add_one(o.a, o.t);
    OK(mr_capture_external(&caller, MR_COMMAND_RECORD, o.middle, o.a));
    add_one(o.a, o.t);
    OK(mr_capture_finish(&caller, o.a, &o.graph));
    OK(mr_graph_instantiate(&caller, o.graph, &o.x));
    return o;
}

static void drop_outside(outside *o) {
    mr_executable_release(o->x);
    mr_graph_release(o->graph);
    mr_event_release(o->before);
    mr_event_release(o->middle);
    drop(o->t);
    mr_stream_release(o->a);
    mr_stream_release(o->b);
}

static bool is_done(mr_event *event) {
    bool done;
    OK(mr_event_query(&caller, event, &done));
    return done;
}

static void events_of_outside_are_nodes_of_the_drivers_graph(void **state) {
    (void)state;
    outside o = captured_with_events(true);
    for (int i = 0; i < 3; i++) {
        fake->hold = true;
        OK(mr_event_record(&caller, o.before, o.b));
        fake->graph_launches = 0;
        OK(mr_executable_launch(&caller, o.x, o.a));
        assert_null(mr_executable_expanded(o.x));
        assert_int_equal(fake->graph_launches, 1);
        assert_false(is_done(o.middle)); /* the launch has recorded it */
        fake->hold = false;
        OK(mr_stream_synchronize(&caller, o.a));
        assert_true(is_done(o.middle));
    }
    OK(mr_event_synchronize(&caller, o.middle));
    drop_outside(&o);
}

/* In order of the launch's stream, and no further than the node. */
static void what_waits_for_the_record_of_a_launch_comes_after_its_node(void **state) {
    (void)state;
    outside o = captured_with_events(true);
    fake->hold = true;
    OK(mr_executable_launch(&caller, o.x, o.a));
    OK(mr_stream_wait_event(&caller, o.b, o.middle));
    add_one(o.b, o.t);
    fake->hold = false;
    OK(mr_stream_synchronize(&caller, o.b));
    assert_true(is_done(o.middle));
    OK(mr_stream_synchronize(&caller, o.a));
    drop_outside(&o);
}

static void an_event_that_is_not_known_to_the_driver_expands_the_launch(void **state) {
    (void)state;
    outside o = captured_with_events(false);
    OK(mr_executable_launch(&caller, o.x, o.a));
    assert_non_null(strstr(mr_executable_expanded(o.x), "never been recorded"));
    OK(mr_event_record(&caller, o.before, o.b));
    OK(mr_executable_launch(&caller, o.x, o.a));
    assert_null(mr_executable_expanded(o.x));
    OK(mr_stream_synchronize(&caller, o.a));
    drop_outside(&o);
}

static void a_closed_event_refuses_the_launch(void **state) {
    (void)state;
    outside o = captured_with_events(true);
    OK(mr_executable_launch(&caller, o.x, o.a));
    OK(mr_event_close(o.middle));
    fake->graph_launches = 0;
    FAILS(MR_CODE_INVALID_HANDLE, "is closed", mr_executable_launch(&caller, o.x, o.a));
    assert_int_equal(fake->graph_launches, 0);
    OK(mr_executable_enable(o.x, 2, false));
    OK(mr_executable_launch(&caller, o.x, o.a));
    OK(mr_stream_synchronize(&caller, o.a));
    drop_outside(&o);
}

static void whatever_fails_events_can_be_used_afterwards(void **state) {
    (void)state;
    bool reached = true;
    for (int n = 1; reached; n++) {
        outside o = captured_with_events(true);
        fake->fail_call_at = n;
        fake->fail_call_with = CUDA_ERROR_OUT_OF_MEMORY;
        mr_error_destroy(mr_executable_launch(&caller, o.x, o.a));
        reached = fake->fail_call_at == 0;
        fake->fail_call_at = 0;
        OK(mr_event_synchronize(&caller, o.middle));
        OK(mr_event_record(&caller, o.middle, o.b));
        OK(mr_device_synchronize(&caller, device));
        assert_true(is_done(o.middle));
        drop_outside(&o);
    }
}

/* ---- working memory: a sum of many elements needs it */

enum { MANY = 1 << 16 };

static mr_tensor *sum_of(mr_stream *s, mr_tensor *t, mr_tensor *out) {
    mr_tensor *result = NULL;
    mr_call call = {.in_count = 1, .in = {{.tensor = t}}, .out = out, .stream = s};
    bool is_new;
    OK(mr_call_run(&caller, &mr_ops[MR_OP_sum], &call, &result, &is_new));
    return result;
}

typedef struct {
    mr_stream *a, *b;
    mr_tensor *in, *out, *other;
} operands;

static operands new_operands(void) {
    operands o = {.a = free_stream(), .b = free_stream()};
    o.in = tensor(MR_MEMORY_DEVICE, o.a, MANY);
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, o.a, MR_I64, 0, NULL, &o.out));
    OK(mr_tensor_create(&caller, MR_MEMORY_DEVICE, o.a, MR_I64, 0, NULL, &o.other));
    return o;
}

static void drop_operands(operands *o) {
    drop(o->in);
    drop(o->out);
    drop(o->other);
    mr_stream_release(o->a);
    mr_stream_release(o->b);
}

/* Two lanes, and in the first of them two sums, which can share memory. */
static mr_graph *captured_sums(const operands *o) {
    mr_graph *graph;
    OK(mr_capture_begin(&caller, o->a, &(mr_capture_options){0}));
    OK(mr_stream_wait_stream(&caller, o->b, o->a));
    mr_tensor_release(sum_of(o->a, o->in, o->out));
    mr_tensor_release(sum_of(o->a, o->in, o->out));
    mr_tensor_release(sum_of(o->b, o->in, o->other));
    OK(mr_stream_wait_stream(&caller, o->a, o->b));
    OK(mr_capture_finish(&caller, o->a, &graph));
    return graph;
}

static void memory_is_the_graphs_and_goes_behind_the_last_launch(void **state) {
    (void)state;
    operands o = new_operands();
    mr_graph *graph = captured_sums(&o);
    mr_executable *x;
    OK(mr_stream_synchronize(&caller, o.a));
    OK(mr_graph_instantiate(&caller, graph, &x));
    int blocks = fake->blocks, streams = fake->streams;
    OK(mr_executable_launch(&caller, x, o.a));
    assert_null(mr_executable_expanded(x));
    assert_int_equal(fake->blocks, blocks + 2); /* one for each lane */
    OK(mr_executable_launch(&caller, x, o.b));
    assert_int_equal(fake->blocks, blocks + 2);
    assert_int_equal(fake->streams, streams + 1); /* the lane of launches one by one */
    fake->hold = true;
    OK(mr_executable_launch(&caller, x, o.b));
    mr_executable_release(x);
    mr_graph_release(graph);
    assert_int_equal(fake->blocks, blocks + 2);
    fake->hold = false;
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(fake->blocks, blocks);
    drop_operands(&o);
}

static void an_update_keeps_the_drivers_executable(void **state) {
    (void)state;
    operands o = new_operands();
    mr_graph *first = captured_sums(&o), *second = captured_sums(&o);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, first, &x));
    OK(mr_executable_launch(&caller, x, o.a));
    int blocks = fake->blocks;
    OK(mr_executable_update(&caller, x, second));
    OK(mr_executable_launch(&caller, x, o.a));
    assert_int_equal(fake->graph_updates, 1);
    assert_int_equal(fake->graphs, 1);
    assert_null(mr_executable_rebuilt(x));
    fake->refuse_updates = true; /* there is a new one instead */
    OK(mr_executable_update(&caller, x, first));
    OK(mr_executable_launch(&caller, x, o.a));
    assert_null(mr_executable_expanded(x));
    assert_non_null(strstr(mr_executable_rebuilt(x), "the topology changed"));
    assert_int_equal(fake->graph_updates, 1);
    assert_int_equal(fake->graphs, 1);
    fake->refuse_updates = false;
    OK(mr_executable_update(&caller, x, second));
    OK(mr_executable_launch(&caller, x, o.a));
    assert_null(mr_executable_rebuilt(x));
    OK(mr_device_synchronize(&caller, device));
    assert_int_equal(fake->blocks, blocks);
    mr_executable_release(x);
    mr_graph_release(first);
    mr_graph_release(second);
    drop_operands(&o);
}

/* Whichever call of the driver fails: an error, or a launch by another way; and then all is as before. */
static void whatever_fails_nothing_is_left(void **state) {
    (void)state;
    operands o = new_operands();
    OK(mr_stream_synchronize(&caller, o.a));
    int failures = 0, expanded = 0, n = 1;
    for (bool reached = true; reached; n++) {
        mr_graph *graph = captured_sums(&o);
        mr_executable *x;
        OK(mr_graph_instantiate(&caller, graph, &x));
        OK(mr_device_synchronize(&caller, device));
        int blocks = fake->blocks;
        fake->fail_call_at = n;
        fake->fail_call_with = CUDA_ERROR_OUT_OF_MEMORY;
        mr_status status = mr_executable_launch(&caller, x, o.a);
        reached = fake->fail_call_at == 0;
        fake->fail_call_at = 0;
        failures += status != NULL;
        expanded += !status && mr_executable_expanded(x);
        mr_error_destroy(status);
        mr_executable_release(x);
        mr_graph_release(graph);
        OK(mr_device_synchronize(&caller, device));
        assert_int_equal(fake->graphs, 0);
        /* Lanes of streams keep their memory. */
        if (expanded == 0) assert_int_equal(fake->blocks, blocks);
    }
    assert_true(n > 15);
    assert_true(failures > 0 && expanded > 5);
    mr_graph *graph = captured_sums(&o);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, graph, &x));
    OK(mr_executable_launch(&caller, x, o.a));
    assert_null(mr_executable_expanded(x));
    mr_executable_release(x);
    mr_graph_release(graph);
    drop_operands(&o);
}

static void memory_goes_with_a_reset(void **state) {
    (void)state;
    operands o = new_operands();
    mr_graph *graph = captured_sums(&o);
    mr_executable *x;
    OK(mr_graph_instantiate(&caller, graph, &x));
    OK(mr_executable_launch(&caller, x, o.a));
    OK(mr_machine_reset(&caller));
    own_registered = fake->registered;
    assert_int_equal(fake->graphs, 0);
    assert_int_equal(fake->blocks, 0);
    mr_executable_release(x);
    mr_graph_release(graph);
    drop_operands(&o);
}

CUDA_TEST_MAIN(TEST(a_capture_launches_nothing),
               TEST(memory_is_the_graphs_and_goes_behind_the_last_launch),
               TEST(an_update_keeps_the_drivers_executable), TEST(whatever_fails_nothing_is_left),
               TEST(memory_goes_with_a_reset), TEST(a_launch_is_one_call_of_the_driver),
               TEST(a_refused_graph_is_launched_command_by_command),
               TEST(events_of_outside_are_nodes_of_the_drivers_graph),
               TEST(what_waits_for_the_record_of_a_launch_comes_after_its_node),
               TEST(an_event_that_is_not_known_to_the_driver_expands_the_launch),
               TEST(a_closed_event_refuses_the_launch),
               TEST(whatever_fails_events_can_be_used_afterwards),
               TEST(observers_are_told_of_each_node), TEST(a_graph_outlives_a_reset_and_is_refused))

#else
CUDA_TEST_MAIN()
#endif
