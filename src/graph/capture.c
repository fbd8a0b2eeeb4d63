/* Captures: their beginning and end (R35, R36, R41), and the calls that the model makes in between. capture_stream.c,
 * capture_event.c and capture_memory.c implement these calls; rules.c refuses the others.
 *
 * Easiest to break: whatever way a capture ends, all its streams can be used as before. */
#include <stdlib.h>

#include "base/text.h"
#include "graph/state.h"
#include "model/hosts.h"

/* ---- the rules, as the model asks for them */

/* Allocations and frees of the script have calls of their own, so those that arrive here come from the collector. */
static mr_status submit(mr_command *command, bool *out_taken) {
    captured_stream *s = command->stream->capture;
    if (command->kind == MR_COMMAND_FREE) return MR_OK;
    if (!s) return mr_capture_check_live(command);
    MR_TRY(mr_capture_usable(s->capture, command->name));
    *out_taken = true;
    mr_command_retain(command); /* the caller releases it when this fails */
    mr_status status = mr_capture_add_node(s, command);
    if (!status) mr_command_release(command);
    return status;
}

static uint64_t draw(mr_stream *stream) {
    return capture_of(stream)->graph->draws++;
}

static const mr_stream *origin(const mr_device *device, mr_site *out_begun) {
    for (const mr_capture *c = captures_of(device->machine)->first; c; c = c->next) {
        if (c->graph->device != device) continue;
        *out_begun = c->graph->begun;
        return c->streams.items[0]->stream;
    }
    return NULL;
}

static void abandon_all(mr_machine *machine) {
    while (captures_of(machine)->first) mr_capture_end(captures_of(machine)->first);
}

static void close_captures(mr_machine *machine) {
    abandon_all(machine);
    free(machine->captures.all);
    machine->captures.all = NULL;
}

static const mr_capture_rules rules = {
    .submit = submit,
    .record = mr_capture_record,
    .wait = mr_capture_wait,
    .host = mr_capture_check_host,
    .reuse = mr_capture_reuse,
    .alloc_stream = mr_capture_alloc_stream,
    .allocated = mr_capture_adopt,
    .free = mr_capture_free,
    .draw = draw,
    .origin = origin,
    .forget_event = mr_capture_forget_event,
    .abandon = abandon_all,
    .close = close_captures,
};

const mr_capture_rules *mr_capture_rules_usual(void) {
    return &rules;
}

/* ---- begin and end */

mr_status mr_captures_prepare(mr_machine *machine) {
    if (machine->captures.all) return MR_OK;
    captures *all = calloc(1, sizeof *all);
    if (!all) return mr_capture_no_memory("the state");
    all->base.rules = &rules;
    machine->captures.all = &all->base;
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
    if (!capture) return mr_capture_no_memory("the record");
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
    capture->graph->id = ++machine->captures.next_id;
    capture->next = all->first;
    all->first = capture;
    machine->captures.open++;
    status = mr_capture_join(capture, stream, &(index_list){0});
    if (status) mr_capture_end(capture);
    return status;
}

/* Collects the script's garbage, so that memory of the pool which only garbage refers to can be used again. A finalizer
 * may close the stream. */
static mr_status drop_garbage(mr_machine *machine, const mr_stream *stream) {
    mr_machine_collect(machine);
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
    if (!joined) return mr_capture_no_memory("the end");
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

static mr_status unjoined(const mr_capture *capture, const char *name, uint32_t at) {
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
    return mr_capture_error(MR_CODE_CAPTURE_UNJOINED, name, what, capture->graph->begun, cure);
}

static mr_status check_finish(const mr_capture *capture, const char *name) {
    uint32_t at;
    MR_TRY(mr_capture_usable(capture, name));
    MR_TRY(find_unjoined(capture, &at));
    return at == UINT32_MAX ? MR_OK : unjoined(capture, name, at);
}

/* Records the event for which a launch waits, so that its memory is allocated on the device before it. */
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
    mr_status status = check_finish(capture, caller->name ? caller->name : "finish");
    mr_graph *graph = capture->graph;
    mr_graph_retain(graph);
    mr_capture_end(capture);
    captures_of(caller->machine)->ended = caller->where;
    captures_of(caller->machine)->ended_on = stream->id;
    if (!status) status = record_memory(caller, graph);
    if (status) mr_graph_release(graph);
    else *out_graph = graph;
    return status;
}

void mr_capture_abandon(mr_stream *stream) {
    if (stream->capture && !is_holding(stream->device->machine)) mr_capture_end(capture_of(stream));
}

mr_status mr_capture_end_all(mr_machine *machine) {
    char on[100], what[200];
    if (!machine->captures.open || is_holding(machine)) return MR_OK;
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
