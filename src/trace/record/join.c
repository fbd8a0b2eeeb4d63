/* Joins traces of several processes. Each process has stand-ins for the members that other ranks have in its
 * collectives. They are left out, as their own ranks tell of them. The order of the spans is one in which all of it can
 * have been submitted. That is each rank's calls in its order, and the members of a collective side by side, as one
 * process submits them.
 *
 * Easiest to break: processes number commands each for itself. A collective is the same in two of them if it has the
 * same ranks and as many collectives of these ranks came before it. */
#include "trace/record/join.h"

#include <string.h>

#include "base/vec.h"
#include "model/meeting.h"
#include "trace/builder.h"

#define MAGIC 0x6d72747261636531u
#define MOST  MR_MEETING_MOST
#define NONE  MR_TRACE_NONE

typedef struct {
    uint64_t magic, rank, spans, accesses, streams, hazards, texts;
} head;

/* ---- as bytes: the structs as they are, with texts as places in the table after them, from 1 */

static const char *keep_text(mr_buffer *texts, const char *text) {
    size_t at = texts->size + 1;
    if (!text) return NULL;
    mr_buffer_add(texts, text, strlen(text) + 1);
    return (const char *)(uintptr_t)at;
}

static void put_spans(const mr_trace *trace, mr_buffer *out, mr_buffer *texts) {
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        mr_span span = mr_trace_spans(trace)[i];
        span.name = keep_text(texts, span.name);
        span.object = keep_text(texts, span.object);
        span.where.file = keep_text(texts, span.where.file);
        mr_buffer_add(out, (const char *)&span, sizeof span);
    }
}

static uint64_t put_accesses(const mr_trace *trace, mr_buffer *out, mr_buffer *texts) {
    uint64_t count = 0;
    for (size_t i = 0; i < mr_trace_count(trace); i++) {
        const mr_span *span = &mr_trace_spans(trace)[i];
        for (uint32_t k = 0; k < span->access_count; k++, count++) {
            mr_trace_access access = mr_trace_accesses(trace, span)[k];
            access.name = keep_text(texts, access.name);
            access.made.file = keep_text(texts, access.made.file);
            mr_buffer_add(out, (const char *)&access, sizeof access);
        }
    }
    return count;
}

static void put_rest(const mr_trace *trace, mr_buffer *out, mr_buffer *texts) {
    for (size_t i = 0; i < mr_trace_stream_count(trace); i++) {
        mr_trace_stream stream = *mr_trace_stream_at(trace, (uint32_t)i);
        stream.name = keep_text(texts, stream.name);
        mr_buffer_add(out, (const char *)&stream, sizeof stream);
    }
    for (size_t i = 0; i < mr_trace_hazard_count(trace); i++) {
        mr_trace_hazard hazard = *mr_trace_hazard_at(trace, i);
        hazard.kind = keep_text(texts, hazard.kind);
        hazard.message = keep_text(texts, hazard.message);
        hazard.fix = keep_text(texts, hazard.fix);
        mr_buffer_add(out, (const char *)&hazard, sizeof hazard);
    }
    mr_trace_facts facts = *mr_trace_facts_of(trace);
    facts.backend = keep_text(texts, facts.backend);
    facts.device = keep_text(texts, facts.device);
    facts.model = keep_text(texts, facts.model);
    facts.chooser = keep_text(texts, facts.chooser);
    facts.how = keep_text(texts, facts.how);
    facts.script = keep_text(texts, facts.script);
    mr_buffer_add(out, (const char *)&facts, sizeof facts);
}

mr_status mr_trace_to_bytes(const mr_trace *trace, uint32_t rank, mr_buffer *out) {
    mr_buffer texts = {0}, body = {0};
    head h = {.magic = MAGIC,
              .rank = rank,
              .spans = mr_trace_count(trace),
              .streams = mr_trace_stream_count(trace),
              .hazards = mr_trace_hazard_count(trace)};
    put_spans(trace, &body, &texts);
    h.accesses = put_accesses(trace, &body, &texts);
    put_rest(trace, &body, &texts);
    h.texts = texts.size;
    mr_buffer_add(out, (const char *)&h, sizeof h);
    if (body.size) mr_buffer_add(out, body.data, body.size);
    if (texts.size) mr_buffer_add(out, texts.data, texts.size);
    bool failed = texts.failed || body.failed || out->failed;
    mr_buffer_free(&texts);
    mr_buffer_free(&body);
    return failed ? mr_no_memory("for the bytes of a trace") : MR_OK;
}

