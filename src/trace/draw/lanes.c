/* Lanes and their contents: see lanes.h. */
#include "trace/draw/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/meeting.h"

#define MOST_ROWS 250 /* bars at one time in one stream; more of them share the last row */

const mr_look_text mr_looks[] = {
#define X(id, legend, word, ascii, fill, color) {legend, word, ascii, fill, color},
    MR_LOOK_LIST(X)
#undef X
};

mr_look mr_look_of(const mr_span *span) {
    if (!span->ran) return MR_LOOK_NONE;
    switch (span->engine) {
    case MR_ENGINE_SM: return MR_LOOK_KERNEL;
    case MR_ENGINE_COPY_IN: return MR_LOOK_COPY_IN;
    case MR_ENGINE_COPY_OUT: return MR_LOOK_COPY_OUT;
    case MR_ENGINE_COPY_DEVICE: return MR_LOOK_COPY_DEVICE;
    case MR_ENGINE_COPY_PEER: return MR_LOOK_COPY_PEER;
    case MR_ENGINE_NONE: break;
    }
    return span->kind == MR_COMMAND_HOST_FUNCTION ? MR_LOOK_HOST_FUNCTION : MR_LOOK_NONE;
}

mr_look mr_look_on_host(const mr_span *span) {
    if (!span->called) return MR_LOOK_NONE;
    if (span->worked > span->waited && 2 * span->worked > span->returned - span->call)
        return MR_LOOK_HOST_WORK;
    return span->host_waited ? MR_LOOK_HOST_WAIT : MR_LOOK_HOST_CALL;
}

/* ---- lanes */

static uint64_t begin_in(const mr_lane *lane, const mr_span *span) {
    return lane->stream == MR_TRACE_NONE ? span->call : span->begin;
}

static uint64_t end_in(const mr_lane *lane, const mr_span *span) {
    return lane->stream == MR_TRACE_NONE ? span->returned : span->end;
}

typedef struct {
    uint64_t begin;
    uint32_t span;
} entry;

static int by_begin(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->span < y->span ? -1 : x->span > y->span;
}

/* Nearly always there is nothing to do: a stream runs in the order of submission (R1). */
static bool sort_lane(const mr_span *spans, mr_lane *lane) {
    bool is_sorted = true;
    for (size_t i = 1; i < lane->count && is_sorted; i++)
        is_sorted =
            begin_in(lane, &spans[lane->spans[i - 1]]) <= begin_in(lane, &spans[lane->spans[i]]);
    if (is_sorted) return true;

    entry *list = malloc(lane->count * sizeof *list);
    if (!list) return false;
    for (size_t i = 0; i < lane->count; i++)
        list[i] = (entry){begin_in(lane, &spans[lane->spans[i]]), lane->spans[i]};
    qsort(list, lane->count, sizeof *list, by_begin);
    for (size_t i = 0; i < lane->count; i++) lane->spans[i] = list[i].span;
    free(list);
    return true;
}

/* Gives each bar the first row that is free. Fills in row_count and busy. */
static void find_rows(const mr_span *spans, mr_lane *lane) {
    uint64_t ends[MOST_ROWS] = {0}, covered = 0;
    lane->row_count = 1;
    for (size_t i = 0; i < lane->count; i++) {
        const mr_span *span = &spans[lane->spans[i]];
        uint64_t begin = begin_in(lane, span), end = end_in(lane, span);
        int row = 0;
        while (row < MOST_ROWS - 1 && ends[row] > begin) row++;
        lane->rows[i] = (uint8_t)row;
        if (ends[row] < end) ends[row] = end;
        if (lane->row_count <= row) lane->row_count = row + 1;
        if (end > covered) {
            lane->busy += end - (begin > covered ? begin : covered);
            covered = end;
        }
    }
}

void mr_trace_put_stream(mr_buffer *out, const mr_trace *trace, uint32_t index) {
    const mr_trace_stream *stream = mr_trace_stream_at(trace, index);
    mr_buffer shown = {0};
    mr_text_put(&shown, stream->name ? stream->name : "?");
    const char *name = shown.data ? shown.data : "?";
    if (mr_trace_facts_of(trace)->device_count > 1) {
        const char *device = strstr(name, " of device "); /* "default stream of device 1" */
        int length = device ? (int)(device - name) : (int)strlen(name);
        mr_buffer_printf(out, "gpu%d %.*s", stream->device, length, name);
    } else mr_buffer_puts(out, name);
    mr_buffer_free(&shown);
}

