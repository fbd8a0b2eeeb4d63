/* Graphs of the driver: the steps of a launch are given to streams that the driver captures, and what it makes of them is
 * launched as a whole.
 *
 * Only kernels and copies that need no memory beyond their operands are taken. The capture is in relaxed mode, on streams
 * of its own, so it forbids the rest of the program nothing.
 *
 * Easiest to break: a stream that captures must not be left capturing, whatever fails. */
#include <stdlib.h>

#include "cuda/launch.h"

typedef struct {
    cuda_device *device;
    uint32_t generation;
    CUgraphExec executable;
    size_t count; /* of the nodes */
    const mr_command *commands[];
} cuda_graph;

/* While it is being captured. */
typedef struct {
    cuda_device *device;
    const mr_graph_plan *plan;
    mr_stream *stream; /* of the launch: a command needs one that is open */
    CUstream *lanes;
    CUevent *events;
} capturing;

/* ---- what can be captured */

static bool is_of_family(const mr_command *command, mr_family_id family) {
    return command->kind == MR_COMMAND_OP && command->u.op.row->family->id == family;
}

/* The rest uses memory of its stream's. */
static bool is_taken(const mr_command *command) {
    static const mr_family_id families[] = {MR_FAMILY_UNARY,   MR_FAMILY_BINARY, MR_FAMILY_COMPARE,
                                            MR_FAMILY_TERNARY, MR_FAMILY_FILL,   MR_FAMILY_COPY,
                                            MR_FAMILY_BYTES,   MR_FAMILY_KERNEL};
    if (command->kind == MR_COMMAND_COPY) return true;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (is_of_family(command, families[i])) return true;
    return false;
}

static mr_status check_plan(const mr_graph_plan *plan) {
    for (size_t i = 0; i < plan->count; i++)
        if (plan->steps[i].command && !is_taken(plan->steps[i].command))
            return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: not a part of a graph of the driver",
                           plan->steps[i].command->name);
    return MR_OK;
}

/* ---- capturing */

static mr_status open_lanes(capturing *c) {
    c->lanes = calloc(c->plan->lanes, sizeof *c->lanes);
    c->events = calloc(c->plan->events, sizeof *c->events);
    if (!c->lanes || !c->events) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a graph");
    for (uint32_t i = 0; i < c->plan->lanes; i++)
        MR_CUDA_TRY(c->device,
                    mr_cu.StreamCreateWithPriority(&c->lanes[i], CU_STREAM_NON_BLOCKING,
                                                   c->stream->priority),
                    "graph");
    for (uint32_t i = 0; i < c->plan->events; i++) {
        c->events[i] = mr_cuda_event_take(c->device);
        if (!c->events[i]) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no event for a graph");
    }
    return MR_OK;
}

/* The events are not given to other users: what they were recorded behind cannot be waited for outside. */
static void close_lanes(capturing *c) {
    for (uint32_t i = 0; i < c->plan->lanes && c->lanes; i++)
        if (c->lanes[i]) mr_cu.StreamDestroy(c->lanes[i]);
    for (uint32_t i = 0; i < c->plan->events && c->events; i++)
        if (c->events[i]) mr_cu.EventDestroy(c->events[i]);
    free(c->lanes);
    free(c->events);
}

/* The captured stream may be closed, so the command is shown with the launch's. */
static mr_status add_node(const capturing *c, const mr_command *node, CUstream lane) {
    mr_command command = *node;
    command.stream = c->stream;
    command.seq = c->stream->device->machine->next_seq; /* later than all that is pending */
    if (command.kind == MR_COMMAND_OP) return mr_cuda_launch(&command, lane);
    MR_CUDA_TRY(c->device,
                mr_cu.MemcpyDtoDAsync(mr_cuda_data(command.operands[0].tensor),
                                      mr_cuda_data(command.operands[1].tensor),
                                      command.u.copy.bytes, lane),
                "%s", command.name);
    return MR_OK;
}

static mr_status add_step(const capturing *c, const mr_graph_step *s) {
    CUstream lane = c->lanes[s->lane];
    if (s->kind == MR_STEP_NODE) return add_node(c, s->command, lane);
    if (s->kind == MR_STEP_RECORD)
        MR_CUDA_TRY(c->device, mr_cu.EventRecord(c->events[s->event], lane), "graph");
    else MR_CUDA_TRY(c->device, mr_cu.StreamWaitEvent(lane, c->events[s->event], 0), "graph");
    return MR_OK;
}