/* ---- a part */

/* A collective as one process sees it. */
typedef struct {
    uint64_t number;  /* mr_span.meeting */
    uint64_t ranks;   /* as bits */
    uint32_t ordinal; /* how many of these ranks came before */
    uint32_t joined;  /* its index in the joined trace's; NONE: not yet there */
} meeting;

typedef struct {
    head head;
    const mr_span *spans;
    const mr_trace_access *accesses;
    const mr_trace_stream *streams;
    const mr_trace_hazard *hazards;
    mr_trace_facts facts;
    const char *texts;
    uint64_t later;       /* how much its clock began after the first of all */
    uint32_t *index;      /* by span: in the joined trace; NONE: left out */
    uint32_t *meeting_of; /* by span: in `meetings`; NONE: of none */
    uint32_t *stream_of;  /* by stream: in the joined trace; NONE: not there */
    MR_VEC(meeting) meetings;
    size_t next; /* span */
} part;

/* The first of its members in the joined trace, by rank; NONE: not there. */
typedef struct {
    uint32_t first[MOST];
} joined_meeting;

typedef struct {
    part parts[MOST];
    size_t count;
    uint32_t spans; /* of the joined trace, so far */
    MR_VEC(joined_meeting) meetings;
    mr_trace_builder *builder;
} joining;

static const char *text_of(const part *p, const char *place) {
    size_t at = (size_t)(uintptr_t)place;
    return at && at <= p->head.texts ? p->texts + at - 1 : NULL;
}

/* A process also makes the streams of its stand-ins. */
static bool is_own(const part *p, const mr_span *span) {
    bool is_far = span->device >= 0 && (uint32_t)span->device != p->head.rank;
    if (span->kind == MR_COMMAND_STREAM_CREATE && is_far) return false;
    return !span->host || span->host == p->head.rank + 1;
}

static bool take(const char **at, size_t *left, uint64_t count, size_t size, const void **out) {
    *out = *at;
    if (count > *left / size) return false;
    *at += count * size;
    *left -= count * size;
    return true;
}

static bool read_part(mr_trace_bytes from, part *p) {
    const char *at = from.bytes;
    size_t left = from.size;
    const void *got[6];
    if (!take(&at, &left, 1, sizeof p->head, &got[0])) return false;
    memcpy(&p->head, got[0], sizeof p->head);
    if (p->head.magic != MAGIC || p->head.rank >= MOST) return false;
    if (!take(&at, &left, p->head.spans, sizeof *p->spans, &got[0]) ||
        !take(&at, &left, p->head.accesses, sizeof *p->accesses, &got[1]) ||
        !take(&at, &left, p->head.streams, sizeof *p->streams, &got[2]) ||
        !take(&at, &left, p->head.hazards, sizeof *p->hazards, &got[3]) ||
        !take(&at, &left, 1, sizeof p->facts, &got[4]) ||
        !take(&at, &left, p->head.texts, 1, &got[5]))
        return false;
    p->spans = got[0];
    p->accesses = got[1];
    p->streams = got[2];
    p->hazards = got[3];
    memcpy(&p->facts, got[4], sizeof p->facts);
    p->texts = got[5];
    return !p->head.texts || !p->texts[p->head.texts - 1];
}

#define LOOK_BACK 256 /* collectives: the spans of one stand near to each other */

static uint32_t find_meeting(const part *p, uint64_t number) {
    for (size_t back = 0; back < p->meetings.count && back < LOOK_BACK; back++)
        if (p->meetings.items[p->meetings.count - 1 - back].number == number)
            return (uint32_t)(p->meetings.count - 1 - back);
    return NONE;
}

