/* A graph that is launched in a capture: its nodes become nodes of the captured graph, after the stream's earlier
 * nodes.
 *
 * Easiest to break: the numbers of nodes and of random draws, which count from 0 in each graph. */
#include "graph/state.h"
#include "ops/params.h"

static mr_status check_child(const mr_graph *graph) {
    if (!graph->memory.count) return MR_OK;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "launch: a graph that allocates memory cannot be a part of another one (R44): "
                   "allocate it before the capture");
}

/* A node as it was captured, once more: in another graph, into which it comes on `stream`. */
static mr_status copy_node(const mr_caller *caller, const mr_command *from, mr_stream *stream,
                           mr_command **out_command) {
    mr_command *command;
    mr_caller at = {.machine = caller->machine, .where = from->where};
    MR_TRY(mr_command_create(&at, from->kind, from->stream, from->name, from->operand_count,
                             &command));
    for (uint32_t i = 0; i < from->operand_count; i++)
        mr_command_set_operand(command, i, from->operands[i].tensor, from->operands[i].access);
    command->own_name = from->own_name ? mr_name_retain(from->own_name) : NULL;
    command->name = from->name;
    command->u = from->u;
    command->meeting = from->meeting;
    if (from->meeting) from->meeting->refs++;
    if (mr_command_has(command, MR_PART_EVENT)) mr_event_retain(command->u.event.event);
    command->node = from;
    mr_command_retain(from);
    mr_node_put(command, stream, caller->where);
    *out_command = command;
    return MR_OK;
}

static bool is_leaf(const mr_graph *graph, uint32_t i) {
    for (size_t k = 0; k < graph->edges.count; k++)
        if (graph->edges.items[k] == i) return false;
    return true;
}

mr_status mr_capture_child(const mr_caller *caller, mr_stream *stream, const mr_executable *x) {
    const mr_graph *graph = x->graph;
    captured_stream *s = stream->capture;
    mr_graph *into = s->capture->graph;
    index_list after = {0}, leaves = {0};
    uint32_t first = (uint32_t)into->nodes.count;
    mr_status status = mr_capture_usable(s->capture, "launch");
    if (!status) status = check_child(graph);
    for (uint32_t i = 0; i < graph->nodes.count && !status; i++) {
        const graph_node *n = &graph->nodes.items[i];
        const uint32_t *from = n->count ? graph->edges.items + n->first : s->frontier.items;
        size_t count = n->count ? n->count : s->frontier.count;
        bool ok = true;
        after.count = 0;
        for (size_t k = 0; k < count && ok; k++)
            ok = mr_index_add(&after, from[k] + (n->count ? first : 0));
        if (ok && is_leaf(graph, i)) ok = mr_index_add(&leaves, first + i);
        mr_command *command = NULL;
        status = ok ? copy_node(caller, x->commands[i], stream, &command)
                    : mr_capture_no_memory("a graph");
        if (status) break;
        if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws) {
            mr_random_params random = mr_params_of(command).random;
            mr_params_set_draw(command, random.seed, into->draws + random.offset);
        }
        status = mr_graph_append(into, command, &after);
        if (!status) into->nodes.items[first + i].off = !x->enabled[i];
    }
    mr_vec_free(&after);
    if (status || !graph->nodes.count) {
        mr_vec_free(&leaves);
        return status;
    }
    into->draws += graph->draws;
    mr_vec_free(&s->frontier);
    s->frontier = leaves;
    return MR_OK;
}
