/* Graphs of the driver: their launches, and the release of their memory. capture.c makes them.
 *
 * Random numbers: commands of a graph draw from the numbers that the machine has at the launch. The launch writes them
 * to memory of the graph, where the kernels find them.
 *
 * Easiest to break: launches may be pending while a graph is updated or dropped. Its memory is freed after the last
 * one, and its commands stay until their kernels can no longer report errors. */
#include "cuda/family/family.h"
#include "cuda/graph/graph.h"
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

#include <stdlib.h>

#include "base/text.h"

/* ---- the graphs of a device */

static void unlink_from(cuda_graph *g) {
    cuda_nodes *n = &g->nodes;
    if (n->previous) n->previous->next = n->next;
    else if (g->device->graphs == n) g->device->graphs = n->next;
    if (n->next) n->next->previous = n->previous;
    n->previous = n->next = NULL;
}

static void forget_launch(cuda_graph *g) {
    if (g->last) mr_cuda_stream_release(g->last);
    g->last = NULL;
}

static void drop_commands(cuda_graph *g) {
    while (g->nodes.commands.count) mr_command_release(mr_vec_pop(&g->nodes.commands));
    mr_vec_free(&g->nodes.commands);
}

/* Frees the parts that belong to the context; the device is current. */
static void close(cuda_graph *g) {
    if (g->executable) mr_cu.GraphExecDestroy(g->executable);
    g->executable = NULL;
    mr_cuda_graph_memory_free(&g->memory, g->last);
    forget_launch(g);
    unlink_from(g);
}

static void close_all(cuda_device *device) {
    while (device->graphs) close((cuda_graph *)device->graphs);
}

static void link_in(cuda_graph *g) {
    g->nodes.next = g->device->graphs;
    if (g->nodes.next) g->nodes.next->previous = &g->nodes;
    g->device->graphs = &g->nodes;
    g->device->close_graphs = close_all;
}

void mr_cuda_graph_drop(void *graph) {
    cuda_graph *g = graph;
    if (g->executable) { /* its context is still there */
        mr_error_destroy(mr_cuda_use(g->device));
        close(g);
    }
    drop_commands(g);
    free(g);
}

/* ---- building */

/* One after the other, so that a kernel's complaint tells which. */
static mr_status take_commands(cuda_graph *g, const mr_graph_plan *plan) {
    for (size_t i = 0; i < plan->count; i++) {
        const mr_command *command = plan->steps[i].command;
        if (!command) continue;
        if (!mr_vec_push(&g->nodes.commands, command)) return mr_no_memory("for a graph");
        mr_command_retain(command);
    }
    mr_machine *machine = g->device->machine->machine;
    g->nodes.first = machine->counts.next_seq;
    machine->counts.next_seq += g->nodes.commands.count;
    return MR_OK;
}

static const char *refusal_text(CUgraphExecUpdateResult result) {
    switch (result) {
    case CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED: return "the topology changed";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED: return "the type of a node changed";
    case CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED: return "the function of a kernel changed";
    case CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED:
        return "the parameters of a node changed in a way that is not supported";
    case CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED: return "a node does not support updates";
    case CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE:
        return "the function of a kernel changed in a way that is not supported";
    case CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED:
        return "the attributes of a node changed in a way that is not supported";
    default: return "no reason is known";
    }
}

/* The driver refuses an update that it cannot make; then there is a new executable. */
static mr_status instantiate(cuda_graph *g, CUgraph graph, CUgraphExec earlier,
                             const mr_graph_plan *plan) {
    CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
    CUresult refused = earlier ? mr_cu.GraphExecUpdate(earlier, graph, &info) : CUDA_SUCCESS;
    if (earlier && refused == CUDA_SUCCESS) {
        g->executable = earlier;
        return MR_OK;
    }
    if (earlier)
        mr_text_format(plan->refusal, plan->refusal_size,
                       "%s (cuGraphExecUpdate: error %d, result %d)", refusal_text(info.result),
                       (int)refused, (int)info.result);
    MR_CUDA_TRY(g->device, mr_cu.GraphInstantiate(&g->executable, graph, 0), "graph");
    return MR_OK;
}

static mr_status build(cuda_graph *g, const mr_graph_plan *plan, mr_stream *stream,
                       CUgraphExec earlier) {
    CUgraph graph = NULL;
    MR_TRY(take_commands(g, plan));
    mr_status status = mr_cuda_graph_capture(g, plan, stream, &graph);
    if (!status) status = instantiate(g, graph, earlier, plan);
    if (graph) mr_cu.GraphDestroy(graph);
    return status;
}