static mr_status capture(const capturing *c, CUgraph *out_graph) {
    mr_status status = MR_OK;
    *out_graph = NULL;
    MR_CUDA_TRY(c->device, mr_cu.StreamBeginCapture(c->lanes[0], CU_STREAM_CAPTURE_MODE_RELAXED),
                "graph");
    for (size_t i = 0; i < c->plan->count && !status; i++) status = add_step(c, &c->plan->steps[i]);
    CUresult result = mr_cu.StreamEndCapture(c->lanes[0], out_graph);
    if (!status && result != CUDA_SUCCESS) status = mr_cuda_fail(c->device, result, "graph");
    return status;
}

static mr_status instantiate(const capturing *c, CUgraphExec *out_executable) {
    CUgraph graph;
    mr_status status = capture(c, &graph);
    if (!status && !graph) status = mr_fail(MR_CODE_NOT_SUPPORTED, "graph: nothing was captured");
    if (!status) {
        CUresult result = mr_cu.GraphInstantiate(out_executable, graph, 0);
        if (result != CUDA_SUCCESS) status = mr_cuda_fail(c->device, result, "graph");
    }
    if (graph) mr_cu.GraphDestroy(graph);
    return status;
}

/* ---- the slots */

mr_status mr_cuda_graph_build(const mr_graph_plan *plan, mr_stream *stream, void **out_graph) {
    cuda_device *device = ((cuda_stream *)stream->impl)->device;
    MR_TRY(check_plan(plan));
    MR_TRY(mr_cuda_host_wait_all(device->machine)); /* a new stream may wait in the driver */
    MR_TRY(mr_cuda_use(device));
    cuda_graph *g = malloc(sizeof *g + plan->count * sizeof *g->commands);
    if (!g) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for a graph");
    *g = (cuda_graph){.device = device, .generation = device->generation};
    for (size_t i = 0; i < plan->count; i++)
        if (plan->steps[i].command) g->commands[g->count++] = plan->steps[i].command;
    capturing c = {.device = device, .plan = plan, .stream = stream};
    mr_status status = open_lanes(&c);
    if (!status) status = instantiate(&c, &g->executable);
    close_lanes(&c);
    if (status) free(g);
    else *out_graph = g;
    return status;
}

/* What an error may be of, and which modules are in use. After the launch, so that the device does not wait for it. */
static void note_nodes(const cuda_graph *g, const mr_stream *stream, uint64_t seq) {
    cuda_device *device = g->device;
    for (size_t i = 0; i < g->count; i++) {
        const mr_command *node = g->commands[i];
        if (is_of_family(node, MR_FAMILY_KERNEL)) mr_cuda_user_kernel_launched(device, node, seq);
        if (node->kind != MR_COMMAND_OP || i + TRAIL_LENGTH < g->count) continue;
        cuda_trail *trail = &device->trail[device->launches++ % TRAIL_LENGTH];
        mr_name_release(trail->own_name);
        *trail = (cuda_trail){seq, node->name, mr_name_retain(node->own_name), node->where,
                              stream->impl};
    }
}

mr_status mr_cuda_graph_launch(void *graph, mr_stream *stream, uint64_t seq) {
    const cuda_graph *g = graph;
    cuda_stream *s = stream->impl;
    if (g->device->machine->calls) MR_TRY(mr_cuda_host_wait_all(g->device->machine));
    MR_TRY(mr_cuda_use(g->device));
    MR_CUDA_TRY(g->device, mr_cu.GraphLaunch(g->executable, s->handle), "launch of a graph in %s",
                s->text);
    s->last_seq = seq;
    note_nodes(g, stream, seq);
    return MR_OK;
}

/* A reset has taken those of before. */
void mr_cuda_graph_drop(void *graph) {
    cuda_graph *g = graph;
    if (g->generation == g->device->generation && g->device->context) {
        mr_status status = mr_cuda_use(g->device);
        if (!status) mr_cu.GraphExecDestroy(g->executable);
        mr_error_destroy(status);
    }
    free(g);
}
