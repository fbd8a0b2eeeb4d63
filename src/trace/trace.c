/* The storage of a trace: arrays of spans, streams and hazards, and their texts. Spans are recorded elsewhere. A trace
 * does not change after mr_trace_builder_finish, so its readers need no lock and no copy. */
#include "trace/builder.h"

#include <string.h>

#include "base/intern.h"
#include "base/vec.h"
#include "model/meeting.h"

struct mr_trace {
    uint32_t refs;
    MR_VEC(mr_span) spans;
    MR_VEC(mr_trace_access) accesses;
    MR_VEC(mr_trace_stream) streams;
    MR_VEC(mr_trace_hazard) hazards;
    mr_interned texts;
    mr_trace_facts facts;
};

struct mr_trace_builder {
    mr_trace *trace;
};

/* ---- building */

static void destroy(mr_trace *trace) {
    mr_vec_free(&trace->spans);
    mr_vec_free(&trace->accesses);
    mr_vec_free(&trace->streams);
    mr_vec_free(&trace->hazards);
    mr_interned_free(&trace->texts);
    free(trace);
}

mr_status mr_trace_builder_create(mr_trace_builder **out_builder) {
    mr_trace_builder *builder = malloc(sizeof *builder);
    mr_trace *trace = builder ? calloc(1, sizeof *trace) : NULL;
    *out_builder = NULL;
    if (!trace) {
        free(builder);
        return mr_no_memory("for a trace");
    }
    trace->refs = 1;
    trace->texts.most = SIZE_MAX; /* they are freed with the trace */
    builder->trace = trace;
    *out_builder = builder;
    return MR_OK;
}

void mr_trace_builder_destroy(mr_trace_builder *builder) {
    if (!builder) return;
    destroy(builder->trace);
    free(builder);
}

const char *mr_trace_builder_text(mr_trace_builder *builder, const char *text) {
    if (!text) return NULL;
    return mr_intern(&builder->trace->texts, text, strlen(text), "(no memory for this text)");
}

static mr_status no_room(size_t count, const char *what) {
    return mr_no_memory("for a trace of more than %zu %s", count, what);
}

mr_status mr_trace_builder_stream(mr_trace_builder *builder, const mr_trace_stream *stream,
                                  uint32_t *out_index) {
    mr_trace *trace = builder->trace;
    if (!mr_vec_push(&trace->streams, *stream)) return no_room(trace->streams.count, "streams");
    *out_index = (uint32_t)trace->streams.count - 1;
    return MR_OK;
}

mr_status mr_trace_builder_span(mr_trace_builder *builder, const mr_span *span) {
    mr_trace *trace = builder->trace;
    if (!mr_vec_push(&trace->spans, *span)) return no_room(trace->spans.count, "operations");
    return MR_OK;
}

mr_status mr_trace_builder_access(mr_trace_builder *builder, const mr_trace_access *access) {
    mr_trace *trace = builder->trace;
    mr_span *span = &trace->spans.items[trace->spans.count - 1];
    if (!mr_vec_push(&trace->accesses, *access)) return no_room(trace->accesses.count, "accesses");
    if (!span->access_count++) span->first_access = trace->accesses.count - 1;
    return MR_OK;
}

mr_status mr_trace_builder_hazard(mr_trace_builder *builder, const mr_trace_hazard *hazard) {
    mr_trace *trace = builder->trace;
    if (!mr_vec_push(&trace->hazards, *hazard)) return no_room(trace->hazards.count, "hazards");
    return MR_OK;
}

static int rank_count(const mr_trace *trace) {
    uint64_t ranks = 0;
    int count = 0;
    for (size_t i = 0; i < trace->spans.count; i++)
        if (trace->spans.items[i].called && trace->spans.items[i].host)
            ranks |= 1ull << (trace->spans.items[i].host - 1) % MR_MEETING_MOST;
    for (; ranks; ranks &= ranks - 1) count++;
    return count;
}

static uint64_t latest_time(const mr_trace *trace) {
    uint64_t latest = 0;
    for (size_t i = 0; i < trace->spans.count; i++) {
        const mr_span *span = &trace->spans.items[i];
        if (span->called && span->returned > latest) latest = span->returned;
        if (span->ran && span->end > latest) latest = span->end;
    }
    return latest;
}

mr_status mr_trace_builder_finish(mr_trace_builder *builder, const mr_trace_facts *facts,
                                  mr_trace **out_trace) {
    mr_trace *trace = builder->trace;
    *out_trace = NULL;
    if (trace->spans.count >= MR_TRACE_NONE) {
        mr_trace_builder_destroy(builder);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "a trace holds fewer than %u operations",
                       MR_TRACE_NONE);
    }
    trace->facts = *facts;
    trace->facts.duration = latest_time(trace);
    trace->facts.ranks = rank_count(trace);
    free(builder);
    *out_trace = trace;
    return MR_OK;
}

mr_status mr_trace_keep_hazard(mr_trace *trace, const mr_trace_hazard *hazard) {
    mr_trace_builder builder = {trace};
    trace->hazards.count = 0;
    return mr_trace_builder_hazard(
        &builder, &(mr_trace_hazard){hazard->first, hazard->second,
                                     mr_trace_builder_text(&builder, hazard->kind),
                                     mr_trace_builder_text(&builder, hazard->message),
                                     mr_trace_builder_text(&builder, hazard->fix)});
}

/* ---- reading */

void mr_trace_release(const mr_trace *trace) {
    mr_trace *counted = (mr_trace *)trace;
    if (counted && --counted->refs == 0) destroy(counted);
}

size_t mr_trace_count(const mr_trace *trace) {
    return trace->spans.count;
}

const mr_span *mr_trace_spans(const mr_trace *trace) {
    return trace->spans.items;
}

const mr_trace_access *mr_trace_accesses(const mr_trace *trace, const mr_span *span) {
    return trace->accesses.items + span->first_access;
}

size_t mr_trace_stream_count(const mr_trace *trace) {
    return trace->streams.count;
}

const mr_trace_stream *mr_trace_stream_at(const mr_trace *trace, uint32_t i) {
    return &trace->streams.items[i];
}

size_t mr_trace_hazard_count(const mr_trace *trace) {
    return trace->hazards.count;
}

const mr_trace_hazard *mr_trace_hazard_at(const mr_trace *trace, size_t i) {
    return &trace->hazards.items[i];
}

const mr_trace_facts *mr_trace_facts_of(const mr_trace *trace) {
    return &trace->facts;
}

int mr_trace_rank_of(const mr_trace *trace, const mr_span *span) {
    return trace->facts.ranks > 1 ? (int)span->host - 1 : -1;
}
