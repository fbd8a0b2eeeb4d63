/* Makes a trace from the entries of a tracer: see kept.h. A reference to a command by its number becomes one to a span
 * by its index here. */
#include <string.h>

#include "trace/builder.h"
#include "trace/record/kept.h"

typedef struct {
    const kept_entry *entry;
    kept_times times;
} row;

/* The entries that the trace is made of, sorted by number. */
typedef struct {
    row *rows;
    mr_span *spans;
    mr_trace_stream *streams;
    size_t count, stream_count;
    uint64_t began;
} draft;

static size_t find(const draft *d, uint64_t seq) {
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (d->rows[middle].entry->seq < seq) low = middle + 1;
        else high = middle;
    }
    return low < d->count && d->rows[low].entry->seq == seq ? low : MR_TRACE_NONE;
}

static uint32_t index_of(const draft *d, uint64_t seq) {
    return seq ? (uint32_t)find(d, seq) : MR_TRACE_NONE;
}

/* Those of before the trace come first: their numbers are lower. */
static void collect(draft *d, const mr_kept *kept, size_t first) {
    for (size_t i = 0; i < kept->earlier.count; i++) {
        const kept_entry *entry = &kept->earlier.items[i];
        d->rows[d->count++] = (row){entry, entry->times};
    }
    for (size_t i = first; i < kept_count(kept); i++) {
        const kept_entry *entry = kept_at(kept, i);
        d->rows[d->count++] = (row){entry, entry->times};
    }
    for (size_t i = 0; i < kept->log.count; i++) {
        size_t at = find(d, kept->log.items[i].seq);
        if (at != MR_TRACE_NONE) mr_kept_fold(&d->rows[at].times, &kept->log.items[i].run);
    }
    size_t left = 0; /* without those of before whose runs were undone */
    for (size_t i = 0; i < d->count; i++)
        if (d->rows[i].entry->called || d->rows[i].times.begun) d->rows[left++] = d->rows[i];
    d->count = left;
}

/* Times before the trace count as its begin. */
static uint64_t since(const draft *d, uint64_t time) {
    return time > d->began ? time - d->began : 0;
}

static mr_span span_of(const draft *d, const row *r) {
    const kept_entry *entry = r->entry;
    const kept_times *times = &r->times;
    mr_span span = {.kind = entry->kind,
                    .engine = times->engine,
                    .name = entry->name,
                    .object = mr_name_text(entry->object),
                    .where = entry->where,
                    .seq = entry->seq,
                    .stream = entry->stream,
                    .device = entry->device,
                    .called = entry->called,
                    .ran = times->done,
                    .host_waited = entry->waited > 0,
                    .synchronous = entry->synchronous,
                    .walls = entry->walls,
                    .meeting = entry->meeting,
                    .host = entry->host,
                    .bytes = entry->bytes,
                    .blocks = entry->blocks ? entry->blocks : times->blocks,
                    .record = index_of(d, entry->record_seq),
                    .holder = MR_TRACE_NONE};
    if (entry->called) {
        span.call = since(d, entry->call);
        span.returned = since(d, entry->returned);
        span.waited = entry->waited;
        span.worked = entry->worked;
    }
    if (times->done) {
        span.ready = since(d, times->ready);
        span.begin = since(d, times->begin);
        span.end = since(d, times->end);
        span.held_by = times->held_by;
        span.holder = index_of(d, times->holder);
    }
    return span;
}

static void fill(draft *d, const mr_kept *kept) {
    for (size_t i = 0; i < kept->streams.count; i++) {
        d->streams[i] = kept->streams.items[i].stream;
        d->streams[i].name = kept->streams.items[i].name;
    }
    d->stream_count = kept->streams.count;
    for (size_t i = 0; i < d->count; i++) d->spans[i] = span_of(d, &d->rows[i]);
}

static const char *shown_file(const mr_kept *kept, mr_trace_builder *builder, mr_site where) {
    if (kept->shown && where.file) where = kept->shown(kept->shown_context, where);
    return mr_trace_builder_text(builder, where.file);
}

static mr_status make_accesses(const mr_kept *kept, const kept_entry *entry,
                               mr_trace_builder *builder) {
    for (uint32_t i = 0; i < entry->access_count; i++) {
        mr_trace_access access = entry->accesses[i].access;
        access.name = mr_trace_builder_text(builder, mr_name_text(entry->accesses[i].name));
        access.made.file = shown_file(kept, builder, access.made);
        MR_TRY(mr_trace_builder_access(builder, &access));
    }
    return MR_OK;
}

