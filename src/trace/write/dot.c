/* The order of a program as a graph for Graphviz: the order by the rules, whatever the times were. Operations are in a
 * column for each stream; an edge that an event or the default stream makes is labelled. Allocations and queries, which
 * have no visible order, are left out. */
#include "trace/draw/formats.h"

#include <stdlib.h>

#include "base/text.h"
#include "model/meeting.h"
#include "trace/draw/lanes.h"
#include "trace/order.h"

typedef struct {
    const mr_trace *trace;
    mr_sink *sink;
    mr_trace_order order;
    uint32_t *last;                          /* of each stream: its last node so far */
    uint32_t last_wait[MR_MEETING_MOST + 1]; /* of the host, and of that of each rank */
    /* of each stream: the wait of the host that its last node was drawn after */
    uint32_t *after_wait;
} graph;

static bool is_node(const mr_span *span) {
    switch (span->kind) {
    case MR_COMMAND_OP:
    case MR_COMMAND_COPY:
    case MR_COMMAND_RECORD:
    case MR_COMMAND_WAIT:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_FAULT: return span->stream != MR_TRACE_NONE;
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE: MR_HOST_LIST(MR_COMMAND_CASE) MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    return mr_kind_waits(span->kind);
}

static const mr_span *span_at(const graph *g, uint32_t i) {
    return &mr_trace_spans(g->trace)[i];
}

/* A text inside a label: DOT's own escapes are those of \ and ", and a line ends with \n. */
static void put_label_text(graph *g, const char *text) {
    mr_buffer shown = {0};
    mr_text_put(&shown, text);
    if (shown.failed) g->sink->failed = true;
    for (size_t i = 0; i < shown.size; i++) {
        if (shown.data[i] == '"' || shown.data[i] == '\\') mr_sink_text(g->sink, "\\");
        mr_sink_bytes(g->sink, &shown.data[i], 1);
    }
    mr_buffer_free(&shown);
}

static void write_node(graph *g, uint32_t i) {
    const mr_span *span = span_at(g, i);
    bool is_work = mr_span_is_work(span);
    mr_buffer place = {0}, object = {0};
    mr_trace_put_place(&place, g->trace, span->where);
    mr_sink_format(g->sink, "    n%u [label=\"", i);
    put_label_text(g, span->name);
    if (!is_work && span->kind != MR_COMMAND_HOST_FUNCTION) {
        mr_trace_put_object(&object, g->trace, span);
        mr_sink_text(g->sink, "\\n");
        put_label_text(g, object.data ? object.data : "");
    }
    if (place.size) {
        mr_sink_text(g->sink, "\\n");
        put_label_text(g, place.data);
    }
    mr_sink_text(g->sink, is_work                     ? "\"];\n"
                          : mr_kind_waits(span->kind) ? "\", shape=octagon];\n"
                                                      : "\", shape=plain];\n");
    mr_buffer_free(&place);
    mr_buffer_free(&object);
}

/* The nodes of a stream; without a stream, those of the host of that rank. */
static void write_column(graph *g, uint32_t stream, int rank) {
    bool is_open = false, of_host = stream == MR_TRACE_NONE;
    mr_buffer title = {0};
    if (of_host) mr_trace_put_host(&title, rank);
    else if (mr_trace_facts_of(g->trace)->ranks > 1) mr_trace_put_stream(&title, g->trace, stream);
    else mr_buffer_puts(&title, mr_trace_stream_at(g->trace, stream)->name);
    if (title.failed) g->sink->failed = true;
    for (uint32_t i = 0; i < mr_trace_count(g->trace); i++) {
        const mr_span *span = span_at(g, i);
        bool on_host = mr_kind_waits(span->kind);
        if (!is_node(span) || (on_host ? MR_TRACE_NONE : span->stream) != stream) continue;
        if (of_host && mr_trace_rank_of(g->trace, span) != rank) continue;
        if (!is_open) {
            mr_sink_format(g->sink, "  subgraph cluster_%u", stream);
            if (of_host && rank >= 0) mr_sink_format(g->sink, "_%d", rank);
            mr_sink_text(g->sink, " {\n    label=\"");
            put_label_text(g, title.data ? title.data : "");
            mr_sink_text(g->sink, "\";\n");
        }
        is_open = true;
        write_node(g, i);
    }
    if (is_open) mr_sink_text(g->sink, "  }\n");
    mr_buffer_free(&title);
}

static void write_edge(graph *g, uint32_t from, uint32_t to, const char *style) {
    mr_sink_format(g->sink, "  n%u -> n%u%s;\n", from, to, style);
}

/* An edge from a span without a node becomes one from the node before it in its stream. */
static uint32_t node_at_or_before(const graph *g, uint32_t i) {
    uint32_t stream = span_at(g, i)->stream;
    if (is_node(span_at(g, i))) return i;
    while (i-- > 0)
        if (span_at(g, i)->stream == stream && is_node(span_at(g, i)) &&
            !mr_kind_waits(span_at(g, i)->kind))
            return i;
    return MR_TRACE_NONE;
}

static void write_edges_to(graph *g, uint32_t i) {
    const mr_span *span = span_at(g, i);
    bool on_host = mr_kind_waits(span->kind);
    if (!on_host && g->last[span->stream] != MR_TRACE_NONE)
        write_edge(g, g->last[span->stream], i, "");
    for (size_t k = g->order.first[i]; k < g->order.first[i + 1]; k++) {
        const mr_trace_edge *edge = &g->order.edges[k];
        if (edge->rule == MR_CAUSE_STREAM || edge->from == i) continue;
        uint32_t from = node_at_or_before(g, edge->from);
        if (from == MR_TRACE_NONE) continue;
        const char *style = on_host                        ? " [style=dashed]"
                            : edge->rule == MR_CAUSE_EVENT ? " [color=\"#2f6fed\", penwidth=2]"
                            : edge->rule == MR_CAUSE_DEFAULT_STREAM
                                ? " [color=\"#8a6508\", label=\"default stream\"]"
                                : " [color=\"#667085\"]";
        write_edge(g, from, i, style);
    }
    /* The host's wait comes before all that is submitted after it: the first of each stream stands for the rest. */
    uint32_t *own_wait = &g->last_wait[mr_trace_rank_of(g->trace, span) + 1];
    uint32_t wait = *own_wait != MR_TRACE_NONE ? *own_wait : g->last_wait[0];
    if (on_host) {
        if (wait != MR_TRACE_NONE) write_edge(g, wait, i, " [style=dashed]");
        *own_wait = i;
    } else {
        if (wait != g->after_wait[span->stream]) {
            write_edge(g, wait, i, " [style=dashed]");
            g->after_wait[span->stream] = wait;
        }
        g->last[span->stream] = i;
    }
}

static void write_graph(graph *g) {
    size_t streams = mr_trace_stream_count(g->trace);
    mr_sink_text(g->sink, "digraph program {\n  fontname=\"sans-serif\";\n  node [shape=box, "
                          "style=rounded, fontname=\"sans-serif\"];\n"
                          "  edge [fontname=\"sans-serif\", fontsize=10];\n");
    int ranks = mr_trace_facts_of(g->trace)->ranks > 1 ? MR_MEETING_MOST : 0;
    for (int rank = -1; rank < ranks; rank++) write_column(g, MR_TRACE_NONE, rank);
    for (uint32_t i = 0; i < streams; i++) write_column(g, i, -1);
    for (uint32_t i = 0; i < mr_trace_count(g->trace); i++)
        if (is_node(span_at(g, i))) write_edges_to(g, i);
    mr_sink_text(g->sink, "}\n");
}

mr_status mr_write_dot(const mr_writing *writing, mr_sink *sink) {
    const mr_trace *trace = writing->trace;
    size_t streams = mr_trace_stream_count(trace);
    graph g = {.trace = trace, .sink = sink};
    for (int k = 0; k <= MR_MEETING_MOST; k++) g.last_wait[k] = MR_TRACE_NONE;
    g.last = malloc((streams + 1) * sizeof *g.last);
    g.after_wait = malloc((streams + 1) * sizeof *g.after_wait);
    mr_status status = MR_OK;
    if (!g.last || !g.after_wait) status = mr_no_memory("for %zu streams", streams);
    for (size_t i = 0; !status && i < streams; i++) g.last[i] = g.after_wait[i] = MR_TRACE_NONE;
    if (!status)
        status =
            mr_trace_order_make(mr_trace_spans(trace), mr_trace_count(trace),
                                streams ? mr_trace_stream_at(trace, 0) : NULL, streams, &g.order);
    if (!status) {
        write_graph(&g);
        mr_trace_order_free(&g.order);
    }
    free(g.last);
    free(g.after_wait);
    return status;
}
