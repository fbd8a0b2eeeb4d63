/* Memory that is allocated and freed while a stream captures (R44): it belongs to the graph, and has one address in all
 * launches. It is allocated in the order of a stream of the graph, and the first launch comes after that.
 *
 * Easiest to break: a finalizer may end the capture while memory is looked for. */
#include "base/text.h"
#include "graph/state.h"

mr_status mr_capture_alloc_stream(const mr_caller *caller, mr_stream *stream,
                                  mr_stream **out_stream) {
    mr_capture *capture = capture_of(stream);
    mr_graph *graph = capture->graph;
    *out_stream = NULL;
    MR_TRY(mr_capture_usable(capture, "alloc"));
    if (stream->device != graph->device)
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "alloc: the capture began on device %d, and memory of device %d was asked "
                       "for: allocate it before the capture",
                       graph->device->index, stream->device->index);
    mr_stream_options options = {.nonblocking = true, .name = "graph memory"};
    if (!graph->memory_stream)
        MR_TRY(mr_stream_create(caller, graph->device, &options, &graph->memory_stream));
    *out_stream = graph->memory_stream;
    return MR_OK;
}

static mr_status memory_node(const mr_caller *caller, mr_command_id kind, captured_stream *s,
                             mr_storage *storage) {
    mr_command *command;
    const char *name = kind == MR_COMMAND_ALLOC ? "alloc" : "free";
    MR_TRY(mr_command_create(caller, kind, s->stream, name, 0, &command));
    command->u.storage = storage;
    mr_storage_retain(storage);
    return mr_capture_add_node(s, command);
}

mr_status mr_capture_adopt(const mr_caller *caller, mr_stream *stream, mr_storage *storage) {
    captured_stream *s = stream->capture;
    if (!s) /* a finalizer ended the capture while memory was looked for */
        return mr_fail(MR_CODE_ILLEGAL_STATE, "alloc: the capture ended meanwhile");
    mr_graph *graph = s->capture->graph;
    graph_memory memory = {.storage = storage};
    if (!mr_vec_reserve_one(&graph->memory)) return mr_capture_no_memory("an allocation");
    MR_TRY(mr_graph_pool_reserve(graph));
    MR_TRY(memory_node(caller, MR_COMMAND_ALLOC, s, storage));
    mr_graph_pool_add(graph, storage);
    mr_storage_retain(storage);
    mr_storage_add_handle(storage);
    mr_graph_pool_hold(graph, storage);
    storage->graph = graph;
    graph->memory.items[graph->memory.count++] = memory;
    graph->memory_bytes += storage->bytes;
    return MR_OK;
}

/* From the pool of the graph. */
mr_status mr_capture_reuse(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                           mr_storage **out_storage) {
    mr_capture *capture = capture_of(stream);
    MR_TRY(mr_capture_usable(capture, "alloc"));
    if (stream->device != capture->graph->device) return MR_OK;
    mr_storage *found = mr_graph_pool_find(capture->graph, bytes);
    if (!found) return MR_OK;
    MR_TRY(mr_capture_adopt(caller, stream, found));
    mr_storage_retain(found);
    mr_storage_add_handle(found);
    mr_name_keep(&found->name, NULL);
    *out_storage = found;
    return MR_OK;
}

static mr_status not_of_the_graph(mr_storage *storage, const mr_stream *stream) {
    char on[100], what[260];
    mr_text_format(what, sizeof what, "%s captures, and %s was allocated outside of the capture",
                   mr_stream_describe(stream, on, sizeof on),
                   storage->name ? mr_name_text(storage->name) : "the tensor");
    return mr_capture_error(MR_CODE_INVALID_ARGUMENT, "free", what,
                            capture_of(stream)->graph->begun,
                            "Free it after the capture, or allocate it inside.");
}

/* The stream that captures, of the graph that owns the memory; NULL: the capture is over. */
static captured_stream *stream_of_memory(mr_graph *graph, mr_storage *storage) {
    mr_capture *capture = capture_by_id(graph->machine, graph->id);
    if (!capture) return NULL;
    for (size_t i = graph->nodes.count; i-- > 0;) {
        const mr_command *command = graph->nodes.items[i].command;
        if (command->kind == MR_COMMAND_ALLOC && command->u.storage == storage)
            return command->stream->capture;
    }
    return NULL;
}

/* CUDA leaves such a use undefined (R44), and a launch would not show the mistake: a graph's memory has no other user
 * meanwhile. */
static mr_status check_uses(const captured_stream *s, const mr_storage *storage) {
    const mr_graph *graph = s->capture->graph;
    const mr_command *use;
    MR_TRY(mr_graph_find_unordered(graph, &s->frontier, storage, &use));
    if (!use) return MR_OK;
    char what[400], remedy[300], user[100], own[100];
    mr_text_format(what, sizeof what,
                   "`%.60s` at %.80s:%d uses %s on %s, and nothing orders it before the free",
                   use->name, use->where.file ? use->where.file : "?", use->where.line,
                   storage->name ? mr_name_text(storage->name) : "the tensor",
                   mr_stream_describe(use->stream, user, sizeof user));
    mr_text_format(remedy, sizeof remedy, "Let %s wait for it before: wait_stream",
                   mr_stream_describe(s->stream, own, sizeof own));
    return mr_capture_error(MR_CODE_INVALID_ARGUMENT, "free", what, graph->begun, remedy);
}

mr_status mr_capture_free(const mr_caller *caller, mr_storage *storage, mr_stream *stream,
                          bool at_once, bool *out_taken) {
    mr_graph *graph = storage->graph;
    if (at_once && caller->machine->captures.open)
        MR_TRY(mr_capture_check_host(caller, MR_ASK_UNSAFE, "free", NULL, NULL, NULL));
    mr_stream *on = stream ? stream : storage->stream;
    if (!graph) return on->capture ? not_of_the_graph(storage, on) : MR_OK;
    *out_taken = true;
    graph_memory *memory = mr_graph_find_memory(graph, storage);
    captured_stream *s = stream && stream->capture ? stream->capture : NULL;
    if (s && s->capture->graph != graph) return not_of_the_graph(storage, stream);
    if (!stream) s = stream_of_memory(graph, storage);
    if (s) {
        MR_TRY(mr_capture_usable(s->capture, "free"));
        MR_TRY(check_uses(s, storage));
        MR_TRY(memory_node(caller, MR_COMMAND_FREE, s, storage));
        memory->freed = true;
    }
    storage->freed = storage->recorded_free = true;
    storage->freed_where = caller->where;
    return MR_OK;
}
