/* Makes the driver's graph of a plan: the steps are given to streams that the driver captures, by the code that gives
 * them to any stream. So whatever an operation consists of becomes nodes.
 *
 * The capture is in relaxed mode, on streams of its own, so it forbids the rest of the program nothing. Work that
 * operations do only once (memory, tables, cuBLAS's handles) runs on a stream that does not capture (memory.c).
 *
 * Easiest to break: a stream that captures must not be left capturing, whatever fails. */
#include <stdlib.h>

#include "cuda/family/family.h"
#include "cuda/graph/graph.h"
#include "cuda/objects/objects.h"

typedef struct {
    cuda_graph *graph;
    cuda_device *device;
    const mr_graph_plan *plan;
    mr_stream *stream; /* of the launch: a command needs one that is open */
    CUstream *lanes;
    CUevent *events;
    uint64_t seq; /* of the next command */
} capturing;

/* ---- what can be captured */

/* The driver would read or write pageable memory when the launch gets there; a copy outside of graphs does it at the
 * call, or the host waits (R20-R23). */
static bool is_taken_copy(const mr_command *command) {
    if (command->u.copy.synchronous) return false;
    for (uint32_t k = 0; k < command->operand_count; k++)
        if (command->operands[k].tensor->storage->kind == MR_MEMORY_PAGEABLE) return false;
    return command->u.copy.direction == MR_COPY_D2D || command->u.copy.direction == MR_COPY_H2D ||
           command->u.copy.direction == MR_COPY_D2H;
}

static bool is_taken(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT: return true;
    case MR_COMMAND_COPY: return is_taken_copy(command);
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return false;
}

static mr_status check_plan(const mr_graph_plan *plan) {
    for (size_t i = 0; i < plan->count; i++)
        if (plan->steps[i].command && !is_taken(plan->steps[i].command))
            return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: not a part of a graph of the driver",
                           plan->steps[i].command->name);
    return MR_OK;
}

/* ---- streams and events */

static mr_status open_lanes(capturing *c) {
    c->lanes = calloc(c->plan->lanes, sizeof *c->lanes);
    c->events = calloc(c->plan->events + (size_t)1, sizeof *c->events);
    if (!c->lanes || !c->events) return mr_no_memory("for a graph");
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

/* The events are not reused: the work before their records cannot be waited for outside the capture. */
static void close_lanes(capturing *c) {
    for (uint32_t i = 0; i < c->plan->lanes && c->lanes; i++) {
        if (!c->lanes[i]) continue;
        mr_cuda_lane_drop_captured(c->device, c->lanes[i]);
        mr_cu.StreamDestroy(c->lanes[i]);
    }
    for (uint32_t i = 0; i < c->plan->events && c->events; i++)
        if (c->events[i]) mr_cu.EventDestroy(c->events[i]);
    free(c->lanes);
    free(c->events);
}

/* ---- before the capture */

static mr_status prepare_blas(const capturing *c) {
    size_t count = 0;
    bool *uses = calloc(c->plan->lanes, sizeof *uses);
    if (!uses) return mr_no_memory("for a graph");
    for (size_t i = 0; i < c->plan->count; i++) {
        const mr_graph_step *s = &c->plan->steps[i];
        if (!s->command || !mr_cuda_uses_blas(s->command) || uses[s->lane]) continue;
        uses[s->lane] = true;
        count++;
    }
    free(uses);
    return count ? mr_cuda_blas_prepare(c->device, count) : MR_OK;
}

static mr_status prepare_draws(const capturing *c) {
    cuda_graph_memory *memory = &c->graph->memory;
    for (size_t i = 0; i < c->graph->nodes.commands.count; i++) {
        const mr_command *command = c->graph->nodes.commands.items[i];
        if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws)
            return memory->borrow(memory, NULL, sizeof(mr_cuda_philox), &memory->draws);
    }
    return MR_OK;
}

/* ---- capturing */

static mr_status add_copy(const capturing *c, const mr_command *command, CUstream lane) {
    const mr_tensor *to = command->operands[0].tensor, *from = command->operands[1].tensor;
    size_t bytes = command->u.copy.bytes;
    CUresult result = CUDA_SUCCESS;
    if (!bytes) return MR_OK;
    switch (command->u.copy.direction) {
    case MR_COPY_H2D:
        result = mr_cu.MemcpyHtoDAsync(mr_cuda_data(to), mr_tensor_data(from), bytes, lane);
        break;
    case MR_COPY_D2H:
        result = mr_cu.MemcpyDtoHAsync(mr_tensor_data(to), mr_cuda_data(from), bytes, lane);
        break;
    default: result = mr_cu.MemcpyDtoDAsync(mr_cuda_data(to), mr_cuda_data(from), bytes, lane);
    }
    MR_CUDA_TRY(c->device, result, "%s", command->name);
    return MR_OK;
}

/* The captured stream may be closed, so the command is shown with the launch's. */
static mr_status add_node(capturing *c, const mr_command *node, CUstream lane) {
    mr_command command = *node;
    command.operands =
        node->operands == node->inline_operands ? command.inline_operands : node->operands;
    command.stream = c->stream;
    command.seq = c->seq++;
    if (command.kind == MR_COMMAND_OP) return mr_cuda_launch(&command, lane);
    if (mr_command_has(node, MR_PART_EVENT)) return mr_cuda_event_capture(node, c->device, lane);
    return add_copy(c, &command, lane);
}

static mr_status add_step(capturing *c, const mr_graph_step *s) {
    CUstream lane = c->lanes[s->lane];
    if (s->kind == MR_STEP_NODE) return add_node(c, s->command, lane);
    if (s->kind == MR_STEP_RECORD)
        MR_CUDA_TRY(c->device, mr_cu.EventRecord(c->events[s->event], lane), "graph");
    else MR_CUDA_TRY(c->device, mr_cu.StreamWaitEvent(lane, c->events[s->event], 0), "graph");
    return MR_OK;
}

static mr_status capture(capturing *c, CUgraph *out_graph) {
    mr_status status = MR_OK;
    MR_CUDA_TRY(c->device, mr_cu.StreamBeginCapture(c->lanes[0], CU_STREAM_CAPTURE_MODE_RELAXED),
                "graph");
    for (size_t i = 0; i < c->plan->count && !status; i++) status = add_step(c, &c->plan->steps[i]);
    CUresult result = mr_cu.StreamEndCapture(c->lanes[0], out_graph);
    if (!status && result != CUDA_SUCCESS) status = mr_cuda_fail(c->device, result, "graph");
    if (!status && !*out_graph)
        status = mr_fail(MR_CODE_NOT_SUPPORTED, "graph: nothing was captured");
    return status;
}

mr_status mr_cuda_graph_capture(cuda_graph *g, const mr_graph_plan *plan, mr_stream *stream,
                                CUgraph *out_graph) {
    capturing c = {
        .graph = g, .device = g->device, .plan = plan, .stream = stream, .seq = g->nodes.first};
    MR_TRY(check_plan(plan));
    mr_cuda_graph_memory_begin(&g->memory, g->device);
    mr_status status = open_lanes(&c);
    if (!status) status = prepare_blas(&c);
    if (!status) status = prepare_draws(&c);
    if (!status) status = capture(&c, out_graph);
    close_lanes(&c);
    mr_status ended = mr_cuda_graph_memory_end(&g->memory);
    if (status) mr_error_destroy(ended);
    else status = ended;
    return status;
}
