/* A page to look at a trace, or at two of them, in one file. It has the frame, style and script of src/trace/page,
 * which the binary carries, and the trace as data. page/data.js reads what is written here.
 *
 * Easiest to break: put_span must write the numbers of a span in the order in which data.js reads them. Texts of the
 * user must go out by mr_sink_json and mr_sink_xml only, which leave no `<` in them. */
#include "trace/draw/formats.h"

#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/embedded.h"
#include "trace/write/pack.h"
#include "trace/write/sorts.h"

#define MOST_SOURCE (4 << 20) /* bytes of one script */

enum { FLAG_CALLED = 1, FLAG_RAN = 2, FLAG_HOST_WAITED = 4, FLAG_HOST_WORKED = 8, CAUSE_SHIFT = 4 };

typedef struct {
    const mr_writing *writing;
    mr_sink *sink;
    const mr_trace *traces[MR_MOST_OUTCOMES];
    const char *labels[MR_MOST_OUTCOMES]; /* NULL: a single trace */
    mr_sorts sorts[MR_MOST_OUTCOMES];
    int count;
    MR_VEC(const char *) files; /* that spans name */
    bool failed;                /* memory ran out */
} page;

/* ---- the parts of a page, and the marks in them that say what comes there */

static void put_part(mr_sink *sink, const char *name) {
    char path[64];
    snprintf(path, sizeof path, "trace/page/%s", name);
    const mr_embedded *file = mr_embedded_find(path);
    if (file) mr_sink_bytes(sink, (const char *)file->data, file->size);
}

/* ---- texts, as JSON */

static int file_number(page *p, const char *file) {
    if (!file) return -1;
    for (size_t i = 0; i < p->files.count; i++)
        if (strcmp(p->files.items[i], file) == 0) return (int)i;
    if (!mr_vec_push(&p->files, file)) p->failed = true;
    return (int)p->files.count - 1;
}

static void put_text(mr_sink *sink, const char *key, const char *text) {
    mr_sink_text(sink, key);
    if (text) mr_sink_json(sink, text);
    else mr_sink_text(sink, "null");
}

/* -1 for a stream, a span or a look that is missing. */
static void put_index(mr_sink *sink, const char *key, uint32_t index, uint32_t none) {
    mr_sink_format(sink, "%s%lld", key, index == none ? -1LL : (long long)index);
}

static void put_sort(page *p, const mr_sort *sort) {
    mr_sink *sink = p->sink;
    put_text(sink, "{\"name\":", sort->name);
    put_text(sink, ",\"object\":", sort->object);
    put_text(sink, ",\"kind\":", mr_command_kinds[sort->kind].name);
    mr_sink_format(sink, ",\"file\":%d,\"line\":%d", file_number(p, sort->where.file),
                   sort->where.line);
    put_index(sink, ",\"look\":", (uint32_t)sort->look, MR_LOOK_NONE);
    put_index(sink, ",\"stream\":", sort->stream, MR_TRACE_NONE);
    if (sort->rank >= 0) mr_sink_format(sink, ",\"rank\":%d", sort->rank);
    mr_sink_text(sink, "}");
}

static void put_hazard(mr_sink *sink, const mr_trace_hazard *hazard) {
    put_text(sink, "{\"kind\":", hazard->kind);
    put_text(sink, ",\"message\":", hazard->message);
    put_text(sink, ",\"fix\":", hazard->fix);
    put_index(sink, ",\"first\":", hazard->first, MR_TRACE_NONE);
    put_index(sink, ",\"second\":", hazard->second, MR_TRACE_NONE);
    mr_sink_text(sink, "}");
}

static void put_trace(page *p, int number) {
    const mr_trace *trace = p->traces[number];
    const mr_trace_facts *facts = mr_trace_facts_of(trace);
    mr_sink *sink = p->sink;
    put_text(sink, "{\"label\":", p->labels[number]);
    put_text(sink, ",\"script\":", facts->script);
    put_text(sink, ",\"backend\":", facts->backend);
    put_text(sink, ",\"device\":", facts->device);
    put_text(sink, ",\"how\":", facts->how);
    mr_sink_format(sink, ",\"devices\":%d,\"count\":%zu,\"duration\":", facts->device_count,
                   mr_trace_count(trace));
    mr_sink_number(sink, facts->duration);
    mr_sink_text(sink, ",\"forgotten\":");
    mr_sink_number(sink, facts->forgotten);
    mr_sink_text(sink, ",\n\"streams\":[");
    for (uint32_t i = 0; i < mr_trace_stream_count(trace); i++) {
        const mr_trace_stream *stream = mr_trace_stream_at(trace, i);
        put_text(sink, i ? ",{\"name\":" : "{\"name\":", stream->name);
        mr_sink_format(sink, ",\"device\":%d}", stream->device);
    }
    mr_sink_text(sink, "],\n\"sorts\":[");
    for (size_t i = 0; i < p->sorts[number].list.count; i++) {
        if (i) mr_sink_text(sink, ",\n");
        put_sort(p, &p->sorts[number].list.items[i]);
    }
    mr_sink_text(sink, "],\n\"hazards\":[");
    for (size_t i = 0; i < mr_trace_hazard_count(trace); i++) {
        if (i) mr_sink_text(sink, ",\n");
        put_hazard(sink, mr_trace_hazard_at(trace, i));
    }
    mr_sink_text(sink, "]}");
}

