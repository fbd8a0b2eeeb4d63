/* Captures: what capturing streams are given becomes nodes, and events between them edges (R35, R36, R41, R44).
 *
 * Each capturing stream has a frontier: the nodes that its next one comes after. A node replaces the frontier of its stream,
 * an event keeps a copy of it, and a wait adds that copy to another stream's.
 *
 * Easiest to break: a call that fails must leave the frontier as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "graph/state.h"

static mr_status no_memory(const char *what) {
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for %s of a capture", what);
}

/* ---- streams that capture */

static void free_stream(captured_stream *s) {
    s->stream->capture = NULL;
    mr_vec_free(&s->frontier);
    mr_stream_release(s->stream);
    free(s);
}

static mr_status join(mr_capture *capture, mr_stream *stream, const index_list *frontier) {
    captured_stream *s = calloc(1, sizeof *s);
    if (!s) return no_memory("a stream");
    *s = (captured_stream){.capture = capture, .stream = stream};
    mr_stream_retain(stream);
    bool ok = true;
    for (size_t i = 0; i < frontier->count && ok; i++)
        ok = mr_index_add(&s->frontier, frontier->items[i]);
    if (!ok || !mr_vec_push(&capture->streams, s)) {
        free_stream(s);
        return no_memory("a stream");
    }
    stream->capture = s;
    return MR_OK;
}

/* Takes it out of the list; all its streams can be used as before. */
static void end(mr_capture *capture) {
    mr_machine *machine = capture->graph->machine;
    mr_capture **at = &captures_of(machine)->first;
    while (*at != capture) at = &(*at)->next;
    *at = capture->next;
    machine->capturing--;
    while (capture->streams.count) free_stream(mr_vec_pop(&capture->streams));
    mr_vec_free(&capture->streams);
    mr_graph *graph = capture->graph;
    free(capture);
    mr_graph_pool_end(graph);
    mr_graph_release(graph);
}

/* ---- nodes */

/* Takes over the reference, also on failure. */
static mr_status add_node(captured_stream *s, mr_command *command) {
    mr_graph *graph = s->capture->graph;
    uint32_t at = (uint32_t)graph->nodes.count;
    if (!mr_vec_reserve_one(&s->frontier)) {
        mr_command_release(command);
        return no_memory("a node");
    }
    MR_TRY(mr_graph_append(graph, command, &s->frontier));
    s->frontier.count = 0;
    mr_index_add(&s->frontier, at);
    return MR_OK;
}

/* Memory comes and goes by the model's own calls, and not by nodes of this kind: what arrives here is the collector's. */
static mr_status submit(mr_command *command, bool *out_taken) {
    captured_stream *s = command->stream->capture;
    if (command->kind == MR_COMMAND_FREE) return MR_OK;
    if (!s) return mr_capture_check_live(command);
    MR_TRY(mr_capture_usable(s->capture, command->name));
    *out_taken = true;
    mr_command_retain(command); /* the caller releases it when this fails */
    mr_status status = add_node(s, command);
    if (!status) mr_command_release(command);
    return status;
}

static uint64_t draw(mr_stream *stream) {
    return capture_of(stream)->graph->draws++;
}

/* ---- events: R36 */

static void forget_event(mr_event *event) {
    captured_record *record = event->captured;
    event->captured = NULL;
    mr_vec_free(&record->nodes);
    free(record);
}

static mr_status record(const mr_caller *caller, mr_event *event, mr_stream *stream) {
    captured_stream *s = stream->capture;
    (void)caller;
    MR_TRY(mr_capture_usable(s->capture, "record_event"));
    captured_record *made = calloc(1, sizeof *made);
    bool ok = made != NULL;
    for (size_t i = 0; i < s->frontier.count && ok; i++)
        ok = mr_index_add(&made->nodes, s->frontier.items[i]);
    if (!ok) {
        if (made) mr_vec_free(&made->nodes);
        free(made);
        return no_memory("an event");
    }
    made->capture = s->capture->graph->id;
    if (event->captured) forget_event(event);
    event->captured = made;
    event->device = stream->device;
    return MR_OK;
}

/* wait_stream and copies make one: the script has none that could be named. */
static bool is_of_this_call(const mr_caller *caller, const mr_event *event) {
    return !event->name && event->where.file && event->where.file == caller->where.file &&
           event->where.line == caller->where.line;
}

