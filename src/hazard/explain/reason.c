/* The reason of a report: which waits and records the script has for the two operations, and which rule
 * makes them insufficient.
 *
 * Searches the log, newest first, for the waits, records and synchronises that almost order the
 * pair. If there are several reasons, it reports the most specific one. A wait that was meant for
 * this pair but does not cover it says more than "there is no wait". */
#include "hazard/explain.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const texts[] = {
#define X(name, text, meaning) text,
    MR_HAZARD_REASON_LIST(X)
#undef X
};

const char *mr_hazard_reason_text(mr_hazard_reason reason) {
    return texts[reason];
}

/* Commands found about the pair. NULL: none of that kind. Commands that CUDA orders before the first access are
 * skipped: they cannot have been meant to order later commands after it. */
typedef struct {
    const log_line *never;       /* a wait on an event never recorded */
    const log_line *early;       /* a wait bound to a record of the first from before the access */
    const log_line *kept;        /* a wait that kept its record when its event was recorded again */
    const log_line *rerecorded;  /* by the first, covering the access: that later record */
    const log_line *replaced;    /* a record of the first that covers it, but was recorded over */
    const log_line *late;        /* the wait that was submitted only after the second */
    const log_line *elsewhere;   /* a wait, of a third stream or the host, that does cover it */
    const log_line *other;       /* a wait of the second, after the access, for another stream */
    const log_line *back;        /* a wait of the first, before the access, for the second */
    const log_line *reversed;    /* the same between the two */
    const log_line *first_never; /* as `never`, of the first, before the access */
    const log_line *sync_before; /* the host waited for the first, before the access */
    const log_line *sync_other;  /* the host waited, after the access, for something else */
    const log_line *unused;      /* a record of the first that covers the access */
    const log_line *barrier;     /* work of the default stream between the two */
    const log_line *of_call;     /* the wait that the second's call itself submits */
} findings;

typedef struct {
    const checker *c;
    const found_pair *pair;
    findings found;
    bool *past; /* by number in the log; made when it is first asked for */
    bool has_past;
} investigation;

static bool is_past(investigation *v, uint64_t back) {
    if (!v->has_past) v->past = mr_hazard_log_before(v->c, v->pair->first_seq);
    v->has_past = true;
    return v->past && v->past[back];
}

/* Whether the script asked for it. An operation of several steps waits and records by itself. */
static bool is_asked_for(const log_line *line) {
    if (mr_kind_is_of_event(line->kind))
        return strcmp(line->op, "copy_") != 0 && strcmp(line->op, "launch") != 0 &&
               strcmp(line->op, MR_MEETING_ORDER) != 0;
    return mr_hazard_line_is_event_wait(line);
}

/* Whether the log line is a call of the second's own host, or of the host that started it. */
static bool is_by_own_host(const checker *c, const log_line *line) {
    return !line->host || (line->host == c->hosts.number && line->world == c->hosts.worlds);
}

/* Work of a default stream that would order the two if their streams were blocking streams of its device. A record for
 * the wait inside the second's own call is not the script's, and does not count. */
static bool is_barrier(const log_line *line, const findings *f, const found_pair *pair) {
    if (f->of_call && line->seq == f->of_call->bound) return false;
    mr_order_facts facts = mr_hazard_line_facts(line);
    return line->seq > pair->first_seq && line->device == pair->first->device &&
           line->device == pair->second->device &&
           mr_place_in(mr_order_taken(facts, MR_GUARANTEED), MR_PLACE_GATHERED) &&
           mr_place_in(mr_order_given(facts, MR_GUARANTEED), MR_PLACE_RELEASED);
}

/* Whether it is a barrier's wait: just before, in the same call, the awaited stream has waited for `first`. */
static bool is_for_all(const checker *c, const log_line *wait, uint64_t back, uint32_t first) {
    const log_line *line;
    while ((line = mr_hazard_log_back(c, ++back)) && line->where.file == wait->where.file &&
           line->where.line == wait->where.line)
        if (line->kind == MR_COMMAND_WAIT && line->stream == wait->bound_stream &&
            line->bound_stream == first && line->seq < wait->bound)
            return true;
    return false;
}

