/* The text of a graph: a line for each node, with its predecessors. */
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "graph/state.h"

const char *mr_graph_kind_text(const mr_command *command) {
    switch (command->kind) {
    case MR_COMMAND_OP: return "kernel";
    case MR_COMMAND_COPY: return "copy";
    case MR_COMMAND_HOST_FUNCTION: return "host function";
    case MR_COMMAND_ALLOC: return "alloc";
    case MR_COMMAND_FREE: return "free";
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_FAULT: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return mr_command_kinds[command->kind].name;
}

static void put_after(const mr_graph *graph, uint32_t i, mr_buffer *out) {
    mr_graph_node n = mr_graph_node_at(graph, i);
    for (uint32_t k = 0; k < n.after_count; k++)
        mr_buffer_printf(out, "%s%u", k ? ", " : "after ", n.after[k] + 1);
}

static void put_node(const mr_executable *x, uint32_t i, mr_buffer *out) {
    const mr_command *command = x->commands[i];
    char stream[100], name[60], after[80];
    mr_buffer list = {0};
    mr_text_format(name, sizeof name, "%s", command->name);
    put_after(x->graph, i, &list);
    mr_text_copy(after, sizeof after, list.data ? list.data : "");
    mr_buffer_free(&list);
    mr_buffer_printf(out, "%5u  %-13s  %-20s  %-18s  ", i + 1, mr_graph_kind_text(command), name,
                     after);
    mr_text_put(out, mr_stream_describe(command->stream, stream, sizeof stream));
    if (command->where.file) {
        mr_buffer_puts(out, "  ");
        mr_text_put(out, command->where.file);
        mr_buffer_printf(out, ":%d", command->where.line);
    }
    mr_buffer_puts(out, x->enabled[i] ? "\n" : "  (disabled)\n");
}

static void put_count(mr_buffer *out, size_t count, const char *what) {
    mr_buffer_printf(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

void mr_graph_write_text(const mr_executable *x, mr_buffer *out) {
    const mr_graph *graph = x->graph;
    mr_buffer_printf(out, "graph %" PRIu64 ": ", mr_graph_number(graph));
    put_count(out, graph->nodes.count, "node");
    mr_buffer_puts(out, ", ");
    put_count(out, graph->edges.count, "edge");
    if (graph->memory.count) {
        mr_buffer_printf(out, ", %" PRIu64 " bytes in ", graph->memory_bytes);
        put_count(out, graph->memory.count, "allocation");
    }
    if (graph->shared_bytes)
        mr_buffer_printf(out, " (%" PRIu64 " of them of earlier graphs of the pool)",
                         graph->shared_bytes);
    if (graph->begun.file) {
        mr_buffer_puts(out, ", captured at ");
        mr_text_put(out, graph->begun.file);
        mr_buffer_printf(out, ":%d", graph->begun.line);
    }
    mr_buffer_puts(out, "\n");
    for (uint32_t i = 0; i < graph->nodes.count; i++) put_node(x, i, out);
}
