/* The chain that orders two operations: a search through the log, backwards from the second along
 * every edge that CUDA guarantees, for the shortest way to the first. Slow and simple, since it answers a user's
 * question. (The checker's clocks tell whether there is an order; this tells how.) */
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
    EDGE_PEER,
    EDGE_COLLECTIVE,
    EDGE_USERS,
    EDGE_OWNER
} edge_kind;

typedef struct {
    const checker *c;
    uint64_t count; /* lines in the log; index 0 is the newest */
    /* From `count` on: the host's part of line i - count, a staged copy (R20). From 2 * `count` on: the predecessors of
     * line i - 2 * count, a member of a collective. Another member waits for these, not for the member's own work. */
    struct {
        uint32_t next;
        edge_kind kind;
    } * from;            /* how an index was reached, and from which later index */
    mr_place_set *gives; /* by line */
    uint32_t *queue;
    uint32_t head, tail;
} search;

static const log_line *line_at(const search *s, uint64_t i) {
    return mr_hazard_log_back(s->c, i % s->count);
}

static void reach(search *s, uint64_t i, uint32_t from, edge_kind kind) {
    if (s->from[i].kind != EDGE_NONE) return;
    s->from[i].next = from;
    s->from[i].kind = kind;
    s->queue[s->tail++] = (uint32_t)i;
}

static bool is_on_stream(const log_line *line) {
    return mr_kind_is(line->kind, MR_TRAIT_SUBMITTED) &&
           line->stream; /* an immediate free (R27) belongs to the host */
}

/* Whether all later actions of the host come after this line, or after the host's part of it. */
static bool is_of_host(const search *s, uint64_t i) {
    const log_line *line = line_at(s, i);
    mr_order_facts facts = mr_hazard_line_facts(line);
    return line->copy.reads_source ||
           mr_place_in(mr_order_returned(facts, MR_GUARANTEED), MR_PLACE_NODE) ||
           (!line->inside && mr_place_in(s->gives[i], MR_PLACE_HOST));
}

/* Ranks of one world are hosts that nothing orders. */
static bool are_of_one_host(const log_line *earlier, const log_line *later) {
    return earlier->host == later->host || !earlier->host || !later->host ||
           earlier->world != later->world;
}

/* Goes back to the last call of the same host; after a world of ranks has ended, to the calls of all its ranks. */
static void reach_back_to_host(search *s, uint32_t at) {
    const log_line *line = line_at(s, at);
    for (uint64_t i = at % s->count + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (!is_of_host(s, i) || !are_of_one_host(e, line)) continue;
        reach(s, e->copy.reads_source ? i + s->count : i, at, EDGE_HOST);
        if (!e->host || (e->host == line->host && e->world == line->world)) return;
    }
}

/* The devices whose walls the command comes after. */
static uint64_t behind_walls_of(const log_line *line) {
    uint64_t own = (uint64_t)1 << line->device;
    mr_order_set rows = line->walls ? mr_order_of_wall(MR_AT_ENTER, MR_GUARANTEED) : 0;
    for (; rows; rows &= rows - 1)
        if (mr_order_first(rows)->from == MR_PLACE_WALL) return own | line->walls;
    return own;
}

/* The place by which `later` comes after `earlier`: one that is in both sets. */
static edge_kind edge_of_meeting(const log_line *earlier, mr_place_set gives, const log_line *later,
                                 mr_place_set takes) {
    mr_place_set both = gives & takes;
    bool same_device = earlier->device == later->device;
    if (mr_place_in(both, MR_PLACE_LANE) && earlier->stream == later->stream) return EDGE_STREAM;
    if (same_device &&
        (mr_place_in(both, MR_PLACE_GATHERED) || mr_place_in(both, MR_PLACE_RELEASED)))
        return EDGE_BARRIER;
    if (mr_place_in(both, MR_PLACE_WALL) && earlier->walls & behind_walls_of(later))
        return EDGE_PEER;
    if (mr_place_in(both, MR_PLACE_DEVICE) && later->walls >> earlier->device & 1) return EDGE_PEER;
    return EDGE_NONE;
}

/* Goes back from a command of a stream, or from the host's part of a staged copy, which waits for the stream. */
static void reach_back_from_stream(search *s, uint32_t at, const log_line *line,
                                   mr_place_set takes) {
    bool in_stream = false;
    for (uint64_t i = at % s->count + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (!is_on_stream(e)) continue;
        edge_kind kind = edge_of_meeting(e, s->gives[i], line, takes);
        if (kind == EDGE_NONE || (kind == EDGE_STREAM && in_stream)) continue;
        if (kind == EDGE_STREAM) /* the search does not go on behind an allocation */
            in_stream = e->kind != MR_COMMAND_ALLOC;
        reach(s, i, at, kind);
    }
}

static void reach_record(search *s, uint32_t at, const log_line *line, edge_kind kind) {
    for (uint64_t i = at + 1; i < s->count && line->bound; i++)
        if (line_at(s, i)->seq == line->bound) reach(s, i, at, kind);
}

/* Goes back to the places for which the host has waited when `line` returns. */
static void reach_back_from_host(search *s, uint32_t at, const log_line *line) {
    mr_place_set waited = mr_order_returned(mr_hazard_line_facts(line), MR_GUARANTEED);
    if (mr_place_in(waited, MR_PLACE_RECORD)) reach_record(s, at, line, EDGE_WAITED);
    for (uint64_t i = at + 1; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        mr_place_set covered = s->gives[i] & waited;
        bool is_covered = (mr_place_in(covered, MR_PLACE_LANE) && e->stream == line->stream) ||
                          (mr_place_in(covered, MR_PLACE_DEVICE) && e->device == line->device);
        if (is_on_stream(e) && is_covered) reach(s, i, at, EDGE_WAITED);
    }
}