/* A wait that delays the second: of its stream, or of the host that submits it. */
static void see_wait(investigation *v, const log_line *line, uint64_t back) {
    findings *f = &v->found;
    uint32_t first = v->pair->first->id, second = v->pair->second->id;
    bool after = line->seq > v->pair->first_seq;
    bool is_early = line->bound_stream == first && line->bound < v->pair->first_seq;
    if (line->bound == 0) {
        if (!f->never && (after || !is_past(v, back))) f->never = line;
    } else if (is_early) {
        if (!f->early && (after || !is_past(v, back))) f->early = line;
    } else if (!after && !f->early && is_for_all(v->c, line, back, first) && !is_past(v, back)) {
        f->early = line;
    } else if (after && line->bound_stream != first && line->bound_stream != second) {
        if (mr_hazard_line_is_event_wait(line) && !f->sync_other) f->sync_other = line;
        if (!mr_hazard_line_is_event_wait(line) && !f->other) f->other = line;
    }
}

static void see_sync(findings *f, const log_line *line, const found_pair *pair) {
    bool of_device = mr_hazard_line_after(line) == MR_AFTER_DEVICE;
    bool covers = of_device ? line->device == pair->first->device : line->stream == pair->first->id;
    /* A wait for that very stream was meant for its work; a device synchronise is often only the start of a program. */
    bool meant = line->kind == MR_COMMAND_STREAM_SYNC;
    if (covers && meant && line->seq < pair->first_seq && !f->sync_before) f->sync_before = line;
    bool own = !of_device && line->stream == pair->second->id;
    if (!covers && !own && line->seq > pair->first_seq && !f->sync_other) f->sync_other = line;
}

static void look_at(investigation *v, const log_line *line, uint64_t back) {
    findings *f = &v->found;
    const found_pair *pair = v->pair;
    uint32_t first = pair->first->id, second = pair->second->id;
    if (line->seq == pair->second_seq) return;
    if (is_barrier(line, f, pair) && !f->barrier) f->barrier = line;
    mr_command_after after = mr_hazard_line_after(line);
    bool is_by_host = after != MR_AFTER_NOTHING;
    if (is_by_host && (!is_by_own_host(v->c, line) || line->seq > pair->second_seq)) return;
    if (after == MR_AFTER_STREAM || after == MR_AFTER_DEVICE) see_sync(f, line, pair);
    if (!is_asked_for(line)) return;
    if (line->kind == MR_COMMAND_RECORD) {
        if (line->stream == first && line->seq > pair->first_seq && line->seq < pair->second_seq)
            f->unused = line;
    } else if (mr_hazard_line_is_event_wait(line) || line->stream == second) {
        see_wait(v, line, back);
    } else if (line->stream == first) {
        bool is_before = line->seq < pair->first_seq,
             is_for = line->bound && line->bound_stream == second;
        if (is_before && is_for && !f->back) f->back = line;
        if (is_before && !line->bound && !f->first_never) f->first_never = line;
        if (!is_before && is_for && line->seq < pair->second_seq) f->reversed = line;
    } else if (line->bound_stream == first && line->bound >= pair->first_seq && !f->elsewhere) {
        f->elsewhere = line;
    }
}

/* The second's stream, or the host, waits for the event of this record, but for another record of it. */
static void see_rerecording(investigation *v, const log_line *record) {
    findings *f = &v->found;
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(v->c, back)); back++) {
        bool waits = line->kind == MR_COMMAND_WAIT ? line->stream == v->pair->second->id
                                                   : mr_hazard_line_is_event_wait(line);
        if (!waits || line->event != record->event || !line->bound || !is_asked_for(line)) continue;
        if (line->seq >= v->pair->second_seq || line->bound == record->seq) continue;
        if (line->bound > record->seq) {
            f->replaced = record;
            f->late = line;
        } else if (line->seq > v->pair->first_seq || !is_past(v, back)) {
            f->rerecorded = record;
            f->kept = line;
            return;
        }
    }
}

#define MOST_RECORDS 64 /* whose waits are looked for */

static findings look(const checker *c, const found_pair *pair) {
    investigation v = {.c = c, .pair = pair, .found.of_call = mr_hazard_wait_of_call(c, pair)};
    const log_line *line;
    int records = MOST_RECORDS;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) look_at(&v, line, back);
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq <= pair->first_seq || !records) break;
        if (line->kind == MR_COMMAND_RECORD && is_asked_for(line) && line->seq < pair->second_seq &&
            line->stream == pair->first->id && records--)
            see_rerecording(&v, line);
    }
    free(v.past);
    return v.found;
}

/* Whether a wait for an event before its first record was meant for this pair. */
static bool meant_for_this(const checker *c, const log_line *never, const found_pair *pair) {
    if (never->seq > pair->first_seq) return true;
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->kind == MR_COMMAND_RECORD && line->event == never->event &&
            line->stream == pair->first->id)
            return line->seq > never->seq;
    return false;
}

