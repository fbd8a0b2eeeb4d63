/* The spans as a table, for other programs: CSV, a line a span, and JSON, an object a span. Both have the same columns,
 * whose list is the first line of the CSV. Times are in milliseconds; unknown values are empty, or null. */
#include "trace/draw/formats.h"

#include "trace/draw/lanes.h"

typedef enum {
#define COLUMNS(X)                                                                                 \
    X(seq)                                                                                         \
    X(kind)                                                                                        \
    X(name)                                                                                        \
    X(object)                                                                                      \
    X(stream)                                                                                      \
    X(device)                                                                                      \
    X(engine)                                                                                      \
    X(where)                                                                                       \
    X(call)                                                                                        \
    X(returned)                                                                                    \
    X(waited)                                                                                      \
    X(ready) X(start) X(finish) X(bytes) X(blocks) X(waits_for) X(held_by) X(holder) X(rank)
#define X(name) COLUMN_##name,
    COLUMNS(X)
#undef X
        COLUMN_COUNT
} column;

static const char *const titles[] = {
#define X(name) #name,
    COLUMNS(X)
#undef X
};

typedef struct {
    mr_sink *sink;
    bool is_json;
    int columns; /* without the last one, the rank, where the trace is not of several ranks */
} table;

static table table_of(const mr_writing *writing, mr_sink *sink, bool is_json) {
    bool has_ranks = mr_trace_facts_of(writing->trace)->ranks > 1;
    return (table){sink, is_json, has_ranks ? COLUMN_COUNT : COLUMN_rank};
}

static void put_text(const table *t, const char *text) {
    if (!text) mr_sink_text(t->sink, t->is_json ? "null" : "");
    else if (t->is_json) mr_sink_json(t->sink, text);
    else mr_sink_csv(t->sink, text);
}

static void put_number(const table *t, bool is_known, uint64_t value) {
    if (is_known) mr_sink_number(t->sink, value);
    else put_text(t, NULL);
}

static void put_time(const table *t, bool is_known, uint64_t time) {
    if (is_known) mr_sink_ms(t->sink, time);
    else put_text(t, NULL);
}

static void put_place(const table *t, mr_site where) {
    if (!where.file) {
        put_text(t, NULL);
        return;
    }
    mr_buffer text = {0};
    mr_buffer_printf(&text, "%s:%d", where.file, where.line);
    if (text.failed) t->sink->failed = true;
    put_text(t, text.data);
    mr_buffer_free(&text);
}

static void put_stream(const table *t, const mr_trace *trace, const mr_span *span, bool device) {
    bool is_known = span->stream != MR_TRACE_NONE;
    if (device)
        put_number(t, is_known,
                   is_known ? (uint64_t)mr_trace_stream_at(trace, span->stream)->device : 0);
    else put_text(t, is_known ? mr_trace_stream_at(trace, span->stream)->name : "host");
}

/* The number (seq) of another span. */
static void put_other(const table *t, const mr_trace *trace, uint32_t span) {
    bool is_known = span != MR_TRACE_NONE;
    put_number(t, is_known, is_known ? mr_trace_spans(trace)[span].seq : 0);
}

static void put_rank(const table *t, int rank) {
    put_number(t, rank >= 0, (uint64_t)rank);
}

static void put_column(const table *t, const mr_trace *trace, const mr_span *span, column which) {
    switch (which) {
    case COLUMN_seq: put_number(t, true, span->seq); break;
    case COLUMN_kind: put_text(t, mr_command_kinds[span->kind].name); break;
    case COLUMN_name: put_text(t, span->name); break;
    case COLUMN_object: put_text(t, span->object); break;
    case COLUMN_stream: put_stream(t, trace, span, false); break;
    case COLUMN_device: put_stream(t, trace, span, true); break;
    case COLUMN_engine: put_text(t, mr_engine_text(span->engine)); break;
    case COLUMN_where: put_place(t, span->where); break;
    case COLUMN_call: put_time(t, span->called, span->call); break;
    case COLUMN_returned: put_time(t, span->called, span->returned); break;
    case COLUMN_waited: put_time(t, span->called, span->waited); break;
    case COLUMN_ready: put_time(t, span->ran, span->ready); break;
    case COLUMN_start: put_time(t, span->ran, span->begin); break;
    case COLUMN_finish: put_time(t, span->ran, span->end); break;
    case COLUMN_bytes: put_number(t, span->bytes != 0, span->bytes); break;
    case COLUMN_blocks: put_number(t, span->blocks != 0, span->blocks); break;
    case COLUMN_waits_for: put_other(t, trace, span->record); break;
    case COLUMN_held_by: put_text(t, mr_cause_text(span->held_by)); break;
    case COLUMN_holder: put_other(t, trace, span->holder); break;
    case COLUMN_rank: put_rank(t, mr_trace_rank_of(trace, span)); break;
    case COLUMN_COUNT: break;
    }
}

mr_status mr_write_csv(const mr_writing *writing, mr_sink *sink) {
    const mr_trace *trace = writing->trace;
    const table t = table_of(writing, sink, false);
    for (int i = 0; i < t.columns; i++) mr_sink_format(sink, "%s%s", i ? "," : "", titles[i]);
    mr_sink_text(sink, "\r\n");
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        for (int k = 0; k < t.columns; k++) {
            if (k) mr_sink_bytes(sink, ",", 1);
            put_column(&t, trace, &mr_trace_spans(trace)[i], (column)k);
        }
        mr_sink_bytes(sink, "\r\n", 2);
    }
    return MR_OK;
}

static void write_facts(const table *t, const mr_trace *trace) {
    const mr_trace_facts *facts = mr_trace_facts_of(trace);
    const struct {
        const char *key, *text;
    } texts[] = {{"backend", facts->backend}, {"device", facts->device}, {"model", facts->model},
                 {"chooser", facts->chooser}, {"how", facts->how},       {"script", facts->script}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        mr_sink_format(t->sink, "  \"%s\": ", texts[i].key);
        put_text(t, texts[i].text);
        mr_sink_text(t->sink, ",\n");
    }
    mr_sink_text(t->sink, "  \"duration\": ");
    mr_sink_ms(t->sink, facts->duration);
    mr_sink_text(t->sink, ",\n  \"forgotten\": ");
    mr_sink_number(t->sink, facts->forgotten);
    mr_sink_text(t->sink, ",\n");
}

mr_status mr_write_spans(const mr_writing *writing, mr_sink *sink) {
    const mr_trace *trace = writing->trace;
    const table t = table_of(writing, sink, true);
    mr_sink_text(sink, "{\n");
    write_facts(&t, trace);
    mr_sink_text(sink, "  \"spans\": [");
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        mr_sink_text(sink, i ? ",\n    {" : "\n    {");
        for (int k = 0; k < t.columns; k++) {
            mr_sink_text(sink, k ? ", \"" : "\"");
            mr_sink_text(sink, titles[k]);
            mr_sink_text(sink, "\": ");
            put_column(&t, trace, &mr_trace_spans(trace)[i], (column)k);
        }
        mr_sink_text(sink, "}");
    }
    mr_sink_text(sink, "\n  ]\n}\n");
    return MR_OK;
}
