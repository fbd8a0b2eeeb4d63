/* Capturing streams, and their nodes (R35, R36).
 *
 * Each capturing stream has a frontier: the nodes that its next one comes after. A node replaces the frontier of its
 * stream. capture_event.c copies frontiers from stream to stream.
 *
 * Easiest to break: a call that fails must leave the frontier as it was. */
#include <stdlib.h>

#include "graph/state.h"

mr_status mr_capture_no_memory(const char *what) {
    return mr_no_memory("for %s of a capture", what);
}

/* ---- streams that capture */

static void free_stream(captured_stream *s) {
    s->stream->capture = NULL;
    mr_vec_free(&s->frontier);
    mr_stream_release(s->stream);
    free(s);
}

mr_status mr_capture_join(mr_capture *capture, mr_stream *stream, const index_list *frontier) {
    captured_stream *s = calloc(1, sizeof *s);
    if (!s) return mr_capture_no_memory("a stream");
    *s = (captured_stream){.capture = capture, .stream = stream};
    mr_stream_retain(stream);
    bool ok = true;
    for (size_t i = 0; i < frontier->count && ok; i++)
        ok = mr_index_add(&s->frontier, frontier->items[i]);
    if (!ok || !mr_vec_push(&capture->streams, s)) {
        free_stream(s);
        return mr_capture_no_memory("a stream");
    }
    stream->capture = s;
    return MR_OK;
}

void mr_capture_end(mr_capture *capture) {
    mr_machine *machine = capture->graph->machine;
    mr_capture **at = &captures_of(machine)->first;
    while (*at != capture) at = &(*at)->next;
    *at = capture->next;
    machine->captures.open--;
    while (capture->streams.count) free_stream(mr_vec_pop(&capture->streams));
    mr_vec_free(&capture->streams);
    mr_graph *graph = capture->graph;
    free(capture);
    mr_graph_pool_end(graph);
    mr_graph_release(graph);
}
/* ---- nodes */

mr_status mr_capture_add_node(captured_stream *s, mr_command *command) {
    mr_graph *graph = s->capture->graph;
    uint32_t at = (uint32_t)graph->nodes.count;
    if (!mr_vec_reserve_one(&s->frontier)) {
        mr_command_release(command);
        return mr_capture_no_memory("a node");
    }
    MR_TRY(mr_graph_append(graph, command, &s->frontier));
    s->frontier.count = 0;
    mr_index_add(&s->frontier, at);
    return MR_OK;
}