#define MOST_LOOKED_AT 4096 /* of a storage that are looked through */

/* An access by that stream to the bytes of `tensor`, submitted up to `seq`; `writes`: only a write. */
static const entry *find_access(const mr_tensor *tensor, uint32_t stream, uint64_t seq,
                                bool writes) {
    const history *h = tensor->storage->observed;
    const entry *found = NULL;
    byte_view view;
    if (!h || !mr_hazard_view_of(tensor, &view)) return NULL;
    for (uint32_t i = 0; i < h->count && i < MOST_LOOKED_AT; i++) {
        const entry *e = h->entries[i];
        if (e->actor->id != stream || e->seq > seq || (writes && !(e->access & MR_WRITE))) continue;
        if (!found || e->seq > found->seq)
            if (mr_hazard_view_overlap(&e->view, &view)) found = e;
    }
    return found;
}

/* The access, up to the record, by which the awaited stream used the second's operands. */
static const entry *use_of(const found_pair *pair, const log_line *wait) {
    for (uint32_t i = 0; pair->command && i < pair->command->operand_count; i++) {
        const mr_operand *o = &pair->command->operands[i];
        const entry *e =
            find_access(o->tensor, wait->bound_stream, wait->bound, !(o->access & MR_WRITE));
        if (e) return e;
    }
    return NULL;
}

/* Whether the reader waited for an earlier write of the same writer to these bytes. */
static bool read_what_was_written(const found_pair *pair, const log_line *back) {
    return pair->tensor && find_access(pair->tensor, pair->second->id, back->bound, true);
}

typedef struct {
    const checker *c;
    mr_hazard_report *report;
    char first[NAME_SIZE], second[NAME_SIZE], other[NAME_SIZE], event[80], place[2][120];
} teller;