static void name_lane(const mr_trace *trace, mr_lane *lane) {
    mr_buffer shown = {0};
    if (lane->stream == MR_TRACE_NONE) mr_trace_put_host(&shown, lane->rank);
    else mr_trace_put_stream(&shown, trace, lane->stream);
    mr_text_copy(lane->label, sizeof lane->label, shown.data ? shown.data : "?");
    mr_buffer_free(&shown);
}

static void name_by_rank(mr_lane *lane) {
    char name[sizeof lane->label];
    if (lane->rank < 0) return;
    mr_text_copy(name, sizeof name, lane->label);
    mr_text_format(lane->label, sizeof lane->label, "rank %d %s", lane->rank, name);
}

static bool fill_lane(mr_lane *lane, size_t count) {
    lane->spans = malloc((count ? count : 1) * sizeof *lane->spans);
    lane->rows = malloc(count ? count : 1);
    return lane->spans && lane->rows;
}

/* Streams of two ranks may have one name and one device. */
static void tell_ranks_apart(mr_lanes *lanes) {
    for (size_t i = lanes->host_count; i < lanes->count; i++) {
        mr_lane *lane = &lanes->items[i];
        bool is_twin = false;
        for (size_t k = i + 1; k < lanes->count; k++) {
            mr_lane *other = &lanes->items[k];
            if (lane->rank == other->rank || strcmp(lane->label, other->label) != 0) continue;
            name_by_rank(other);
            is_twin = true;
        }
        if (is_twin) name_by_rank(lane);
    }
}

/* One for each host that called, in the order of the ranks; without ranks, one in any case. */
static void open_hosts(const mr_trace *trace, mr_lanes *out) {
    bool called[MR_MEETING_MOST + 1] = {false};
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        if (span->called) called[mr_trace_rank_of(trace, span) + 1] = true;
    }
    if (mr_trace_facts_of(trace)->ranks < 2) called[0] = true;
    for (int i = 0; i <= MR_MEETING_MOST; i++)
        if (called[i]) out->items[out->count++] = (mr_lane){.stream = MR_TRACE_NONE, .rank = i - 1};
    out->host_count = out->count;
}

/* The lane of each stream, in the order of the first bar; 0, a host's, for a stream without one. */
static bool open_lanes(const mr_trace *trace, uint32_t *lane_of, size_t *counts, mr_lanes *out) {
    const mr_span *spans = mr_trace_spans(trace);
    open_hosts(trace, out);
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        if (mr_look_on_host(&spans[i]) != MR_LOOK_NONE)
            counts[mr_lanes_host(out, trace, &spans[i])]++;
        if (mr_look_of(&spans[i]) == MR_LOOK_NONE || spans[i].stream == MR_TRACE_NONE) continue;
        uint32_t *lane = &lane_of[spans[i].stream];
        if (!*lane) {
            *lane = (uint32_t)out->count++;
            out->items[*lane] =
                (mr_lane){.stream = spans[i].stream, .rank = mr_trace_rank_of(trace, &spans[i])};
        }
        counts[*lane]++;
    }
    for (size_t i = 0; i < out->count; i++)
        if (!fill_lane(&out->items[i], counts[i])) return false;
    return true;
}

static void push(mr_lane *lane, size_t span) {
    lane->spans[lane->count++] = (uint32_t)span;
}

static bool make_lanes(const mr_trace *trace, uint32_t *lane_of, size_t *counts, mr_lanes *out) {
    const mr_span *spans = mr_trace_spans(trace);
    if (!open_lanes(trace, lane_of, counts, out)) return false;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &spans[i];
        if (mr_look_on_host(span) != MR_LOOK_NONE)
            push(&out->items[mr_lanes_host(out, trace, span)], i);
        if (mr_look_of(span) != MR_LOOK_NONE && span->stream != MR_TRACE_NONE)
            push(&out->items[lane_of[span->stream]], i);
    }
    for (size_t i = 0; i < out->count; i++) {
        if (!sort_lane(spans, &out->items[i])) return false;
        find_rows(spans, &out->items[i]);
        name_lane(trace, &out->items[i]);
    }
    tell_ranks_apart(out);
    return true;
}