static mr_status make(const draft *d, const mr_kept *kept, mr_trace_builder *builder,
                      const mr_tracer_hazard *hazards, size_t hazard_count) {
    for (size_t i = 0; i < d->stream_count; i++) {
        mr_trace_stream stream = d->streams[i];
        uint32_t index;
        stream.name = mr_trace_builder_text(builder, stream.name);
        MR_TRY(mr_trace_builder_stream(builder, &stream, &index));
    }
    for (size_t i = 0; i < d->count; i++) {
        mr_span span = d->spans[i];
        span.name = mr_trace_builder_text(builder, span.name);
        span.object = mr_trace_builder_text(builder, span.object);
        span.where.file = shown_file(kept, builder, span.where);
        MR_TRY(mr_trace_builder_span(builder, &span));
        MR_TRY(make_accesses(kept, d->rows[i].entry, builder));
    }
    for (size_t i = 0; i < hazard_count; i++) {
        mr_trace_hazard hazard = {.first = index_of(d, hazards[i].first),
                                  .second = index_of(d, hazards[i].second),
                                  .kind = mr_trace_builder_text(builder, hazards[i].kind),
                                  .message = mr_trace_builder_text(builder, hazards[i].message),
                                  .fix = mr_trace_builder_text(builder, hazards[i].fix)};
        if (hazard.first == MR_TRACE_NONE && hazard.second == MR_TRACE_NONE) continue;
        MR_TRY(mr_trace_builder_hazard(builder, &hazard));
    }
    return MR_OK;
}

/* The file that most spans come from. Spans of before the trace do not count. */
static const char *script_of(const draft *d) {
    enum { MOST = 32 };
    const char *files[MOST], *best = NULL;
    size_t counts[MOST], known = 0, most = 0;
    for (size_t i = 0; i < d->count; i++) {
        const char *file = d->spans[i].where.file;
        size_t k = 0;
        while (k < known && files[k] != file) k++;
        if (!file || k == MOST) continue;
        if (k == known) {
            files[known] = file;
            counts[known++] = 0;
        }
        if (++counts[k] > most) {
            most = counts[k];
            best = file;
        }
    }
    return best;
}

static mr_status build(draft *d, const mr_kept *kept, const mr_trace_facts *facts,
                       const mr_tracer_hazard *hazards, size_t hazard_count, mr_trace **out_trace) {
    fill(d, kept);
    MR_TRY(mr_trace_find_causes(d->spans, d->count, d->streams, d->stream_count));
    mr_trace_builder *builder;
    MR_TRY(mr_trace_builder_create(&builder));
    mr_status status = make(d, kept, builder, hazards, hazard_count);
    if (status) {
        mr_trace_builder_destroy(builder);
        return status;
    }
    mr_trace_facts copy = *facts;
    copy.backend = mr_trace_builder_text(builder, facts->backend);
    copy.device = mr_trace_builder_text(builder, facts->device);
    copy.model = mr_trace_builder_text(builder, facts->model);
    copy.chooser = mr_trace_builder_text(builder, facts->chooser);
    copy.how = mr_trace_builder_text(builder, facts->how);
    copy.script = shown_file(kept, builder, (mr_site){.file = script_of(d)});
    return mr_trace_builder_finish(builder, &copy, out_trace);
}

mr_status mr_kept_trace(const mr_kept *kept, size_t first, uint64_t began,
                        const mr_trace_facts *facts, const mr_tracer_hazard *hazards,
                        size_t hazard_count, mr_trace **out_trace) {
    size_t most = kept->earlier.count + kept_count(kept) + 1;
    draft d = {.rows = malloc(most * sizeof *d.rows),
               .spans = malloc(most * sizeof *d.spans),
               .streams = malloc((kept->streams.count + 1) * sizeof *d.streams),
               .began = began};
    *out_trace = NULL;
    mr_status status = mr_no_memory("for a trace");
    if (d.rows && d.spans && d.streams) {
        mr_error_destroy(status);
        collect(&d, kept, first);
        status = build(&d, kept, facts, hazards, hazard_count, out_trace);
    }
    free(d.rows);
    free(d.spans);
    free(d.streams);
    return status;
}
