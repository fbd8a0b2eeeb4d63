/* Graphs: nodes, edges, and the memory that was allocated while they were captured. A graph does not change once its
 * capture has ended.
 *
 * A node keeps the storages of its operands alive as a tensor of the script does, so that the collector cannot free
 * memory that a later launch uses.
 *
 * Easiest to break: the order of a graph's release. Memory is freed only after the last launch, in the order of a
 * stream that waits for it. */
#include <stdlib.h>
#include <string.h>

#include "graph/state.h"

bool mr_index_add(index_list *list, uint32_t i) {
    size_t at = list->count;
    while (at > 0 && list->items[at - 1] >= i) at--;
    if (at < list->count && list->items[at] == i) return true;
    if (!mr_vec_reserve_one(list)) return false;
    memmove(list->items + at + 1, list->items + at, (list->count - at) * sizeof *list->items);
    list->items[at] = i;
    list->count++;
    return true;
}

mr_status mr_graph_new(const mr_caller *caller, mr_device *device, mr_graph **out_graph) {
    mr_graph *graph = *out_graph = calloc(1, sizeof *graph);
    if (!graph) return mr_no_memory("for a graph");
    graph->refs = 1;
    graph->machine = caller->machine;
    graph->epoch = caller->machine->epoch;
    graph->device = device;
    graph->begun = caller->where;
    return MR_OK;
}

static mr_status add_edges(mr_graph *graph, const index_list *after) {
    for (size_t i = 0; i < after->count; i++)
        if (!mr_vec_push(&graph->edges, after->items[i]))
            return mr_no_memory("for one more edge of a graph");
    return MR_OK;
}

mr_status mr_graph_append(mr_graph *graph, mr_command *command, const index_list *after) {
    graph_node n = {
        .command = command, .first = (uint32_t)graph->edges.count, .count = (uint32_t)after->count};
    mr_status status = add_edges(graph, after);
    if (!status && !mr_vec_push(&graph->nodes, n))
        status = mr_no_memory("for one more node of a graph");
    if (status) {
        graph->edges.count = n.first;
        mr_command_release(command);
        return status;
    }
    graph->has_calls |= captured_call_of(command) != NULL;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        mr_storage_add_handle(command->operands[i].tensor->storage);
        mr_graph_pool_hold(graph, command->operands[i].tensor->storage);
    }
    return MR_OK;
}

static bool uses(const mr_command *command, const mr_storage *storage) {
    for (uint32_t i = 0; i < command->operand_count; i++)
        if (command->operands[i].tensor->storage == storage) return true;
    return false;
}

mr_status mr_graph_find_unordered(const mr_graph *graph, const index_list *after,
                                  const mr_storage *storage, const mr_command **out_command) {
    *out_command = NULL;
    if (!graph->nodes.count) return MR_OK;
    bool *before = calloc(graph->nodes.count, sizeof *before);
    if (!before) return mr_no_memory("to look through a graph");
    for (size_t i = 0; i < after->count; i++) before[after->items[i]] = true;
    for (size_t i = graph->nodes.count;
         i-- > 0 && !*out_command;) { /* edges lead to earlier nodes */
        const graph_node *n = &graph->nodes.items[i];
        if (!before[i] && uses(n->command, storage)) *out_command = n->command;
        for (uint32_t k = 0; k < n->count && before[i]; k++)
            before[graph->edges.items[n->first + k]] = true;
    }
    free(before);
    return MR_OK;
}

graph_memory *mr_graph_find_memory(const mr_graph *graph, const mr_storage *storage) {
    for (size_t i = 0; i < graph->memory.count; i++)
        if (graph->memory.items[i].storage == storage) return &graph->memory.items[i];
    return NULL;
}

/* Without memory for the note, memory of a pending launch may be freed, as without record_stream. */
void mr_node_put(mr_command *node, mr_stream *stream, mr_site where) {
    mr_stream_retain(stream);
    mr_stream_release(node->placed);
    node->placed = stream;
    node->launched = where;
}

void mr_graph_note_use(mr_graph *graph, mr_stream *stream) {
    for (size_t i = 0; i < graph->used_by.count; i++)
        if (graph->used_by.items[i] == stream) return;
    if (mr_vec_push(&graph->used_by, stream)) mr_stream_retain(stream);
}

void mr_graph_retain(mr_graph *graph) {
    graph->refs++;
}

/* The last handle frees device memory in the order of its own stream. That must come after the last launch: R33 says so
 * to every observer. Others may still have handles, and drop theirs before the launch has ended. */
static void let_go(const mr_graph *graph, mr_storage *storage) {
    for (size_t i = 0; i < graph->used_by.count; i++)
        mr_error_destroy(mr_storage_record_stream(storage, graph->used_by.items[i]));
    mr_graph_pool_unhold(graph, storage);
    mr_storage_drop_handle(storage);
}

static void free_nodes(mr_graph *graph) {
    for (size_t i = graph->nodes.count; i-- > 0;) {
        mr_command *command = graph->nodes.items[i].command;
        for (uint32_t k = 0; k < command->operand_count; k++)
            let_go(graph, command->operands[k].tensor->storage);
        mr_command_release(command);
    }
    mr_vec_free(&graph->nodes);
    mr_vec_free(&graph->edges);
}

static void free_memory(mr_graph *graph) {
    for (size_t i = 0; i < graph->memory.count; i++) {
        mr_storage *storage = graph->memory.items[i].storage;
        bool was_freed = storage->freed, is_last = mr_graph_pool_leave(graph, storage);
        if (is_last) storage->graph = NULL;
        /* that flag was about the script's tensor; now the memory is freed */
        storage->freed = false;
        let_go(graph, storage);
        if (!is_last) storage->freed = was_freed;
        mr_storage_release(storage);
    }
    mr_vec_free(&graph->memory);
}

void mr_graph_release(mr_graph *graph) {
    if (!graph || --graph->refs) return;
    mr_graph_pool_forget(graph);
    free_nodes(graph);
    free_memory(graph);
    mr_event_release(graph->memory_ready);
    mr_stream_release(graph->memory_stream);
    while (graph->used_by.count) mr_stream_release(mr_vec_pop(&graph->used_by));
    mr_vec_free(&graph->used_by);
    mr_graph_pool_release(graph->pool);
    free(graph);
}

bool mr_graph_has_calls(const mr_graph *graph) {
    return graph->has_calls;
}

uint32_t mr_graph_count(const mr_graph *graph) {
    return (uint32_t)graph->nodes.count;
}

uint32_t mr_graph_edge_count(const mr_graph *graph) {
    return (uint32_t)graph->edges.count;
}

mr_graph_node mr_graph_node_at(const mr_graph *graph, uint32_t i) {
    const graph_node *n = &graph->nodes.items[i];
    return (mr_graph_node){n->command, graph->edges.items + n->first, n->count};
}

uint64_t mr_graph_number(const mr_graph *graph) {
    return mr_shown_number(&graph->machine->numbers.graphs, graph->id);
}

mr_site mr_graph_begun(const mr_graph *graph) {
    return graph->begun;
}

uint64_t mr_graph_bytes(const mr_graph *graph) {
    return graph->memory_bytes;
}

mr_device *mr_graph_device(const mr_graph *graph) {
    return graph->device;
}
