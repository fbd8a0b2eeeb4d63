/* Executables as graphs of the backend: which ones it can launch in one call, and the plan from which it makes its
 * graph. The others are launched node by node, and `expanded` says why.
 *
 * Easiest to break: a graph that is launched in one call does exactly what its nodes would, one by one. */
#include <stdlib.h>

#include "base/text.h"
#include "graph/state.h"
#include "model/backend.h"

void mr_executable_drop_built(mr_executable *x) {
    mr_machine *machine = x->graph->machine;
    if (x->built) machine->backend->graph_drop(x->built);
    x->built = NULL;
    x->unbuilt = x->stale = false;
}

static void expand(mr_executable *x, const mr_command *command, const char *reason) {
    if (!command) {
        mr_text_format(x->expanded, sizeof x->expanded, "%s", reason);
        return;
    }
    mr_text_format(x->expanded, sizeof x->expanded, "%s at %.80s:%d %s", command->name,
                   command->where.file ? command->where.file : "?", command->where.line, reason);
}

/* A wait of the driver's graph finds the record before the launch. The device of an event is known when it is
 * recorded. */
static const char *obstacle_of_event(const mr_graph *graph, const mr_command *command) {
    const mr_event *event = command->u.event.event;
    if (!event->device) return "waits for an event that has never been recorded";
    if (event->device != graph->device) return "waits for an event of another device";
    for (size_t i = 0; i < graph->nodes.count && command->kind == MR_COMMAND_WAIT; i++) {
        const mr_command *other = graph->nodes.items[i].command;
        if (other->kind == MR_COMMAND_RECORD && other->u.event.event == event)
            return "waits for an event that the same graph records";
    }
    return NULL;
}

static const char *obstacle_of_work(const mr_graph *graph, const mr_command *command) {
    if (captured_call_of(command)) return "is a collective, whose ranks meet at each launch";
    if (command->stream->device != graph->device) return "is on another device";
    for (uint32_t k = 0; k < command->operand_count; k++) {
        const mr_storage *storage = command->operands[k].tensor->storage;
        if (storage->kind == MR_MEMORY_PAGEABLE) return "uses pageable memory";
        if (storage->kind == MR_MEMORY_DEVICE && storage->device != graph->device)
            return "uses memory of another device";
    }
    return NULL;
}

/* Why the command cannot be in a native graph; NULL: it can. Commands that need the host while they run, or another
 * device, cannot. */
static const char *obstacle_of(const mr_graph *graph, const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY: return obstacle_of_work(graph, command);
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT: return obstacle_of_event(graph, command);
    case MR_COMMAND_HOST_FUNCTION: return "is a host function";
    case MR_COMMAND_FAULT: return "is for the virtual GPU";
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return NULL;
}

static bool may_build(mr_executable *x) {
    const mr_graph *graph = x->graph;
    if (x->unbuilt) return false;
    for (uint32_t i = 0; i < graph->nodes.count; i++) {
        const mr_command *command = x->commands[i];
        const char *obstacle = x->enabled[i] ? obstacle_of(graph, command) : NULL;
        if (!obstacle) continue;
        expand(x, command, obstacle);
        return false;
    }
    return true;
}

bool mr_executable_carries_out(const mr_executable *x, uint32_t i) {
    return x->enabled[i] && !mr_command_has(x->commands[i], MR_PART_MEMORY);
}

/* If the backend cannot build it, the graph's launches are submitted command by command. */
static void build(mr_executable *x, mr_stream *stream) {
    const lowered *l = &x->lowered;
    mr_graph_step *steps = malloc((l->steps.count + 1) * sizeof *steps);
    mr_graph_plan plan = {.steps = steps,
                          .lanes = (uint32_t)l->lanes.count,
                          .events = l->events,
                          .refusal = x->rebuilt,
                          .refusal_size = sizeof x->rebuilt};
    x->rebuilt[0] = '\0';
    for (size_t i = 0; i < l->steps.count && steps; i++) {
        const step *s = &l->steps.items[i];
        mr_graph_step made = {.kind = (mr_graph_step_kind)s->kind, .lane = s->lane};
        if (s->kind != STEP_NODE) made.event = s->at;
        else if (mr_executable_carries_out(x, s->at)) made.command = x->commands[s->at];
        else continue;
        steps[plan.count++] = made;
    }
    if (!steps) mr_executable_drop_built(x);
    mr_status status = steps ? x->graph->machine->backend->graph_build(&plan, stream, &x->built)
                             : mr_no_memory("for a graph");
    if (status) expand(x, NULL, status->message);
    mr_error_destroy(status);
    free(steps);
    x->unbuilt = !x->built;
    x->stale = false;
}

/* Times of single commands are known only if the commands are submitted separately. */
bool mr_executable_is_native(mr_executable *x, mr_stream *stream) {
    const mr_machine *machine = x->graph->machine;
    if (!machine->backend->graph_build) return false;
    if (machine->observing.ran_listeners) {
        if (!x->unbuilt) expand(x, NULL, "a trace is recorded");
        return false;
    }
    bool builds = (!x->built || x->stale) && may_build(x);
    if (x->stale && !builds) mr_executable_drop_built(x);
    if (builds) build(x, stream);
    if (x->built) x->expanded[0] = '\0';
    return x->built != NULL;
}