mr_status mr_lanes_create(const mr_trace *trace, mr_lanes *out_lanes) {
    size_t streams = mr_trace_stream_count(trace), most = streams + MR_MEETING_MOST + 1;
    uint32_t *lane_of = calloc(streams + 1, sizeof *lane_of);
    size_t *counts = calloc(most, sizeof *counts);
    *out_lanes = (mr_lanes){.items = calloc(most, sizeof *out_lanes->items)};
    bool ok =
        lane_of && counts && out_lanes->items && make_lanes(trace, lane_of, counts, out_lanes);
    free(lane_of);
    free(counts);
    if (ok) return MR_OK;
    mr_lanes_destroy(out_lanes);
    return mr_no_memory("to draw a trace of %zu operations", mr_trace_count(trace));
}

void mr_lanes_destroy(mr_lanes *lanes) {
    for (size_t i = 0; i < lanes->count; i++) {
        free(lanes->items[i].spans);
        free(lanes->items[i].rows);
    }
    free(lanes->items);
    *lanes = (mr_lanes){0};
}

int mr_lanes_host(const mr_lanes *lanes, const mr_trace *trace, const mr_span *span) {
    int rank = mr_trace_rank_of(trace, span);
    for (size_t i = 0; i < lanes->host_count; i++)
        if (lanes->items[i].rank == rank) return (int)i;
    return -1;
}

int mr_lanes_stream(const mr_lanes *lanes, uint32_t stream) {
    for (size_t i = lanes->host_count; i < lanes->count; i++)
        if (lanes->items[i].stream == stream) return (int)i;
    return -1;
}

/* The earliest time at which the holder can have held the span up. Nothing in the stream waited before the call that
 * asked for the span. A wait of the host held the stream up from its own call on. */
static uint64_t held_since(const mr_span *spans, const mr_span *span) {
    if (span->held_by == MR_CAUSE_HOST) return span->begin; /* it was only late */
    if (span->held_by == MR_CAUSE_SYNCHRONIZE || span->held_by == MR_CAUSE_PAGEABLE)
        return span->holder == MR_TRACE_NONE ? span->begin : spans[span->holder].call;
    return span->called ? span->call : 0;
}

mr_lane_gap mr_lane_gap_before(const mr_trace *trace, const mr_lane *lane, size_t i) {
    const mr_span *spans = mr_trace_spans(trace), *span = &spans[lane->spans[i]];
    uint64_t begin = i ? spans[lane->spans[i - 1]].end : 0, since = held_since(spans, span);
    mr_lane_gap gap = {.begin = span->begin, .end = span->begin, .span = span};
    if (span->held_by == MR_CAUSE_NONE || span->held_by == MR_CAUSE_STREAM) return gap;
    if (since > begin) begin = since;
    if (begin < gap.end) gap.begin = begin;
    return gap;
}

/* ---- words */

void mr_trace_put_host(mr_buffer *out, int rank) {
    mr_buffer_puts(out, "host");
    if (rank >= 0) mr_buffer_printf(out, " of rank %d", rank);
}

/* Text that is typed at a prompt has no file but its entry. */
static bool is_entry(const char *file) {
    return strncmp(file, "mr:", 3) == 0;
}

const char *mr_trace_title(const mr_trace *trace) {
    const char *script = mr_trace_facts_of(trace)->script;
    if (!script || !is_entry(script)) return script;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const char *file = mr_trace_spans(trace)[i].where.file;
        if (file && strcmp(file, script) != 0) return NULL;
    }
    return script;
}

void mr_trace_put_place(mr_buffer *out, const mr_trace *trace, mr_site where) {
    const char *script = mr_trace_facts_of(trace)->script;
    if (!where.file) return;
    if (script && strcmp(script, where.file) == 0 && !is_entry(script)) {
        mr_buffer_printf(out, "line %d", where.line);
        return;
    }
    mr_text_put(out, where.file);
    mr_buffer_printf(out, ":%d", where.line);
}

static void put_quoted(mr_buffer *out, const char *kind, const char *name) {
    mr_buffer_puts(out, kind);
    mr_buffer_puts(out, " `");
    mr_text_put(out, name);
    mr_buffer_puts(out, "`");
}