/* The words that the page shares with the other formats. */
static void put_words(mr_sink *sink) {
    static const char *const shows[] = {
        [MR_SHOWS_NAME] = "name", [MR_SHOWS_OBJECT] = "object", [MR_SHOWS_NOTHING] = "nothing"};
    mr_sink_format(sink, "\"hostWait\":%d,\"hostWork\":%d,\"hostCall\":%d,\"looks\":[",
                   MR_LOOK_HOST_WAIT, MR_LOOK_HOST_WORK, MR_LOOK_HOST_CALL);
    for (int i = 0; i < MR_LOOK_COUNT; i++) {
        put_text(sink, i ? ",{\"word\":" : "{\"word\":", mr_looks[i].word);
        put_text(sink, ",\"legend\":", mr_looks[i].legend);
        mr_sink_text(sink, "}");
    }
    mr_sink_text(sink, "],\n\"causes\":[");
    static const mr_cause causes[] = {
#define X(name, text) MR_CAUSE_##name,
        MR_CAUSE_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        mr_cause_shows how;
        put_text(sink, i ? ",{\"word\":" : "{\"word\":", mr_cause_text(causes[i]));
        put_text(sink, ",\"words\":", mr_trace_cause_words(causes[i], &how));
        put_text(sink, ",\"shows\":", shows[how]);
        mr_sink_text(sink, "}");
    }
    mr_sink_text(sink, "],\n");
}

static void put_source(page *p, const char *file) {
    size_t size = 0;
    const mr_writing *w = p->writing;
    const char *text = w->source ? w->source(w->context, file, &size) : NULL;
    mr_buffer copy = {0};
    if (text && size <= MOST_SOURCE) {
        mr_buffer_add(&copy, text, size);
        if (copy.failed) p->failed = true;
        for (size_t i = 0; i < copy.size; i++)
            if (!copy.data[i]) copy.data[i] = ' '; /* a NUL would end the text */
    }
    put_text(p->sink, "{\"name\":", file);
    put_text(p->sink, ",\"text\":", copy.data ? copy.data : text && !size ? "" : NULL);
    mr_sink_text(p->sink, "}");
    mr_buffer_free(&copy);
}

static void put_texts(page *p) {
    mr_sink_text(p->sink, "<script type=\"application/json\" id=\"texts\">\n{");
    put_words(p->sink);
    mr_sink_format(p->sink, "\"switches\":%s,", p->writing->outcomes ? "true" : "false");
    mr_sink_text(p->sink, "\"traces\":[");
    for (int i = 0; i < p->count; i++) {
        if (i) mr_sink_text(p->sink, ",\n");
        put_trace(p, i);
    }
    mr_sink_text(p->sink, "],\n\"files\":["); /* those that the traces have named */
    for (size_t i = 0; i < p->files.count; i++) {
        if (i) mr_sink_text(p->sink, ",\n");
        put_source(p, p->files.items[i]);
    }
    mr_sink_text(p->sink, "]}\n</script>\n");
}

/* ---- spans, as numbers */

/* The numbers that those of the next span are differences from. */
typedef struct {
    uint64_t call, seq;
    uint64_t *stream_end;
} last_values;

/* Another span: 0 for none, else one more than how far back it is. */
static void put_other(mr_pack *pack, size_t span, uint32_t other) {
    if (other == MR_TRACE_NONE) mr_pack_number(pack, 0);
    else
        mr_pack_number(pack, 1 + (other <= span ? 2 * (uint64_t)(span - other)
                                                : 2 * (uint64_t)(other - span) - 1));
}