static mr_status crosses(const mr_caller *caller, mr_capture *capture, const mr_stream *stream,
                         const mr_event *event) {
    char on[100], name[100], what[260];
    mr_stream_describe(stream, on, sizeof on);
    if (event->device && event->device != stream->device)
        mr_text_format(what, sizeof what,
                       "%s captures, and the call waits for device %d, where no stream captures (a "
                       "copy between devices does)",
                       on, event->device->index);
    else if (is_of_this_call(caller, event))
        mr_text_format(what, sizeof what,
                       "%s captures, and the stream that it waits for does not: that work is "
                       "outside of the capture",
                       on);
    else
        mr_text_format(what, sizeof what, "%s captures, and %s was recorded outside of the capture",
                       on, mr_event_describe(event, name, sizeof name));
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_ISOLATION, "wait_event", what,
                             "Let the stream on which the graph is launched wait for it, or record "
                             "it inside of the capture.");
}

static mr_status merges(const mr_caller *caller, mr_capture *capture, mr_capture *other,
                        const mr_stream *stream, const mr_event *event) {
    char on[100], name[100], what[320];
    mr_text_format(
        what, sizeof what,
        "%s captures, and %s belongs to another capture, which began at %.80s:%d",
        mr_stream_describe(stream, on, sizeof on), mr_event_describe(event, name, sizeof name),
        other->graph->begun.file ? other->graph->begun.file : "?", other->graph->begun.line);
    return mr_capture_refuse(capture, caller, MR_CODE_CAPTURE_MERGE, "wait_event", what,
                             "Capture both parts in one capture, or launch one graph after the "
                             "other.");
}

static mr_status ended(const mr_event *event) {
    char name[100], what[200];
    mr_text_format(what, sizeof what, "%s was recorded in a capture that has ended",
                   mr_event_describe(event, name, sizeof name));
    return mr_capture_error(MR_CODE_CAPTURE_ISOLATION, "wait_event", what, (mr_site){0},
                            "Record an event on the stream on which the graph was launched.");
}

static mr_status wait(const mr_caller *caller, mr_stream *stream, mr_event *event,
                      bool *out_taken) {
    captured_stream *s = stream->capture;
    const captured_record *found = event->captured;
    mr_capture *capture = s ? s->capture : NULL;
    mr_capture *other = found ? capture_by_id(caller->machine, found->capture) : NULL;
    if (capture) MR_TRY(mr_capture_usable(capture, "wait_event"));
    if (other) MR_TRY(mr_capture_usable(other, "wait_event"));
    *out_taken = true;
    if (capture && !found) /* R13: never recorded, it holds nobody up */
        return event->record_seq ? crosses(caller, capture, stream, event) : MR_OK;
    if (capture && !other) return crosses(caller, capture, stream, event);
    if (!other) return ended(event);
    if (capture && capture != other) return merges(caller, capture, other, stream, event);
    if (!capture && stream->kind == MR_STREAM_LEGACY)
        return mr_capture_refuse(other, caller, MR_CODE_CAPTURE_IMPLICIT, "wait_event",
                                 "the default stream cannot be captured",
                                 "Let another stream wait for the event.");
    if (!capture) return join(other, stream, &found->nodes);
    for (size_t i = 0; i < found->nodes.count; i++)
        if (!mr_index_add(&s->frontier, found->nodes.items[i])) return no_memory("a wait");
    return MR_OK;
}

mr_status mr_capture_external(const mr_caller *caller, mr_command_id kind, mr_event *event,
                              mr_stream *stream) {
    bool records = kind == MR_COMMAND_RECORD;
    MR_TRY(stop_holding(caller, records ? "record_event" : "wait_event"));
    if (!stream->capture)
        return records ? mr_event_record(caller, event, stream)
                       : mr_stream_wait_event(caller, stream, event);
    captured_stream *s = stream->capture;
    const char *name = records ? "record_event" : "wait_event";
    char text[100];
    mr_command *command;
    MR_TRY(mr_event_usable(event));
    MR_TRY(mr_capture_usable(s->capture, name));
    if (records && event->device && event->device != stream->device)
        return mr_fail(MR_CODE_INVALID_HANDLE, "record: %s belongs to device %d (R14)",
                       mr_event_describe(event, text, sizeof text), event->device->index);
    MR_TRY(mr_command_create(caller, kind, stream, name, 0, &command));
    mr_event_retain(event);
    command->u.event.event = event;
    return add_node(s, command);
}

