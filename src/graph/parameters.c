/* Parameters of single nodes in an executable (R43): what a node reads and writes, and with which numbers, as
 * cudaGraphExecKernelNodeSetParams and its like change them. The graph stays as it was captured; the executable has
 * another command for the node.
 *
 * Easiest to break: a pending launch still uses the node's old operands. So their memory is freed like that of the
 * graph's own nodes, in the order of a stream that waits for the last launch. */
#include <stdlib.h>

#include "base/text.h"
#include "graph/state.h"
#include "ops/params.h"

static const char cure[] = "R43: tensors and numbers of a node may change, its operation may not. "
                           "For anything else capture "
                           "a new graph, or use g:update(fn).";

mr_graph_node mr_executable_node_at(const mr_executable *x, uint32_t i) {
    mr_graph_node n = mr_graph_node_at(x->graph, i);
    n.command = x->commands[i];
    return n;
}

static void describe(char *text, size_t size, const mr_command *command) {
    mr_text_format(text, size, "`%.40s` (%s) at %.80s:%d", command->name,
                   mr_graph_kind_text(command), command->where.file ? command->where.file : "?",
                   command->where.line);
}

static const char *what_differs(const mr_command *a, const mr_command *b) {
    if (a->kind != b->kind) return "another kind of node";
    if (a->kind == MR_COMMAND_COPY && a->u.copy.direction != b->u.copy.direction)
        return "a copy in another direction";
    if (a->kind == MR_COMMAND_OP && a->u.op.row != b->u.op.row) return "another operation";
    if (a->stream->device != b->stream->device) return "on another device";
    const mr_captured_call *call = captured_call_of(a);
    if (call && !call->same(a, b)) return "another call of a collective";
    return NULL;
}

static mr_status refuse(const char *what) {
    return mr_capture_error(MR_CODE_INVALID_ARGUMENT, "set", what, (mr_site){0}, cure);
}

static mr_status check_one(const mr_graph *from) {
    char what[200], first[180];
    if (from->nodes.count == 1) return MR_OK;
    if (!from->nodes.count) return refuse("the function submitted nothing");
    describe(first, sizeof first, from->nodes.items[0].command);
    mr_text_format(what, sizeof what, "the function submitted %zu nodes instead of one, first %s",
                   from->nodes.count, first);
    return refuse(what);
}

static mr_status is_memory(const mr_command *command, uint32_t i) {
    char was[180], what[240];
    describe(was, sizeof was, command);
    mr_text_format(what, sizeof what, "node %u is memory, which has no parameters: %s", i + 1, was);
    return refuse(what);
}

static mr_status check_set(const mr_caller *caller, const mr_executable *x, uint32_t i,
                           const mr_graph *from) {
    char was[180], now[180], what[440];
    MR_TRY(mr_machine_ready(caller->machine));
    if (x->graph->epoch != caller->machine->epoch)
        return mr_fail(MR_CODE_INVALID_HANDLE,
                       "set: the graph was captured before mr.reset(): capture it again");
    MR_TRY(check_one(from));
    const mr_command *a = x->commands[i], *b = from->nodes.items[0].command;
    if (mr_command_has(a, MR_PART_MEMORY)) return is_memory(a, i);
    const char *differs = what_differs(a, b);
    if (!differs) return MR_OK;
    describe(was, sizeof was, a);
    describe(now, sizeof now, b);
    mr_text_format(what, sizeof what, "node %u is %s, and the function submits %s: %s", i + 1, was,
                   differs, now);
    return refuse(what);
}

/* Those of the graph's own command are the graph's. */
static void let_go(const mr_executable *x, uint32_t i) {
    mr_command *command = x->commands[i];
    if (command == x->graph->nodes.items[i].command) return;
    for (uint32_t k = 0; k < command->operand_count; k++) {
        mr_storage *storage = command->operands[k].tensor->storage;
        if (x->launched_on) mr_error_destroy(mr_storage_record_stream(storage, x->launched_on));
        mr_storage_drop_handle(storage);
    }
    mr_command_release(command);
}

void mr_executable_free_commands(mr_executable *x) {
    for (uint32_t i = 0; x->commands && i < x->graph->nodes.count; i++) let_go(x, i);
    free(x->commands);
    x->commands = NULL;
}

mr_status mr_executable_fill_commands(mr_executable *x) {
    const mr_graph *graph = x->graph;
    x->commands = malloc((graph->nodes.count + 1) * sizeof *x->commands);
    if (!x->commands) return mr_no_memory("for the nodes of an executable graph");
    for (size_t i = 0; i < graph->nodes.count; i++) x->commands[i] = graph->nodes.items[i].command;
    return MR_OK;
}

mr_status mr_executable_set(const mr_caller *caller, mr_executable *x, uint32_t i,
                            const mr_graph *from) {
    MR_TRY(check_set(caller, x, i, from));
    mr_command *command = from->nodes.items[0].command;
    /* Only `from` refers to this command, so it may be changed: a node's random numbers depend on its place in the
     * graph. */
    if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws)
        mr_params_set_draw(command, mr_params_of(command).random.seed,
                           mr_params_of(x->commands[i]).random.offset);
    const mr_command *captured = x->graph->nodes.items[i].command;
    if (captured->placed) mr_node_put(command, captured->placed, captured->launched);
    else mr_node_put(command, captured->stream, captured->where);
    mr_command_retain(command);
    for (uint32_t k = 0; k < command->operand_count; k++)
        mr_storage_add_handle(command->operands[k].tensor->storage);
    let_go(x, i);
    x->commands[i] = command;
    executable_changed(x);
    return MR_OK;
}