static mr_status build_new(const mr_graph_plan *plan, mr_stream *stream, cuda_graph *earlier,
                           cuda_graph **out_graph) {
    cuda_device *device = ((cuda_stream *)stream->impl)->device;
    MR_TRY(mr_cuda_may_wait(device, "making a graph of the driver"));
    MR_TRY(mr_cuda_use(device));
    cuda_graph *g = calloc(1, sizeof *g);
    if (!g) return mr_no_memory("for a graph");
    g->device = device;
    mr_status status = build(g, plan, stream, earlier ? earlier->executable : NULL);
    if (status) {
        mr_cuda_graph_memory_free(&g->memory, NULL);
        drop_commands(g);
        free(g);
        return status;
    }
    if (earlier && earlier->executable == g->executable) earlier->executable = NULL;
    link_in(g);
    *out_graph = g;
    return MR_OK;
}

mr_status mr_cuda_graph_build(const mr_graph_plan *plan, mr_stream *stream, void **graph) {
    cuda_graph *earlier = *graph, *made = NULL;
    if (earlier && !earlier->executable) { /* a reset took it */
        mr_cuda_graph_drop(earlier);
        earlier = NULL;
    }
    mr_status status = build_new(plan, stream, earlier, &made);
    if (earlier) {
        mr_error_destroy(mr_cuda_use(earlier->device));
        close(earlier);
        mr_cuda_graph_drop(earlier);
    }
    *graph = made;
    return status;
}

/* ---- launching */

/* Notes the commands that an error may be of, and the modules and the host memory in use. Called after the launch, so
 * that the device does not wait for it. */
static void note_nodes(const cuda_graph *g, mr_stream *stream, uint64_t seq) {
    cuda_device *device = g->device;
    for (size_t i = 0; i < g->nodes.commands.count; i++) {
        const mr_command *node = g->nodes.commands.items[i];
        for (uint32_t k = 0; k < node->operand_count; k++)
            if (node->operands[k].tensor->storage->kind == MR_MEMORY_PINNED)
                mr_cuda_hold(stream->impl, node->operands[k].tensor->storage);
        if (node->kind != MR_COMMAND_OP) continue;
        if (node->u.op.row->family->id == MR_FAMILY_KERNEL)
            mr_cuda_user_kernel_launched(device, node);
        if (i + TRAIL_LENGTH < g->nodes.commands.count) continue;
        cuda_trail *trail = &device->trail[device->launches++ % TRAIL_LENGTH];
        mr_name_release(trail->own_name);
        *trail = (cuda_trail){seq, node->name, mr_name_retain(node->own_name), node->where,
                              stream->impl};
    }
}

/* The memory that was prepared; no later launch needs that, as launches follow each other. */
static mr_status wait_ready(cuda_graph *g, const cuda_stream *stream) {
    if (!g->memory.ready) return MR_OK;
    MR_CUDA_TRY(g->device, mr_cu.StreamWaitEvent(stream->handle, g->memory.ready, 0), "graph");
    mr_cuda_event_give(g->device, g->memory.ready);
    g->memory.ready = NULL;
    return MR_OK;
}

/* Pageable memory this small has been read when the call returns. */
static mr_status write_draws(const cuda_graph *g, const cuda_stream *stream,
                             const mr_graph_launch *launch) {
    if (!g->memory.draws) return MR_OK;
    mr_cuda_philox from = mr_cuda_philox_of(launch->seed, launch->offset);
    MR_CUDA_TRY(g->device,
                mr_cu.MemcpyHtoDAsync(g->memory.draws, &from, sizeof from, stream->handle),
                "launch of a graph in %s", stream->text);
    return MR_OK;
}

/* Before the launch: what fails leaves the events as they are for the driver. */
static void note_records(const cuda_graph *g, cuda_stream *stream) {
    for (size_t i = 0; i < g->nodes.commands.count; i++) {
        const mr_command *node = g->nodes.commands.items[i];
        if (node->kind == MR_COMMAND_RECORD) mr_cuda_event_in_launch(node->u.event.event, stream);
    }
}

static void note_last(cuda_graph *g, cuda_stream *stream) {
    if (g->last == stream) return;
    forget_launch(g);
    g->last = stream;
    stream->refs++;
}

mr_status mr_cuda_graph_launch(void *graph, mr_stream *stream, const mr_graph_launch *launch) {
    cuda_graph *g = graph;
    cuda_stream *s = stream->impl;
    if (g->device->machine->calls) MR_TRY(mr_cuda_may_wait(g->device, "the launch of a graph"));
    MR_TRY(mr_cuda_use(g->device));
    MR_TRY(wait_ready(g, s));
    MR_TRY(write_draws(g, s, launch));
    note_records(g, s);
    MR_CUDA_TRY(g->device, mr_cu.GraphLaunch(g->executable, s->handle), "launch of a graph in %s",
                s->text);
    s->last_seq = launch->seq;
    note_last(g, s);
    note_nodes(g, stream, launch->seq);
    return MR_OK;
}