void mr_trace_put_object(mr_buffer *out, const mr_trace *trace, const mr_span *span) {
    uint32_t record = span->record, stream = span->stream;
    if (span->object) {
        put_quoted(out, "event", span->object);
        return;
    }
    if (record != MR_TRACE_NONE) stream = mr_trace_spans(trace)[record].stream;
    if (stream == MR_TRACE_NONE) {
        mr_buffer_puts(out, "the device");
        return;
    }
    put_quoted(out, "stream", mr_trace_stream_at(trace, stream)->name);
}

/* id, the words before the holder, the form of the holder: its object, or its name */
#define CAUSE_WORDS(X)                                                                             \
    X(NONE, "", NAME)                                                                              \
    X(STREAM, "runs after ", NAME)                                                                 \
    X(EVENT, "waits for ", OBJECT)                                                                 \
    X(DEFAULT_STREAM, "barrier of the default stream: ", NAME)                                     \
    X(MULTIPROCESSORS, "multiprocessors full: ", NAME)                                             \
    X(COPY_ENGINE, "copy engine busy: ", NAME)                                                     \
    X(CONNECTION, "launch connection shared: ", NAME)                                              \
    X(PAGEABLE, "host copied pageable memory: ", NAME)                                             \
    X(HOST, "host submitted it late", NOTHING)                                                     \
    X(SYNCHRONIZE, "host stood in ", NAME)                                                         \
    X(MEMORY, "waits for memory that was freed: ", NAME)                                           \
    X(HOST_FUNCTION, "waits for host function ", NAME)                                             \
    X(PEER_COPY, "waits for a copy between devices: ", NAME)                                       \
    X(COLLECTIVE, "waits in a collective for ", NAME)                                              \
    X(CHOOSER, "ready, but run later in this order", NOTHING)

const char *mr_trace_cause_words(mr_cause cause, mr_cause_shows *out_shows) {
    static const struct {
        const char *words;
        mr_cause_shows shows;
    } phrases[] = {
#define X(id, words, shows) [MR_CAUSE_##id] = {words, MR_SHOWS_##shows},
        CAUSE_WORDS(X)
#undef X
    };
    *out_shows = phrases[cause].shows;
    return phrases[cause].words;
}

void mr_trace_put_cause(mr_buffer *out, const mr_trace *trace, const mr_span *span) {
    mr_cause_shows shows;
    if (span->held_by == MR_CAUSE_NONE) return;
    mr_buffer_puts(out, mr_trace_cause_words(span->held_by, &shows));
    if (shows == MR_SHOWS_NOTHING) return;
    if (span->holder == MR_TRACE_NONE) {
        mr_buffer_puts(out, "something that is not in the trace");
        return;
    }
    const mr_span *holder = &mr_trace_spans(trace)[span->holder];
    if (shows == MR_SHOWS_OBJECT) mr_trace_put_object(out, trace, holder);
    else mr_text_put(out, holder->name);
    if (!holder->where.file) return;
    mr_buffer_puts(out, " (");
    mr_trace_put_place(out, trace, holder->where);
    mr_buffer_puts(out, ")");
}

void mr_trace_put_time(mr_buffer *out, uint64_t nanoseconds) {
    double value = (double)nanoseconds;
    const char *unit = "ns";
    if (nanoseconds >= 1000000000) value /= 1e9, unit = "s";
    else if (nanoseconds >= 1000000) value /= 1e6, unit = "ms";
    else if (nanoseconds >= 1000) value /= 1e3, unit = "us";
    int decimals = nanoseconds < 1000 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
    mr_buffer_printf(out, "%.*f %s", decimals, value, unit);
}

#define MOST_LINES 2 /* of a fix */

static size_t put_line(mr_buffer *out, const char *text) {
    size_t size = strcspn(text, "\n");
    char *line = strndup(text, size);
    if (line) mr_text_put(out, line);
    else out->failed = true;
    free(line);
    return size + (text[size] == '\n');
}

void mr_trace_put_fix(mr_buffer *out, const char *fix) {
    size_t more = 0;
    for (int i = 0; i < MOST_LINES && *fix; i++) {
        if (i) mr_buffer_puts(out, "; ");
        fix += put_line(out, fix);
    }
    for (; *fix; more++) {
        fix += strcspn(fix, "\n");
        fix += *fix == '\n';
    }
    if (more) mr_buffer_printf(out, ", and %zu more line%s", more, more == 1 ? "" : "s");
}