static bool find_meetings(part *p) {
    for (size_t i = 0; i < p->head.spans; i++) {
        const mr_span *span = &p->spans[i];
        uint64_t host = span->host ? (uint64_t)span->host - 1 : p->head.rank;
        p->index[i] = p->meeting_of[i] = NONE;
        if (!span->meeting || host >= MOST) continue;
        uint32_t at = find_meeting(p, span->meeting);
        if (at == NONE) {
            at = (uint32_t)p->meetings.count;
            if (!mr_vec_push(&p->meetings, ((meeting){.number = span->meeting, .joined = NONE})))
                return false;
        }
        p->meeting_of[i] = at;
        p->meetings.items[at].ranks |= (uint64_t)1 << host;
    }
    return true;
}

static bool count_ordinals(part *p) {
    MR_VEC(meeting) last = {0}; /* one for each set of ranks */
    bool fine = true;
    for (size_t i = 0; i < p->meetings.count && fine; i++) {
        meeting *m = &p->meetings.items[i];
        size_t k = 0;
        while (k < last.count && last.items[k].ranks != m->ranks) k++;
        if (k == last.count) fine = mr_vec_push(&last, *m);
        else m->ordinal = ++last.items[k].ordinal;
    }
    mr_vec_free(&last);
    return fine;
}

static mr_status open_part(mr_trace_bytes from, part *p) {
    if (!read_part(from, p))
        return mr_fail(MR_CODE_UNKNOWN, "a timeline of another rank cannot be read");
    p->index = malloc((p->head.spans + 1) * sizeof *p->index);
    p->meeting_of = malloc((p->head.spans + 1) * sizeof *p->meeting_of);
    p->stream_of = malloc((p->head.streams + 1) * sizeof *p->stream_of);
    bool fine = p->index && p->meeting_of && p->stream_of && find_meetings(p) && count_ordinals(p);
    for (size_t i = 0; i < p->head.streams && fine; i++) p->stream_of[i] = NONE;
    return fine ? MR_OK : mr_no_memory("to join timelines");
}

/* ---- in what order */

static const mr_span *front(part *p) {
    while (p->next < p->head.spans && !is_own(p, &p->spans[p->next])) p->next++;
    return p->next < p->head.spans ? &p->spans[p->next] : NULL;
}

static part *part_of(joining *j, uint32_t rank) {
    for (size_t i = 0; i < j->count; i++)
        if (j->parts[i].head.rank == rank) return &j->parts[i];
    return NULL;
}

static const meeting *front_meeting(part *p) {
    const mr_span *span = front(p);
    if (!span || p->meeting_of[p->next] == NONE) return NULL;
    return &p->meetings.items[p->meeting_of[p->next]];
}

/* All its ranks have come to it that are not at their end. */
static bool is_complete(joining *j, const meeting *m) {
    for (uint32_t k = 0; k < MOST; k++) {
        part *p = m->ranks >> k & 1 ? part_of(j, k) : NULL;
        const meeting *other = p ? front_meeting(p) : NULL;
        if (!p || !front(p)) continue;
        if (!other || other->ranks != m->ranks || other->ordinal != m->ordinal) return false;
    }
    return true;
}

/* The rank with the next call: the earliest call that is not a collective; otherwise a collective that all ranks
 * have reached. */
static part *choose(joining *j) {
    part *best = NULL, *any = NULL;
    uint64_t earliest = UINT64_MAX;
    for (size_t i = 0; i < j->count; i++) {
        part *p = &j->parts[i];
        const mr_span *span = front(p);
        if (!span) continue;
        uint64_t time = span->called ? span->call + p->later : 0;
        any = any ? any : p;
        if (front_meeting(p) || time >= earliest) continue;
        best = p;
        earliest = time;
    }
    for (size_t i = 0; i < j->count && !best; i++) {
        const meeting *m = front_meeting(&j->parts[i]);
        if (m && is_complete(j, m)) best = &j->parts[i];
    }
    return best ? best : any;
}

static void give_index(joining *j, part *p) {
    const meeting *m = front_meeting(p);
    if (m) {
        uint32_t *first = &j->meetings.items[m->joined].first[p->head.rank];
        if (*first == NONE) *first = j->spans;
    }
    p->index[p->next++] = j->spans++;
}