/* R61: goes back to the predecessors of the members whose data it gets. */
static void reach_members(search *s, uint32_t at, const log_line *line) {
    for (uint64_t i = 0; i < s->count; i++) {
        const log_line *e = line_at(s, i);
        if (e->meeting == line->meeting && line->sources >> e->member & 1)
            reach(s, i + 2 * s->count, at, EDGE_COLLECTIVE);
    }
}

static void expand(search *s, uint32_t at) {
    const log_line *line = line_at(s, at);
    mr_order_facts facts = mr_hazard_line_facts(line);
    /* A user may ask what an allocation comes after. But an allocation orders no other commands by that (R28). */
    mr_strength strength = s->from[at].kind == EDGE_START ? MR_ALLOCATOR : MR_GUARANTEED;
    bool is_staged = at >= s->count && at < 2 * s->count;
    mr_place_set takes = !is_staged ? mr_order_taken(facts, strength)
                                    : mr_order_called(facts, MR_GUARANTEED) | 1u << MR_PLACE_HOST;
    if (mr_place_in(takes, MR_PLACE_RECORD)) reach_record(s, at, line, EDGE_EVENT);
    bool is_passed = at < s->count && s->from[at].kind != EDGE_START;
    if (mr_place_in(takes, MR_PLACE_SOURCES) && is_passed) reach_members(s, at, line);
    if (is_on_stream(line)) reach_back_from_stream(s, at, line, takes);
    else reach_back_from_host(s, at, line);
    if (mr_place_in(takes, MR_PLACE_HOST)) reach_back_to_host(s, at);
}

/* The memory of a free waits for these streams before it is used again. The free itself does not wait. */
static void reach_guards(search *s, uint32_t at) {
    const log_line *line = line_at(s, at);
    mr_place_set put = mr_order_put(mr_hazard_line_facts(line), MR_PLACE_FREED, MR_GUARANTEED);
    for (size_t g = 0; g < line->guard_count; g++) {
        log_guard guard = line->guards[g];
        if (!mr_place_in(put, guard.by)) continue;
        edge_kind kind = guard.by == MR_PLACE_USERS ? EDGE_USERS : EDGE_OWNER;
        for (uint64_t i = at + 1; i < s->count; i++)
            if (line_at(s, i)->stream == guard.stream && mr_place_in(s->gives[i], MR_PLACE_LANE))
                reach(s, i, at, kind);
    }
}

/* By the name that the script gave, by its variable while the stream lives, or by its number. */
static void put_stream(const checker *c, const log_line *line, mr_buffer *out) {
    char name[NAME_SIZE] = "";
    for (const actor *a = c->order.actors; a && !line->stream_name && !name[0]; a = a->next)
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
                                          [EDGE_PEER] = "copy between devices",
                                          [EDGE_COLLECTIVE] = "collective, which needs its data",
                                          [EDGE_USERS] = "record_stream of its stream (R33)",
                                          [EDGE_OWNER] = "memory of a stream that was closed (R9)"};
    mr_buffer_puts(out, "  ");
    put_command(s->c, line_at(s, i), out);
    mr_buffer_puts(out, "\n");
    if (s->from[i].kind != EDGE_START)
        mr_buffer_printf(out, "    before, by %s:\n", because[s->from[i].kind]);
}

static bool search_for(search *s, uint64_t goal) {
    while (s->head < s->tail && s->from[goal].kind == EDGE_NONE) expand(s, s->queue[s->head++]);
    return s->from[goal].kind != EDGE_NONE;
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
    /* A person may ask what comes after a free, but nothing else comes after it by that (R28). */
    s->gives[goal] = mr_order_given(mr_hazard_line_facts(line_at(s, goal)), MR_ALLOCATOR);
    reach(s, start, (uint32_t)start, EDGE_START);
    bool ordered = search_for(s, goal), is_reuse = !ordered;
    if (!ordered) {
        reach_guards(s, (uint32_t)start);
        ordered = search_for(s, goal);
    }
    if (!ordered) mr_buffer_puts(out, "nothing orders ");
    put_command(s->c, line_at(s, goal), out);
    mr_buffer_puts(out, ordered ? " is ordered before " : " before ");
    if (ordered && is_reuse) mr_buffer_puts(out, "the reuse of the memory of ");
    put_command(s->c, line_at(s, start), out);
    mr_buffer_puts(out, ordered ? ":\n" : "\n");
    if (!ordered) return false;
    for (uint64_t i = goal;; i = s->from[i].next) {
        put_step(s, i, out);
        if (s->from[i].kind == EDGE_START) return true;
    }
}

/* False: no memory. The caller closes it in any case. */
static bool open_search(search *s, const checker *c) {
    *s = (search){.c = c, .count = mr_hazard_log_kept(c)};
    s->from = calloc(3 * s->count + 1, sizeof *s->from);
    s->queue = calloc(3 * s->count + 1, sizeof *s->queue);
    s->gives = calloc(s->count + 1, sizeof *s->gives);
    for (uint64_t i = 0; s->gives && i < s->count; i++)
        s->gives[i] = mr_order_given(mr_hazard_line_facts(line_at(s, i)), MR_GUARANTEED);
    return s->from && s->queue && s->gives;
}

static void close_search(search *s) {
    free(s->from);
    free(s->queue);
    free(s->gives);
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
    if (!c->log.lines) {
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