static void tell(teller *t, mr_hazard_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(teller *t, mr_hazard_reason reason, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->report->reason = reason;
    mr_text_formatv(t->report->why, sizeof t->report->why, format, args);
    va_end(args);
}

static const char *event_of(teller *t, const log_line *line) {
    return mr_hazard_event_text(line, t->event, sizeof t->event);
}

static const char *at(teller *t, int i, const log_line *line) {
    return mr_hazard_place(mr_hazard_shown(t->c, line->where), t->place[i], sizeof t->place[i]);
}

static const char *stream_of(const checker *c, teller *t, uint32_t id) {
    const actor *a = mr_hazard_find_actor(c, id);
    if (a) mr_hazard_stream_text(c, a, t->other, sizeof t->other);
    else snprintf(t->other, sizeof t->other, "stream #%u", id);
    return t->other;
}

static const char *waiter_of(const teller *t, const log_line *wait) {
    return mr_hazard_line_is_event_wait(wait) ? "the host" : t->second;
}

/* ---- by events */

static bool tell_events(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    bool writes = pair->first_access & MR_WRITE;
    bool host = pair->second == &c->order.host_actor;
    const char *verb = writes ? "writes" : "reads";
    const log_line *kept = f->kept, *late = f->late;
    if (kept && (kept->bound_stream != pair->first->id || kept->bound > pair->first_seq)) {
        tell(t, MR_HAZARD_BECAUSE_EVENT_RERECORDED,
             "%s waited for %s at %s, and %s recorded it again at %s, after that wait. A wait uses "
             "the record that was the latest at its call. That record was made on %s.",
             waiter_of(t, kept), event_of(t, kept), at(t, 0, kept), t->first,
             at(t, 1, f->rerecorded), stream_of(c, t, kept->bound_stream));
    } else if (kept) {
        tell(t, MR_HAZARD_BECAUSE_EVENT_RERECORDED,
             "%s waited for %s at %s, and it was recorded again at %s. A wait uses the record that "
             "was the latest at its call. That record was made before %s %s.",
             waiter_of(t, kept), event_of(t, kept), at(t, 0, kept), at(t, 1, f->rerecorded),
             t->first, verb);
    } else if (late) {
        tell(
            t, MR_HAZARD_BECAUSE_RECORDED_ON_WRONG_STREAM,
            "%s waits at %s for %s, but the record that covers `%s`, on %s at %s, had already been "
            "replaced. The event was recorded again on %s, and a wait uses the latest record.",
            waiter_of(t, late), at(t, 0, late), event_of(t, late), pair->first_op, t->first,
            at(t, 1, f->replaced), stream_of(c, t, late->bound_stream));
    } else if (f->early && f->early->seq > pair->first_seq) {
        tell(t,
             writes ? MR_HAZARD_BECAUSE_RECORDED_BEFORE_WRITE
                    : MR_HAZARD_BECAUSE_RECORDED_BEFORE_ACCESS,
             "%s waits for %s at %s, but the event was recorded before %s %s: a record covers only "
             "work that was submitted before it.",
             waiter_of(t, f->early), event_of(t, f->early), at(t, 0, f->early), t->first, verb);
    } else if (f->never && meant_for_this(c, f->never, pair)) {
        tell(t, MR_HAZARD_BECAUSE_NEVER_RECORDED,
             "%s waits for %s at %s, but the event had never been recorded at that time: such a "
             "wait succeeds at once and orders nothing.",
             waiter_of(t, f->never), event_of(t, f->never), at(t, 0, f->never));
    } else if (f->elsewhere && !host && f->elsewhere->kind == MR_COMMAND_WAIT && !f->early) {
        tell(t, MR_HAZARD_BECAUSE_WAIT_ON_WRONG_STREAM,
             "another stream waits for %s at %s, but %s, which uses the data, does not wait: a "
             "wait delays only the stream that waits.",
             t->first, at(t, 0, f->elsewhere), t->second);
    } else {
        return false;
    }
    return true;
}

/* ---- by the host's waits */

static bool tell_host_waits(const checker *c, teller *t, const findings *f,
                            const found_pair *pair) {
    const log_line *other = f->sync_other;
    if (!other) return false;
    if (other->kind == MR_COMMAND_DEVICE_SYNC)
        tell(t, MR_HAZARD_BECAUSE_OTHER_DEVICE,
             "the host synchronized device %d at %s, and %s runs on device %d: synchronizing one "
             "device does not wait for another.",
             other->device, at(t, 0, other), t->first, pair->first->device);
    else if (!mr_hazard_line_is_event_wait(other) && other->legacy && pair->first->grouped)
        tell(t, MR_HAZARD_BECAUSE_WAIT_ON_WRONG_STREAM,
             "the host waited for the default stream at %s: this covers the work of the default "
             "stream, but not the work that was submitted to %s after it (R5).",
             at(t, 0, other), t->first);
    else
        tell(t, MR_HAZARD_BECAUSE_WAIT_ON_WRONG_STREAM, "the host waited for %s at %s, not for %s.",
             stream_of(c, t, other->bound_stream ? other->bound_stream : other->stream),
             at(t, 0, other), t->first);
    return true;
}

static void tell_host(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    if (tell_host_waits(c, t, f, pair)) return;
    if (f->sync_before && f->sync_before->seq + 32 > pair->first_seq) {
        tell(t, MR_HAZARD_BECAUSE_SYNCHRONIZED_BEFORE,
             "the host waited at %s, before `%s` was submitted, and has not waited since: when a "
             "call returns, its work on the device may not be complete.",
             at(t, 0, f->sync_before), pair->first_op);
    } else {
        tell(t, MR_HAZARD_BECAUSE_HOST_DID_NOT_WAIT,
             "the host has not waited for %s since `%s` was submitted: when a call returns, its "
             "work on the device may not be complete.",
             t->first, pair->first_op);
    }
}

/* ---- two streams */

static bool barrier_missed(const actor *a, const actor *b) {
    return a->device == b->device && ((a->legacy && !b->grouped) || (b->legacy && !a->grouped));
}

/* Says that the second stream waits, but for other streams. These used its data, too, or did not. */
static bool tell_others(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    const entry *used = f->other ? use_of(pair, f->other) : NULL;
    if (used) {
        tell(t, MR_HAZARD_BECAUSE_ONE_OF_SEVERAL,
             "%s waits at %s for %s and its `%s`, but not for %s and its `%s`.", t->second,
             at(t, 0, f->other), stream_of(c, t, f->other->bound_stream), used->op, t->first,
             pair->first_op);
        return true;
    }
    if (f->other && pair->covered_other) {
        tell(t, MR_HAZARD_BECAUSE_ONE_OF_SEVERAL,
             "%s is ordered after another stream that used this data (it waits for %s at %s), but "
             "not after %s and its `%s`.",
             t->second, stream_of(c, t, f->other->bound_stream), at(t, 0, f->other), t->first,
             pair->first_op);
        return true;
    }
    const log_line *record = f->other ? mr_hazard_log_find(c, f->other->bound) : NULL;
    bool of_one_line = record && record->where.file == f->other->where.file &&
                       record->where.line == f->other->where.line; /* wait_stream */
    if (record && !of_one_line && record->seq > pair->first_seq) {
        tell(t, MR_HAZARD_BECAUSE_RECORDED_ON_WRONG_STREAM,
             "%s waits at %s for %s, but the event was recorded on %s at %s, and `%s` ran on %s: a "
             "record covers only the work of its own stream.",
             t->second, at(t, 0, f->other), event_of(t, f->other),
             stream_of(c, t, f->other->bound_stream), at(t, 1, record), pair->first_op, t->first);
        return true;
    }
    return false;
}

/* Whether the reader, submitted first, waits for an event that was not recorded yet. It was meant for the writer,
 * unless another stream records that event. */
static bool is_meant_for_second(const checker *c, const log_line *never, const found_pair *pair) {
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->kind == MR_COMMAND_RECORD && line->event == never->event &&
            line->stream != pair->second->id)
            return false;
    return pair->kind == MR_HAZARD_WRITE_AFTER_READ;
}