/* The whole of a collective, side by side. */
static bool give_to_meeting(joining *j, const meeting *m) {
    const meeting wanted = *m;
    joined_meeting made;
    for (uint32_t k = 0; k < MOST; k++) made.first[k] = NONE;
    if (!mr_vec_push(&j->meetings, made)) return false;
    for (uint32_t k = 0; k < MOST; k++) {
        part *p = wanted.ranks >> k & 1 ? part_of(j, k) : NULL;
        const meeting *own;
        while (p && (own = front_meeting(p)) && own->ranks == wanted.ranks &&
               own->ordinal == wanted.ordinal) {
            p->meetings.items[p->meeting_of[p->next]].joined = (uint32_t)j->meetings.count - 1;
            give_index(j, p);
        }
    }
    return true;
}

static bool find_order(joining *j) {
    for (part *p; (p = choose(j));) {
        const meeting *m = front_meeting(p);
        if (!m) give_index(j, p);
        else if (!give_to_meeting(j, m)) return false;
    }
    return true;
}

/* ---- the joined trace */

/* The span or, for a stand-in, the span of the other rank. */
static uint32_t joined_index(const joining *j, const part *p, uint32_t span) {
    if (span >= p->head.spans) return NONE;
    uint32_t at = p->meeting_of[span], host = p->spans[span].host;
    if (p->index[span] != NONE || at == NONE || !host || host > MOST) return p->index[span];
    const meeting *m = &p->meetings.items[at];
    return m->joined == NONE ? NONE : j->meetings.items[m->joined].first[host - 1];
}

static uint32_t first_of(const joined_meeting *m) {
    uint32_t first = NONE;
    for (uint32_t k = 0; k < MOST; k++)
        if (m->first[k] < first) first = m->first[k];
    return first;
}

static mr_status add_stream(joining *j, part *p, uint32_t stream) {
    if (stream >= p->head.streams || p->stream_of[stream] != NONE) return MR_OK;
    mr_trace_stream made = p->streams[stream];
    made.name = mr_trace_builder_text(j->builder, text_of(p, made.name));
    return mr_trace_builder_stream(j->builder, &made, &p->stream_of[stream]);
}

static void move_times(const part *p, mr_span *span) {
    uint64_t *host[] = {&span->call, &span->returned};
    uint64_t *device[] = {&span->ready, &span->begin, &span->end};
    for (size_t i = 0; i < 2 && span->called; i++) *host[i] += p->later;
    for (size_t i = 0; i < 3 && span->ran; i++) *device[i] += p->later;
}

static mr_status add_span(joining *j, part *p, size_t i) {
    mr_span span = p->spans[i];
    MR_TRY(add_stream(j, p, span.stream));
    span.name = mr_trace_builder_text(j->builder, text_of(p, span.name));
    span.object = mr_trace_builder_text(j->builder, text_of(p, span.object));
    span.where.file = mr_trace_builder_text(j->builder, text_of(p, span.where.file));
    span.stream = span.stream < p->head.streams ? p->stream_of[span.stream] : NONE;
    span.seq = (uint64_t)p->index[i] + 1;
    if (p->meeting_of[i] == NONE) span.meeting = 0;
    else
        span.meeting =
            (uint64_t)first_of(&j->meetings.items[p->meetings.items[p->meeting_of[i]].joined]) + 1;
    span.host = (uint16_t)(p->head.rank + 1);
    span.record = joined_index(j, p, span.record);
    span.holder = joined_index(j, p, span.holder);
    move_times(p, &span);
    size_t first = span.first_access, count = span.access_count;
    span.first_access = span.access_count = 0;
    MR_TRY(mr_trace_builder_span(j->builder, &span));
    for (size_t k = first; k < first + count && k < p->head.accesses; k++) {
        mr_trace_access access = p->accesses[k];
        access.memory = access.memory * MOST + p->head.rank; /* its own */
        access.name = mr_trace_builder_text(j->builder, text_of(p, access.name));
        access.made.file = mr_trace_builder_text(j->builder, text_of(p, access.made.file));
        MR_TRY(mr_trace_builder_access(j->builder, &access));
    }
    return MR_OK;
}

