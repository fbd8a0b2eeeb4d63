/* The chain that orders two operations: a search through the log, backwards from the second along
 * every edge that CUDA guarantees, for the shortest way to the first. Slow and simple; it answers a
 * person's question. (The checker's own clocks say whether; this says how.) */
#include "hazard/explain.h"

#include "base/text.h"

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
    EDGE_WAITED,
    EDGE_PEER
} edge_kind;

typedef struct {
    const checker *c;
    uint64_t count; /* lines in the log; index 0 is the newest */
    /* From `count` on: line i - count again, a staged copy (R20), as what the host did in it. */
    struct {
        uint32_t next;
        edge_kind kind;
    } * from; /* how an index was reached: from which later one */
    uint32_t *queue;
    uint32_t head, tail;
} search;

static const log_line *line_at(const search *s, uint64_t i) {
    return mr_hazard_log_back(s->c, i < s->count ? i : i - s->count);
}

static void reach(search *s, uint64_t i, uint32_t from, edge_kind kind) {
    if (s->from[i].kind != EDGE_NONE) return;
    s->from[i].next = from;
    s->from[i].kind = kind;
    s->queue[s->tail++] = (uint32_t)i;
}

static bool is_on_stream(const log_line *line) {
    return (mr_command_kinds[line->kind].traits & MR_TRAIT_SUBMITTED) &&
           line->stream; /* a free at once is the host's */
}

/* Does whatever the host submits or does later come after this, or after the host's part in it? */
static bool is_of_host(const log_line *line) {
    return line->copy.host_waits || line->copy.staged || (!is_on_stream(line) && !line->inside);
}

static bool joins_barrier(const log_line *earlier, const log_line *later) {
    return earlier->device == later->device && earlier->blocking && later->blocking &&
           (earlier->legacy || later->legacy);
}

/* R60 */
static bool joins_peer_copy(const log_line *copy, const log_line *other) {
    return copy->copy.peer &&
           (copy->peer_device[0] == other->device || copy->peer_device[1] == other->device);
}

/* Does the host know `e` to be done when it goes on from `line`? */
static bool is_covered(const log_line *line, const log_line *e) {
    switch (mr_hazard_line_after(line)) {
    case MR_AFTER_STREAM: return e->stream == line->stream;
    case MR_AFTER_DEVICE: return e->device == line->device;
    case MR_AFTER_RECORD: /* what it captured lies behind the record */
    case MR_AFTER_NOTHING: break;
    }
    return false;
}

static void reach_back_to_host(search *s, uint32_t at) {
    for (uint64_t i = at % s->count + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (!is_of_host(e)) continue;
        reach(s, e->copy.staged ? i + s->count : i, at, EDGE_HOST);
        return;
    }
}

/* From what the host does in a staged copy: it waits for the stream's own work, and joins nothing itself. */
static void reach_back_from_stream(search *s, uint32_t at, const log_line *line) {
    bool in_stream = false, of_host = at >= s->count;
    for (uint64_t i = at % s->count + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (!is_on_stream(e) || e->kind == MR_COMMAND_FREE)
            continue; /* nothing follows from that */
        if (e->stream == line->stream && !in_stream) {
            in_stream = e->kind != MR_COMMAND_ALLOC; /* nothing is found behind it */
            reach(s, i, at, EDGE_STREAM);
        } else if (of_host) {
            continue;
        } else if (joins_barrier(e, line)) {
            reach(s, i, at, EDGE_BARRIER);
        } else if (joins_peer_copy(e, line) || joins_peer_copy(line, e)) {
            reach(s, i, at, EDGE_PEER);
        }
    }
}

static void reach_back_from_host(search *s, uint32_t at, const log_line *line) {
    for (uint64_t i = at + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (is_on_stream(e) && e->kind != MR_COMMAND_FREE && is_covered(line, e))
            reach(s, i, at, EDGE_WAITED);
    }
}

static void reach_record(search *s, uint32_t at, const log_line *line, edge_kind kind) {
    for (uint64_t i = at + 1; i < s->count && line->bound; i++)
        if (line_at(s, i)->seq == line->bound) reach(s, i, at, kind);
}

static void expand(search *s, uint32_t at) {
    const log_line *line = line_at(s, at);
    if (line->kind == MR_COMMAND_WAIT) reach_record(s, at, line, EDGE_EVENT);
    if (mr_hazard_line_is_event_wait(line)) reach_record(s, at, line, EDGE_WAITED);
    /* Nothing comes before something else because it comes before an allocation (R28). */
    if (line->kind == MR_COMMAND_ALLOC && s->from[at].kind != EDGE_START) return;
    if (is_on_stream(line)) reach_back_from_stream(s, at, line);
    else reach_back_from_host(s, at, line);
    reach_back_to_host(s, at);
}

/* By the name that the script gave, by its variable while the stream lives, or by its number. */
static void put_stream(const checker *c, const log_line *line, mr_buffer *out) {
    char name[NAME_SIZE] = "";
    for (const actor *a = c->actors; a && !line->stream_name && !name[0]; a = a->next)
        if (a->id == line->stream) mr_hazard_stream_text(c, a, name, sizeof name);
    if (line->legacy || line->per_thread) {
        mr_buffer_printf(out, "the %s stream", line->legacy ? "default" : "per-thread");
        if (c->machine->device_count > 1) mr_buffer_printf(out, " of device %d", line->device);
    } else if (line->stream_name || (name[0] && strncmp(name, "stream #", 8) != 0)) {
        mr_buffer_puts(out, "stream ");
        mr_text_put(out, line->stream_name ? line->stream_name->text : name);
    } else {
        mr_buffer_printf(out, "stream #%u", line->stream);
    }
}