static bool tell_waits_of_first(const checker *c, teller *t, const findings *f,
                                const found_pair *pair) {
    if (f->first_never && is_meant_for_second(c, f->first_never, pair)) {
        tell(
            t, MR_HAZARD_BECAUSE_NEVER_RECORDED,
            "%s waits for %s at %s, before `%s`, but the event had never been recorded at that "
            "time: "
            "such a wait orders nothing. The fix keeps the order of submission; if `%s` is to come "
            "after `%s`, submit that and its record before the wait.",
            t->first, event_of(t, f->first_never), at(t, 0, f->first_never), pair->first_op,
            pair->first_op, pair->second_op);
        return true;
    }
    if (!f->reversed) return false;
    tell(
        t, MR_HAZARD_BECAUSE_NO_PATH,
        "nothing makes %s wait for %s: the wait at %s makes %s wait for %s, which is the other way "
        "round.",
        t->second, t->first, at(t, 0, f->reversed), t->first, t->second);
    return true;
}

static void tell_no_path(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    if (tell_waits_of_first(c, t, f, pair)) return;
    if (barrier_missed(pair->first, pair->second)) {
        bool to_legacy = pair->second->legacy;
        tell(t, MR_HAZARD_BECAUSE_NO_PATH,
             "nothing makes %s wait for %s: %s is non-blocking, so %s.", t->second, t->first,
             to_legacy ? t->first : t->second,
             to_legacy ? "the default stream does not wait for it"
                       : "it does not wait for the default stream");
    } else if (f->unused) {
        tell(t, MR_HAZARD_BECAUSE_NO_PATH,
             "nothing makes %s wait for %s: %s, recorded at %s, covers the operation, but %s does "
             "not wait for it.",
             t->second, t->first, event_of(t, f->unused), at(t, 0, f->unused), t->second);
    } else if (f->barrier && !pair->first->legacy && !pair->second->legacy) {
        bool second_free = !pair->second->grouped;
        tell(t, MR_HAZARD_BECAUSE_NONBLOCKING_STREAM,
             "the default stream's `%s` at %s was submitted between them, but %s is non-blocking, "
             "so %s.",
             f->barrier->op, at(t, 0, f->barrier), second_free ? t->second : t->first,
             second_free ? "it does not wait for the default stream"
                         : "the default stream does not wait for it");
    } else {
        tell(t, MR_HAZARD_BECAUSE_NO_PATH, "nothing makes %s wait for %s.", t->second, t->first);
    }
}