static mr_status add_spans(joining *j) {
    for (uint32_t at = 0; at < j->spans; at++) {
        for (size_t i = 0; i < j->count; i++) {
            part *p = &j->parts[i];
            while (p->next < p->head.spans && p->index[p->next] == NONE) p->next++;
            if (p->next == p->head.spans || p->index[p->next] != at) continue;
            MR_TRY(add_span(j, p, p->next++));
            break;
        }
    }
    return MR_OK;
}

static mr_status add_hazards(joining *j, const part *p) {
    for (size_t i = 0; i < p->head.hazards; i++) {
        mr_trace_hazard hazard = p->hazards[i];
        hazard.first = joined_index(j, p, hazard.first);
        hazard.second = joined_index(j, p, hazard.second);
        hazard.kind = mr_trace_builder_text(j->builder, text_of(p, hazard.kind));
        hazard.message = mr_trace_builder_text(j->builder, text_of(p, hazard.message));
        hazard.fix = mr_trace_builder_text(j->builder, text_of(p, hazard.fix));
        if (hazard.first == NONE && hazard.second == NONE) continue;
        MR_TRY(mr_trace_builder_hazard(j->builder, &hazard));
    }
    return MR_OK;
}

static void find_clocks(joining *j) {
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < j->count; i++)
        if (j->parts[i].facts.began < first) first = j->parts[i].facts.began;
    for (size_t i = 0; i < j->count; i++) j->parts[i].later = j->parts[i].facts.began - first;
}

static mr_trace_facts facts_of(const joining *j) {
    const part *p = &j->parts[0];
    mr_trace_facts facts = p->facts;
    facts.backend = mr_trace_builder_text(j->builder, text_of(p, facts.backend));
    facts.device = mr_trace_builder_text(j->builder, text_of(p, facts.device));
    facts.model = mr_trace_builder_text(j->builder, text_of(p, facts.model));
    facts.chooser = mr_trace_builder_text(j->builder, text_of(p, facts.chooser));
    facts.how = mr_trace_builder_text(j->builder, text_of(p, facts.how));
    facts.script = mr_trace_builder_text(j->builder, text_of(p, facts.script));
    facts.began -= p->later;
    for (size_t i = 1; i < j->count; i++) {
        facts.forgotten += j->parts[i].facts.forgotten;
        facts.exact = facts.exact && j->parts[i].facts.exact;
    }
    return facts;
}

static mr_status open_parts(joining *j, const mr_trace_bytes *parts, size_t count) {
    for (size_t i = 0; i < count && j->count < MOST; i++) {
        if (!parts[i].bytes) continue;
        part *p = &j->parts[j->count];
        j->count++; /* close_parts frees it */
        MR_TRY(open_part(parts[i], p));
        if (part_of(j, p->head.rank) != p)
            return mr_fail(MR_CODE_UNKNOWN, "two timelines are of rank %d", (int)p->head.rank);
    }
    if (!j->count) return mr_fail(MR_CODE_UNKNOWN, "no timeline is there to join");
    find_clocks(j);
    return find_order(j) ? MR_OK : mr_no_memory("to join timelines");
}

static mr_status build(joining *j) {
    for (size_t i = 0; i < j->count; i++) j->parts[i].next = 0;
    MR_TRY(add_spans(j));
    for (size_t i = 0; i < j->count; i++) MR_TRY(add_hazards(j, &j->parts[i]));
    return MR_OK;
}

static void close_parts(joining *j) {
    for (size_t i = 0; i < j->count; i++) {
        free(j->parts[i].index);
        free(j->parts[i].meeting_of);
        free(j->parts[i].stream_of);
        mr_vec_free(&j->parts[i].meetings);
    }
    mr_vec_free(&j->meetings);
    free(j);
}

mr_status mr_trace_join(const mr_trace_bytes *parts, size_t count, mr_trace **out_trace) {
    joining *j = calloc(1, sizeof *j);
    *out_trace = NULL;
    if (!j) return mr_no_memory("to join timelines");
    mr_status status = open_parts(j, parts, count);
    if (!status) status = mr_trace_builder_create(&j->builder);
    if (!status) {
        status = build(j);
        mr_trace_facts facts = facts_of(j);
        if (!status) status = mr_trace_builder_finish(j->builder, &facts, out_trace);
        else mr_trace_builder_destroy(j->builder);
    }
    close_parts(j);
    return status;
}
