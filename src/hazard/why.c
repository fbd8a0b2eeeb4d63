/* The chain that orders two operations: a search through the log, backwards from the second along
 * every edge that CUDA guarantees, for the shortest way to the first. Slow and simple; it answers a
 * person's question. (The checker's own clocks say whether; this says how.) */
#include "hazard/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    EDGE_NONE,
    EDGE_START,
    EDGE_STREAM,
    EDGE_EVENT,
    EDGE_BARRIER,
    EDGE_HOST,
    EDGE_WAITED
} edge_kind;

typedef struct {
    const checker *c;
    uint64_t count; /* lines in the log; index 0 is the newest */
    struct {
        uint32_t next;
        edge_kind kind;
    } * from; /* how an index was reached: from which later one */
    uint32_t *queue;
    uint32_t head, tail;
} search;

static const log_line *line_at(const search *s, uint64_t i) {
    return mr_hazard_log_back(s->c, i);
}

static void reach(search *s, uint64_t i, uint32_t from, edge_kind kind) {
    if (i >= s->count || s->from[i].kind != EDGE_NONE) return;
    s->from[i].next = from;
    s->from[i].kind = kind;
    s->queue[s->tail++] = (uint32_t)i;
}

static bool is_on_stream(const log_line *line) {
    return line->kind <= MR_ACTION_LAST_SUBMITTED;
}

/* Does the host, having done this, know that work is done? */
static bool is_sync(const log_line *line) {
    switch (line->kind) {
    case MR_ACTION_STREAM_SYNC:
    case MR_ACTION_STREAM_QUERY:
    case MR_ACTION_EVENT_SYNC:
    case MR_ACTION_EVENT_QUERY:
    case MR_ACTION_DEVICE_SYNC: return true;
    default: return line->synchronous;
    }
}

static bool joins_barrier(const log_line *earlier, const log_line *later) {
    return earlier->device == later->device && earlier->blocking && later->blocking &&
           (earlier->legacy || later->legacy);
}

static void reach_back_from_stream(search *s, uint32_t at, const log_line *line) {
    bool in_stream = false, by_host = false;
    for (uint64_t i = at + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (is_on_stream(e) && e->stream == line->stream && !in_stream) {
            in_stream = true;
            reach(s, i, at, EDGE_STREAM);
        } else if (is_on_stream(e) && joins_barrier(e, line)) {
            reach(s, i, at, EDGE_BARRIER);
        }
        if (!by_host && (!is_on_stream(e) || is_sync(e))) {
            by_host = true;
            reach(s, i, at, EDGE_HOST);
        }
    }
}

static void reach_back_from_host(search *s, uint32_t at, const log_line *line) {
    bool by_host = false;
    bool is_legacy_sync = line->kind == MR_ACTION_STREAM_SYNC && line->legacy;
    for (uint64_t i = at + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        bool covered = (line->kind == MR_ACTION_STREAM_SYNC || line->kind == MR_ACTION_STREAM_QUERY)
                           ? e->stream == line->stream ||
                                 (is_legacy_sync && e->blocking && e->device == line->device)
                           : line->kind == MR_ACTION_DEVICE_SYNC && e->device == line->device;
        if (is_on_stream(e) && covered) reach(s, i, at, EDGE_WAITED);
        if (!by_host && (!is_on_stream(e) || is_sync(e))) {
            by_host = true;
            reach(s, i, at, EDGE_HOST);
        }
    }
}

static void reach_record(search *s, uint32_t at, const log_line *line, edge_kind kind) {
    for (uint64_t i = at + 1; i < s->count && line->bound; i++)
        if (line_at(s, i)->seq == line->bound) reach(s, i, at, kind);
}

static void expand(search *s, uint32_t at) {
    const log_line *line = line_at(s, at);
    if (line->kind == MR_ACTION_WAIT) reach_record(s, at, line, EDGE_EVENT);
    if (line->kind == MR_ACTION_EVENT_SYNC || line->kind == MR_ACTION_EVENT_QUERY)
        reach_record(s, at, line, EDGE_WAITED);
    if (is_on_stream(line)) reach_back_from_stream(s, at, line);
    else reach_back_from_host(s, at, line);
}

static void put_step(const search *s, uint64_t i, mr_buffer *out) {
    static const char *const because[] = {[EDGE_STREAM] = "same stream",
                                          [EDGE_EVENT] = "event",
                                          [EDGE_BARRIER] = "default stream's barrier",
                                          [EDGE_HOST] = "host's order of calls",
                                          [EDGE_WAITED] = "the host waits for it"};
    const log_line *line = line_at(s, i);
    char place[160], stream[40];
    if (!line->stream) snprintf(stream, sizeof stream, "the host");
    else if (!is_on_stream(line))
        snprintf(stream, sizeof stream, "the host, for stream #%u", line->stream);
    else if (line->legacy) snprintf(stream, sizeof stream, "the default stream");
    else snprintf(stream, sizeof stream, "stream #%u", line->stream);
    mr_buffer_printf(out, "  #%llu %s by %s at %s\n", (unsigned long long)line->seq, line->op,
                     stream, mr_hazard_place(line->where, place, sizeof place));
    if (s->from[i].kind != EDGE_START)
        mr_buffer_printf(out, "    before, by %s:\n", because[s->from[i].kind]);
}

static bool find(search *s, uint64_t first, uint64_t second, mr_buffer *out) {
    uint64_t start = s->count, goal = s->count;
    for (uint64_t i = 0; i < s->count; i++) {
        if (line_at(s, i)->seq == second) start = i;
        if (line_at(s, i)->seq == first) goal = i;
    }
    if (start == s->count || goal == s->count) {
        mr_buffer_printf(out, "operation #%llu is not among the last %llu actions\n",
                         (unsigned long long)(start == s->count ? second : first),
                         (unsigned long long)s->count);
        return false;
    }
    reach(s, start, (uint32_t)start, EDGE_START);
    while (s->head < s->tail && s->from[goal].kind == EDGE_NONE) expand(s, s->queue[s->head++]);
    if (s->from[goal].kind == EDGE_NONE) {
        mr_buffer_printf(out, "nothing orders #%llu before #%llu\n", (unsigned long long)first,
                         (unsigned long long)second);
        return false;
    }
    mr_buffer_printf(out, "#%llu is ordered before #%llu:\n", (unsigned long long)first,
                     (unsigned long long)second);
    for (uint64_t i = goal;; i = s->from[i].next) {
        put_step(s, i, out);
        if (s->from[i].kind == EDGE_START) return true;
    }
}

bool mr_hazard_why(mr_hazard *c, uint64_t first_seq, uint64_t second_seq, mr_buffer *out) {
    if (!c->log) {
        mr_buffer_puts(out,
                       "the checker is off: mr.hazard.mode(\"collect\") before the operations\n");
        return false;
    }
    if (first_seq > second_seq) {
        uint64_t swap = first_seq;
        first_seq = second_seq;
        second_seq = swap;
    }
    search s = {.c = c, .count = c->logged < MR_HAZARD_LOG ? c->logged : MR_HAZARD_LOG};
    s.from = calloc(s.count + 1, sizeof *s.from);
    s.queue = calloc(s.count + 1, sizeof *s.queue);
    bool found = false;
    if (s.from && s.queue) found = find(&s, first_seq, second_seq, out);
    else mr_buffer_puts(out, "no memory for the search\n");
    free(s.from);
    free(s.queue);
    return found;
}