static void put_span(mr_pack *pack, const mr_span *span, size_t i, uint32_t sort,
                     uint64_t *stream_end, last_values *last) {
    mr_look look = mr_look_on_host(span);
    mr_pack_number(pack, sort);
    mr_pack_number(pack, (span->called ? FLAG_CALLED : 0) | (span->ran ? FLAG_RAN : 0) |
                             (look == MR_LOOK_HOST_WAIT ? FLAG_HOST_WAITED : 0) |
                             (look == MR_LOOK_HOST_WORK ? FLAG_HOST_WORKED : 0) |
                             (uint64_t)span->held_by << CAUSE_SHIFT);
    mr_pack_difference(pack, last->seq, span->seq);
    last->seq = span->seq;
    if (span->called) {
        mr_pack_difference(pack, last->call, span->call);
        mr_pack_number(pack, span->returned - span->call);
        mr_pack_number(pack, span->waited);
        last->call = span->call;
    }
    if (span->ran) {
        mr_pack_difference(pack, *stream_end, span->begin);
        mr_pack_number(pack, span->end - span->begin);
        mr_pack_difference(pack, span->ready, span->begin);
        *stream_end = span->end;
    }
    put_other(pack, i, span->record);
    put_other(pack, i, span->holder);
    mr_pack_number(pack, span->bytes);
    mr_pack_number(pack, span->blocks);
}

static mr_status put_spans(page *p, int number) {
    const mr_trace *trace = p->traces[number];
    size_t streams = mr_trace_stream_count(trace);
    last_values last = {.stream_end = calloc(streams + 1, sizeof *last.stream_end)};
    mr_pack *pack = malloc(sizeof *pack);
    if (!pack || !last.stream_end) {
        free(pack);
        free(last.stream_end);
        return mr_no_memory("to write a trace");
    }
    pack->sink = p->sink;
    pack->used = 0;
    mr_sink_format(p->sink, "<script type=\"text/plain\" id=\"spans-%d\">", number);
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        size_t lane = span->stream == MR_TRACE_NONE ? streams : span->stream;
        put_span(pack, span, i, p->sorts[number].of[i], &last.stream_end[lane], &last);
    }
    mr_pack_flush(pack);
    mr_sink_text(p->sink, "</script>\n");
    free(pack);
    free(last.stream_end);
    return MR_OK;
}

/* ---- the whole */

static mr_status put_data(page *p) {
    put_texts(p);
    for (int i = 0; i < p->count; i++) MR_TRY(put_spans(p, i));
    return MR_OK;
}

static mr_status put_title(page *p) {
    const char *script = mr_trace_facts_of(p->writing->trace)->script;
    mr_sink_xml(p->sink, script ? script : "millrace");
    mr_sink_text(p->sink, " - timeline");
    return MR_OK;
}

static mr_status put_style(page *p) {
    put_part(p->sink, "page.css");
    return MR_OK;
}

static mr_status put_script(page *p) {
    static const char *const parts[] = {"data.js",   "lanes.js", "draw.js",
                                        "source.js", "input.js", "page.js"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) put_part(p->sink, parts[i]);
    return MR_OK;
}

/* page.html, with what belongs in the places of its marks. */
static mr_status put_page(page *p) {
    static const struct {
        const char *mark;
        mr_status (*put)(page *p);
    } marks[] = {{"<!--TITLE-->", put_title},
                 {"<!--STYLE-->", put_style},
                 {"<!--DATA-->", put_data},
                 {"<!--SCRIPT-->", put_script}};
    const mr_embedded *frame = mr_embedded_find("trace/page/page.html");
    if (!frame) return mr_fail(MR_CODE_NOT_SUPPORTED, "this build has no page for timelines");
    const char *rest = (const char *)frame->data;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        const char *mark = strstr(rest, marks[i].mark);
        if (!mark) return mr_fail(MR_CODE_UNKNOWN, "page.html has no %s", marks[i].mark);
        mr_sink_bytes(p->sink, rest, (size_t)(mark - rest));
        MR_TRY(marks[i].put(p));
        rest = mark + strlen(marks[i].mark);
    }
    mr_sink_text(p->sink, rest);
    return p->failed ? mr_no_memory("to write a trace") : MR_OK;
}

static void add_trace(page *p, const mr_trace *trace, const char *label) {
    p->traces[p->count] = trace;
    p->labels[p->count++] = label;
}

static void add_traces(page *p) {
    const mr_writing *w = p->writing;
    for (size_t i = 0; i < w->outcome_count && i < MR_MOST_OUTCOMES; i++)
        add_trace(p, w->outcomes[i].trace, w->outcomes[i].label);
    if (p->count) return;
    if (w->before) add_trace(p, w->before, "before");
    add_trace(p, w->trace, w->before ? "after" : NULL);
}

mr_status mr_write_html(const mr_writing *writing, mr_sink *sink) {
    page p = {.writing = writing, .sink = sink};
    mr_status status = MR_OK;
    add_traces(&p);
    for (int i = 0; i < p.count && !status; i++) status = mr_sorts_create(p.traces[i], &p.sorts[i]);
    if (!status) status = put_page(&p);
    for (int i = 0; i < p.count; i++) mr_sorts_destroy(&p.sorts[i]);
    mr_vec_free(&p.files);
    return status;
}