static void tell_streams(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    const log_line *first = mr_hazard_log_find(c, pair->first_seq);
    if (pair->kind == MR_HAZARD_WRITE_AFTER_READ && f->back &&
        read_what_was_written(pair, f->back)) {
        tell(t, MR_HAZARD_BECAUSE_ONE_WAY,
             "%s waits for %s at %s before it reads, but nothing makes %s wait for that read "
             "before it writes again.",
             t->first, t->second, at(t, 0, f->back), t->second);
    } else if (f->early && !mr_hazard_line_is_event_wait(f->early)) {
        tell(t, MR_HAZARD_BECAUSE_WAITED_BEFORE_WORK,
             "%s waits for %s at %s, but this wait was submitted before `%s`: a wait covers only "
             "work that was submitted before it.",
             t->second, t->first, at(t, 0, f->early), pair->first_op);
    } else if (f->of_call) {
        tell(t, MR_HAZARD_BECAUSE_NO_PATH,
             "the call at %s makes %s wait for %s, the current stream, but nothing makes that wait "
             "for %s.",
             at(t, 0, f->of_call), t->second, stream_of(c, t, f->of_call->bound_stream), t->first);
    } else if (tell_others(c, t, f, pair) || tell_host_waits(c, t, f, pair)) {
        return;
    } else if (pair->covered_other && !barrier_missed(pair->first, pair->second)) {
        tell(t, MR_HAZARD_BECAUSE_ONE_OF_SEVERAL,
             "%s is ordered after another stream that used this data, but not after %s and its "
             "`%s`.",
             t->second, t->first, pair->first_op);
    } else if (first && first->synchronous) {
        bool free = barrier_missed(pair->first, pair->second);
        tell(t, MR_HAZARD_BECAUSE_COPY_STILL_PENDING,
             "`%s` returned before the copy was done on the device, and %s does not wait for it%s.",
             pair->first_op, t->second,
             free ? ": a non-blocking stream does not wait for the default stream" : "");
    } else {
        tell_no_path(c, t, f, pair);
    }
}

/* ---- lifetime */

static void tell_lifetime(teller *t, const found_pair *pair) {
    char made[120];
    mr_site site = pair->unset_made.file ? pair->unset_made : pair->history->storage->made;
    mr_hazard_place(mr_hazard_shown(t->c, site), made, sizeof made);
    if (mr_hazard_is_before_launch(pair)) {
        tell(t,
             pair->kind == MR_HAZARD_UNINITIALISED_READ ? MR_HAZARD_BECAUSE_NEVER_WRITTEN
                                                        : MR_HAZARD_BECAUSE_ALLOC_NOT_ORDERED,
             "the memory is that of a graph, captured at %s, and `%s` comes after no launch of it: "
             "only launches write it.",
             made, pair->second_op);
        return;
    }
    if (pair->kind == MR_HAZARD_UNINITIALISED_READ) {
        tell(t, MR_HAZARD_BECAUSE_NEVER_WRITTEN,
             pair->unset_made.file
                 ? "%llu of the bytes are copied from memory that was allocated at %s, where "
                   "nothing had written them: any value may be read."
                 : "nothing has written %llu of the bytes since they were allocated at %s: any "
                   "value may be read.",
             (unsigned long long)pair->unset_bytes, made);
        return;
    }
    if (pair->kind == MR_HAZARD_USE_BEFORE_ALLOC) {
        tell(t, MR_HAZARD_BECAUSE_ALLOC_NOT_ORDERED,
             "the memory was allocated at %s in the order of %s, and nothing makes %s wait for "
             "that allocation.",
             made, t->first, t->second);
    } else if (pair->second->device < 0) {
        tell(t, MR_HAZARD_BECAUSE_HOST_DID_NOT_WAIT,
             "the memory, allocated at %s, is freed at once: cudaFree does not wait for memory of "
             "a pool (R27). The host has not waited for %s, so the next allocation may reuse the "
             "memory while %s still uses it.",
             made, t->first, t->first);
    } else if (!pair->second_where.file) {
        tell(t, MR_HAZARD_BECAUSE_COLLECTED,
             "the memory, allocated at %s, was collected by Lua and freed in the order of %s while "
             "work in %s was pending. The next allocation in %s may reuse it (R29).",
             made, t->second, t->first, t->second);
    } else {
        tell(t, MR_HAZARD_BECAUSE_FREED_WITHOUT_RECORD_STREAM,
             "the memory, allocated at %s, is freed in the order of %s, which does not wait for "
             "%s. The next allocation in %s may reuse it (R29) while %s still uses it.",
             made, t->second, t->first, t->second, t->first);
    }
}

void mr_hazard_explain(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    teller t = {.c = c, .report = report};
    mr_hazard_stream_text(c, pair->first, t.first, sizeof t.first);
    mr_hazard_stream_text(c, pair->second, t.second, sizeof t.second);
    if (pair->second == &c->order.host_actor) snprintf(t.second, sizeof t.second, "the host");
    if (pair->first == &c->order.host_actor) snprintf(t.first, sizeof t.first, "the host");
    if (pair->kind >= MR_HAZARD_USE_AFTER_FREE) {
        tell_lifetime(&t, pair);
        return;
    }
    findings f = look(c, pair);
    if (tell_events(c, &t, &f, pair)) return;
    if (pair->second == &c->order.host_actor) tell_host(c, &t, &f, pair);
    else tell_streams(c, &t, &f, pair);
}