static void put_event(const checker *c, const log_line *line, mr_buffer *out) {
    char text[80];
    bool named = !line->event_name && mr_hazard_event_code(c, line->event, NULL, text, sizeof text);
    mr_buffer_puts(out, named ? "event `" : "");
    mr_text_put(out, named ? text : mr_hazard_event_text(line, text, sizeof text));
    mr_buffer_puts(out, named ? "`" : "");
}

/* "`fill_` by stream a at race.lua:5 (#6)", "`synchronize` by the host, for stream a, at ..." */
static void put_command(const checker *c, const log_line *line, mr_buffer *out) {
    char place[PLACE_SIZE];
    mr_buffer_puts(out, "`");
    mr_text_put(out, line->op);
    mr_buffer_puts(out, "`");
    if (line->event && is_on_stream(line)) {
        mr_buffer_puts(out, " of ");
        put_event(c, line, out);
    }
    mr_buffer_puts(out, " by ");
    if (is_on_stream(line)) {
        put_stream(c, line, out);
    } else {
        mr_buffer_puts(out, "the host");
        if (line->event || line->stream || line->kind == MR_COMMAND_DEVICE_SYNC)
            mr_buffer_puts(out, ", for ");
        if (line->event) put_event(c, line, out);
        else if (line->stream) put_stream(c, line, out);
        else if (line->kind == MR_COMMAND_DEVICE_SYNC)
            mr_buffer_printf(out, "device %d", line->device);
    }
    mr_buffer_puts(out, " at ");
    mr_text_put(out, mr_hazard_place(mr_hazard_shown(c, line->where), place, sizeof place));
    mr_buffer_printf(out, " (#%llu)", (unsigned long long)line->seq);
}

static void put_step(const search *s, uint64_t i, mr_buffer *out) {
    static const char *const because[] = {[EDGE_STREAM] = "same stream",
                                          [EDGE_EVENT] = "event",
                                          [EDGE_BARRIER] = "default stream's barrier",
                                          [EDGE_HOST] = "host's order of calls",
                                          [EDGE_WAITED] = "the host waits for it",
                                          [EDGE_PEER] = "copy between devices"};
    mr_buffer_puts(out, "  ");
    put_command(s->c, line_at(s, i), out);
    mr_buffer_puts(out, "\n");
    if (s->from[i].kind != EDGE_START)
        mr_buffer_printf(out, "    before, by %s:\n", because[s->from[i].kind]);
}

static bool find(search *s, uint64_t first, uint64_t second, mr_buffer *out) {
    uint64_t start = s->count, goal = s->count;
    for (uint64_t i = 0; i < s->count; i++) {
        if (line_at(s, i)->inside) continue;
        if (line_at(s, i)->seq == second) start = i;
        if (line_at(s, i)->seq == first) goal = i;
    }
    if (start == s->count || goal == s->count) {
        mr_buffer_printf(out,
                         "operation #%llu is not in the log: it was refused, or it came before the "
                         "last %llu commands\n",
                         (unsigned long long)(start == s->count ? second : first),
                         (unsigned long long)s->count);
        return false;
    }
    if (start == goal) {
        put_command(s->c, line_at(s, start), out);
        mr_buffer_puts(out, " is the same operation: it cannot be ordered with itself\n");
        return false;
    }
    reach(s, start, (uint32_t)start, EDGE_START);
    while (s->head < s->tail && s->from[goal].kind == EDGE_NONE) expand(s, s->queue[s->head++]);
    bool ordered = s->from[goal].kind != EDGE_NONE;
    if (!ordered) mr_buffer_puts(out, "nothing orders ");
    put_command(s->c, line_at(s, goal), out);
    mr_buffer_puts(out, ordered ? " is ordered before " : " before ");
    put_command(s->c, line_at(s, start), out);
    mr_buffer_puts(out, ordered ? ":\n" : "\n");
    if (!ordered) return false;
    for (uint64_t i = goal;; i = s->from[i].next) {
        put_step(s, i, out);
        if (s->from[i].kind == EDGE_START) return true;
    }
}

/* False: no memory. To be closed in any case. */
static bool open_search(search *s, const checker *c) {
    *s = (search){.c = c, .count = c->logged < MR_HAZARD_LOG ? c->logged : MR_HAZARD_LOG};
    s->from = calloc(2 * s->count + 1, sizeof *s->from);
    s->queue = calloc(2 * s->count + 1, sizeof *s->queue);
    return s->from && s->queue;
}

static void close_search(search *s) {
    free(s->from);
    free(s->queue);
}

bool *mr_hazard_log_before(const checker *c, uint64_t seq) {
    search s;
    bool *before = open_search(&s, c) ? calloc(s.count + 1, sizeof *before) : NULL;
    for (uint64_t i = 0; before && i < s.count; i++)
        if (line_at(&s, i)->seq == seq && !line_at(&s, i)->inside)
            reach(&s, i, (uint32_t)i, EDGE_START);
    while (s.head < s.tail) expand(&s, s.queue[s.head++]);
    for (uint64_t i = 0; before && i < s.count; i++) before[i] = s.from[i].kind > EDGE_START;
    close_search(&s);
    return before;
}

bool mr_hazard_why(mr_hazard *c, uint64_t first_seq, uint64_t second_seq, mr_buffer *out) {
    if (!c->log) {
        mr_buffer_puts(
            out,
            "the checker was not on: call mr.hazard.mode(\"collect\") before the operations\n");
        return false;
    }
    if (first_seq > second_seq) {
        uint64_t swap = first_seq;
        first_seq = second_seq;
        second_seq = swap;
    }
    search s;
    bool found = false;
    if (open_search(&s, c)) found = find(&s, first_seq, second_seq, out);
    else mr_buffer_puts(out, "no memory for the search\n");
    close_search(&s);
    return found;
}