/* ---- memory: R44 */

static mr_status alloc_stream(const mr_caller *caller, mr_stream *stream, mr_stream **out_stream) {
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
    return add_node(s, command);
}

static mr_status allocated(const mr_caller *caller, mr_stream *stream, mr_storage *storage) {
    captured_stream *s = stream->capture;
    if (!s) /* a finalizer ended the capture while memory was looked for */
        return mr_fail(MR_CODE_ILLEGAL_STATE, "alloc: the capture ended meanwhile");
    mr_graph *graph = s->capture->graph;
    graph_memory memory = {.storage = storage};
    if (!mr_vec_reserve_one(&graph->memory)) return no_memory("an allocation");
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
static mr_status reuse(const mr_caller *caller, uint64_t bytes, mr_stream *stream,
                       mr_storage **out_storage) {
    mr_capture *capture = capture_of(stream);
    MR_TRY(mr_capture_usable(capture, "alloc"));
    if (stream->device != capture->graph->device) return MR_OK;
    mr_storage *found = mr_graph_pool_find(capture->graph, bytes);
    if (!found) return MR_OK;
    MR_TRY(allocated(caller, stream, found));
    mr_storage_retain(found);
    mr_storage_add_handle(found);
    mr_name_keep(&found->name, NULL);
    *out_storage = found;
    return MR_OK;
}

mr_status mr_capture_adopt(const mr_caller *caller, mr_stream *stream, mr_storage *storage) {
    return allocated(caller, stream, storage);
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

/* CUDA leaves it undefined (R44), and no launch shows it: memory of a graph is used for nothing else meanwhile. */
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

static mr_status free_memory(const mr_caller *caller, mr_storage *storage, mr_stream *stream,
                             bool at_once, bool *out_taken) {
    mr_graph *graph = storage->graph;
    if (at_once && caller->machine->capturing)
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

/* ---- a graph in a graph */

static mr_status check_child(const mr_graph *graph) {
    if (!graph->memory.count) return MR_OK;
    return mr_fail(MR_CODE_NOT_SUPPORTED,
                   "launch: a graph that allocates memory cannot be a part of another one (R44): "
                   "allocate it before the capture");
}

/* A node as it was captured, once more: in another graph. */
static mr_status copy_node(const mr_caller *caller, const mr_command *from,
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
    if (mr_command_has(command, MR_PART_EVENT)) mr_event_retain(command->u.event.event);
    command->node = from;
    mr_command_retain(from);
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
        status = ok ? copy_node(caller, x->commands[i], &command) : no_memory("a graph");
        if (status) break;
        if (command->kind == MR_COMMAND_OP && command->u.op.row->family->draws)
            command->u.op.params.offset += into->draws;
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

/* ---- the rules, as the model asks for them */

static mr_status host(const mr_caller *caller, mr_capture_ask ask, const char *name,
                      mr_stream *stream, mr_event *event, mr_device *device) {
    return mr_capture_check_host(caller, ask, name, stream, event, device);
}

static void abandon_all(mr_machine *machine) {
    while (captures_of(machine)->first) end(captures_of(machine)->first);
}

static void close_captures(mr_machine *machine) {
    abandon_all(machine);
    free(machine->captures);
    machine->captures = NULL;
}

static const mr_capture_rules rules = {
    .submit = submit,
    .record = record,
    .wait = wait,
    .host = host,
    .reuse = reuse,
    .alloc_stream = alloc_stream,
    .allocated = allocated,
    .free = free_memory,
    .draw = draw,
    .forget_event = forget_event,
    .abandon = abandon_all,
    .close = close_captures,
};

const mr_capture_rules *mr_capture_rules_usual(void) {
    return &rules;
}

/* ---- begin and end */

mr_status mr_captures_prepare(mr_machine *machine) {
    if (machine->captures) return MR_OK;
    captures *all = calloc(1, sizeof *all);
    if (!all) return no_memory("the state");
    all->base.rules = &rules;
    machine->captures = &all->base;
    return MR_OK;
}

static mr_status check_begin(const mr_stream *stream) {
    char on[100], what[160];
    if (stream->kind == MR_STREAM_LEGACY)
        return mr_capture_error(MR_CODE_CAPTURE_UNSUPPORTED, "begin",
                                "the default stream cannot be captured", (mr_site){0},
                                "Capture on a stream of mr.stream().");
    if (!stream->capture) return MR_OK;
    mr_text_format(what, sizeof what, "%s captures already",
                   mr_stream_describe(stream, on, sizeof on));
    return mr_capture_error(MR_CODE_ILLEGAL_STATE, "begin", what, capture_of(stream)->graph->begun,
                            "End that capture first, or use another stream.");
}

static mr_status begin(const mr_caller *caller, mr_stream *stream,
                       const mr_capture_options *options) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_captures_prepare(machine));
    mr_capture *capture = calloc(1, sizeof *capture);
    if (!capture) return no_memory("the record");
    *capture = (mr_capture){.mode = options->mode, .thread = pthread_self()};
    mr_status status = mr_graph_new(caller, stream->device, &capture->graph);
    if (status) {
        free(capture);
        return status;
    }
    status = mr_graph_pool_begin(options->pool, capture->graph);
    if (status) {
        mr_graph_release(capture->graph);
        free(capture);
        return status;
    }
    capture->graph->keeps_memory = options->keeps_memory;
    captures *all = captures_of(machine);
    capture->graph->id = ++all->last_id;
    capture->next = all->first;
    all->first = capture;
    machine->capturing++;
    status = join(capture, stream, &(index_list){0});
    if (status) end(capture);
    return status;
}

/* What only garbage of the script refers to can be used again. A finalizer may close the stream. */
static mr_status drop_garbage(mr_machine *machine, const mr_stream *stream) {
    if (!machine->collect || machine->collecting) return MR_OK;
    machine->collecting = true;
    machine->collect(machine->hook_context);
    machine->collecting = false;
    return mr_stream_usable(stream);
}

mr_status mr_capture_begin(const mr_caller *caller, mr_stream *stream,
                           const mr_capture_options *options) {
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(stop_holding(caller, "capture"));
    if (options->pool) MR_TRY(drop_garbage(caller->machine, stream));
    MR_TRY(check_begin(stream));
    MR_TRY(mr_graph_pool_check(options, stream));
    return begin(caller, stream, options);
}

mr_status mr_capture_begin_held(const mr_caller *caller, mr_stream *stream) {
    return begin(caller, stream, &(mr_capture_options){.mode = MR_CAPTURE_RELAXED});
}

/* R36: all that was captured must come before the end of the origin. The first node that does not; UINT32_MAX: none. */
static mr_status find_unjoined(const mr_capture *capture, uint32_t *out_node) {
    const mr_graph *graph = capture->graph;
    const index_list *last = &capture->streams.items[0]->frontier;
    bool *joined = calloc(graph->nodes.count + 1, sizeof *joined);
    *out_node = UINT32_MAX;
    if (!joined) return no_memory("the end");
    for (size_t i = 0; i < last->count; i++) joined[last->items[i]] = true;
    for (uint32_t i = (uint32_t)graph->nodes.count; i-- > 0;) {
        const graph_node *n = &graph->nodes.items[i];
        if (!joined[i]) *out_node = i;
        for (uint32_t k = 0; k < n->count && joined[i]; k++)
            joined[graph->edges.items[n->first + k]] = true;
    }
    free(joined);
    return MR_OK;
}

static mr_status unjoined(const mr_capture *capture, uint32_t at) {
    const mr_command *command = capture->graph->nodes.items[at].command;
    char on[100], origin[100], what[300], cure[200];
    mr_stream_describe(command->stream, on, sizeof on);
    mr_stream_describe(capture->streams.items[0]->stream, origin, sizeof origin);
    mr_text_format(what, sizeof what,
                   "%s was forked from %s and not joined again: `%.60s` at %.100s:%d", on, origin,
                   command->name, command->where.file ? command->where.file : "?",
                   command->where.line);
    mr_text_format(cure, sizeof cure, "Let %s wait for %s before the end: wait_stream.", origin,
                   on);
    return mr_capture_error(MR_CODE_CAPTURE_UNJOINED, "finish", what, capture->graph->begun, cure);
}

static mr_status check_finish(const mr_capture *capture) {
    uint32_t at;
    MR_TRY(mr_capture_usable(capture, "finish"));
    MR_TRY(find_unjoined(capture, &at));
    return at == UINT32_MAX ? MR_OK : unjoined(capture, at);
}

/* What a launch waits for, so that its memory is there on the device. */
static mr_status record_memory(const mr_caller *caller, mr_graph *graph) {
    mr_event_options options = {0};
    mr_caller nobody = {.machine = caller->machine}; /* the record is on no line of the script */
    if (!graph->memory_stream) return MR_OK;
    MR_TRY(mr_event_create(caller, &options, &graph->memory_ready));
    return mr_event_record(&nobody, graph->memory_ready, graph->memory_stream);
}

static mr_status ended_already(const mr_stream *stream, mr_site where) {
    char on[100], what[260];
    mr_text_format(what, sizeof what,
                   "%s does not capture: the capture on it was ended at %.100s:%d",
                   mr_stream_describe(stream, on, sizeof on), where.file, where.line);
    return mr_capture_error(MR_CODE_ILLEGAL_STATE, "finish", what, (mr_site){0},
                            "End it once; mr.graph(fn) does that after `fn`.");
}

static mr_status not_the_origin(const mr_stream *stream) {
    const captured_stream *s = stream->capture;
    const captures *all = captures_of(stream->device->machine);
    char on[100], origin[100], what[260];
    mr_stream_describe(stream, on, sizeof on);
    if (!s && all && all->ended.file && all->ended_on == stream->id)
        return ended_already(stream, all->ended);
    if (!s) {
        mr_text_format(what, sizeof what, "%s does not capture", on);
        return mr_capture_error(MR_CODE_ILLEGAL_STATE, "finish", what, (mr_site){0},
                                "Begin a capture on it first: mr.graph.begin.");
    }
    mr_stream_describe(s->capture->streams.items[0]->stream, origin, sizeof origin);
    mr_text_format(what, sizeof what, "%s joined the capture, which began on %s", on, origin);
    return mr_capture_error(MR_CODE_ILLEGAL_STATE, "finish", what, s->capture->graph->begun,
                            "End it there.");
}

mr_status mr_capture_finish(const mr_caller *caller, mr_stream *stream, mr_graph **out_graph) {
    *out_graph = NULL;
    MR_TRY(mr_machine_ready(caller->machine));
    MR_TRY(mr_stream_usable(stream));
    MR_TRY(stop_holding(caller, "finish"));
    captured_stream *s = stream->capture;
    if (!s || s->capture->streams.items[0] != s) return not_the_origin(stream);
    mr_capture *capture = s->capture;
    if (capture->mode != MR_CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
        return mr_capture_error(MR_CODE_CAPTURE_WRONG_THREAD, "finish",
                                "another thread began the capture", capture->graph->begun,
                                "End it there, or begin it with mode=\"relaxed\".");
    mr_status status = check_finish(capture);
    mr_graph *graph = capture->graph;
    mr_graph_retain(graph);
    end(capture);
    captures_of(caller->machine)->ended = caller->where;
    captures_of(caller->machine)->ended_on = stream->id;
    if (!status) status = record_memory(caller, graph);
    if (status) mr_graph_release(graph);
    else *out_graph = graph;
    return status;
}

void mr_capture_abandon(mr_stream *stream) {
    if (stream->capture && !is_holding(stream->device->machine)) end(capture_of(stream));
}

mr_status mr_capture_end_all(mr_machine *machine) {
    char on[100], what[200];
    if (!machine->capturing || is_holding(machine)) return MR_OK;
    const mr_capture *first = captures_of(machine)->first;
    while (first->next) first = first->next;
    mr_text_format(what, sizeof what, "the capture on %s was not ended, so there is no graph of it",
                   mr_stream_describe(first->streams.items[0]->stream, on, sizeof on));
    mr_status status = mr_capture_error(MR_CODE_ILLEGAL_STATE, "capture", what, first->graph->begun,
                                        "End it with mr.graph.finish, or use mr.graph(fn).");
    abandon_all(machine);
    return status;
}

mr_capture_facts mr_capture_facts_of(const mr_stream *stream) {
    bool does = stream->capture && !is_holding(stream->device->machine);
    const mr_capture *capture = does ? capture_of(stream) : NULL;
    if (!capture) return (mr_capture_facts){0};
    return (mr_capture_facts){.capturing = true,
                              .invalidated = capture->invalidated,
                              .id = capture->graph->id,
                              .mode = capture->mode,
                              .begun = capture->graph->begun,
                              .origin = capture->streams.items[0]->stream,
                              .nodes = mr_graph_count(capture->graph),
                              .reason = capture->reason,
                              .reason_where = capture->reason_where};
}
