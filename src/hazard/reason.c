/* Why: what the script did write about the two sides, and which rule makes it not enough.
 *
 * Looks through the log, newest first, for the waits, records and synchronises that come nearest to
 * ordering the pair. Of several shortcomings the most specific is told: a wait that was meant for this
 * pair and missed says more than that there is none. */
#include "hazard/state.h"

#include <stdio.h>
#include <string.h>

static const char *const texts[] = {
#define X(name, text) text,
    MR_HAZARD_REASON_LIST(X)
#undef X
};

const char *mr_hazard_reason_text(mr_hazard_reason reason) {
    return texts[reason];
}

/* What was found about the pair. NULL: nothing of the kind. */
typedef struct {
    const log_line *never; /* a wait of the second on an event never recorded */
    const log_line
        *early; /* a wait of the second bound to a record of the first from before the access */
    const log_line *rerecorded;  /* a later record of that event, which would have covered it */
    const log_line *elsewhere;   /* a wait, of a third stream or the host, that does cover it */
    const log_line *other;       /* a wait of the second, after the access, for another stream */
    const log_line *back;        /* a wait of the first, before the access, for the second */
    const log_line *sync_before; /* the host waited for the first, before the access */
    const log_line *sync_other;  /* the host waited, after the access, for something else */
    const log_line *unused;      /* a record of the first that covers the access */
    const log_line *barrier;     /* work of the default stream between the two */
} findings;

static bool is_wait(const log_line *line, uint32_t stream) {
    if (stream) return line->kind == MR_ACTION_WAIT && line->stream == stream;
    return line->kind == MR_ACTION_EVENT_SYNC || line->kind == MR_ACTION_EVENT_QUERY;
}

/* Work of a default stream that would order the two if they were blocking streams of its device. */
static bool is_barrier(const log_line *line, const found_pair *pair) {
    return line->legacy && line->kind <= MR_ACTION_LAST_SUBMITTED &&
           line->kind != MR_ACTION_ALLOC && line->kind != MR_ACTION_FREE &&
           line->seq > pair->first_seq && line->device == pair->first->device &&
           line->device == pair->second->device;
}

static void see_wait(findings *f, const log_line *line, const found_pair *pair, bool of_second) {
    uint64_t n = pair->first_seq;
    uint32_t first = pair->first->id;
    if (of_second) {
        if (line->bound == 0 && !f->never) f->never = line;
        else if (line->bound_stream == first && line->bound < n && !f->early) f->early = line;
        else if (line->bound && line->bound_stream != first &&
                 line->bound_stream != pair->second->id && line->seq > n && !f->other)
            f->other = line;
    } else if (line->bound_stream == first && line->bound >= n && !f->elsewhere) {
        f->elsewhere = line;
    }
}

static void see_sync(findings *f, const log_line *line, const found_pair *pair) {
    bool covers = line->kind == MR_ACTION_DEVICE_SYNC ? line->device == pair->first->device
                                                      : line->stream == pair->first->id;
    /* Waiting for that very stream was meant for its work; a device synchronise is often just a start. */
    bool meant = line->kind == MR_ACTION_STREAM_SYNC;
    if (covers && meant && line->seq < pair->first_seq && !f->sync_before) f->sync_before = line;
    if (!covers && line->seq > pair->first_seq && !f->sync_other) f->sync_other = line;
}

static findings look(const checker *c, const found_pair *pair) {
    findings f = {0};
    const log_line *line;
    uint32_t first = pair->first->id, second = pair->second->id;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++) {
        if (line->seq == pair->second_seq) continue;
        if (is_barrier(line, pair) && !f.barrier) f.barrier = line;
        if (line->kind == MR_ACTION_RECORD && line->stream == first && line->seq > pair->first_seq)
            f.unused = line;
        else if (line->kind == MR_ACTION_WAIT && line->stream == first &&
                 line->seq < pair->first_seq && line->bound && line->bound_stream == second &&
                 !f.back)
            f.back = line;
        else if (is_wait(line, second)) see_wait(&f, line, pair, true);
        else if (line->kind == MR_ACTION_WAIT || is_wait(line, 0)) see_wait(&f, line, pair, false);
        else if (line->kind == MR_ACTION_STREAM_SYNC || line->kind == MR_ACTION_STREAM_QUERY ||
                 line->kind == MR_ACTION_DEVICE_SYNC)
            see_sync(&f, line, pair);
    }
    for (uint64_t back = 0; f.early && (line = mr_hazard_log_back(c, back)); back++)
        if (line->kind == MR_ACTION_RECORD && line->event == f.early->event &&
            line->seq > pair->first_seq && line->stream == first)
            f.rerecorded = line;
    return f;
}

/* An event that was waited for before it was recorded at all: is it this pair's? */
static bool meant_for_this(const checker *c, const log_line *never, const found_pair *pair) {
    if (never->seq > pair->first_seq) return true;
    const log_line *line;
    for (uint64_t back = 0; (line = mr_hazard_log_back(c, back)); back++)
        if (line->kind == MR_ACTION_RECORD && line->event == never->event &&
            line->stream == pair->first->id)
            return line->seq > never->seq;
    return false;
}

typedef struct {
    mr_hazard_report *report;
    char first[NAME_SIZE], second[NAME_SIZE], event[80], place[2][120];
} teller;

static void tell(teller *t, mr_hazard_reason reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(teller *t, mr_hazard_reason reason, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->report->reason = reason;
    vsnprintf(t->report->why, sizeof t->report->why, format, args);
    va_end(args);
}

static const char *event_of(teller *t, const log_line *line) {
    return mr_hazard_event_text(line, t->event, sizeof t->event);
}

static const char *at(teller *t, int i, const log_line *line) {
    return mr_hazard_place(line->where, t->place[i], sizeof t->place[i]);
}

/* ---- by events */

static bool tell_events(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    bool writes = pair->first_access & MR_WRITE;
    bool host = pair->second == &c->host_actor;
    const char *verb = writes ? "writes" : "reads";
    if (f->early && f->rerecorded && f->rerecorded->seq > f->early->seq) {
        tell(t, MR_HAZARD_BECAUSE_EVENT_RERECORDED,
             "%s waited for %s at %s, and it was recorded again at %s: a wait keeps the record "
             "that it found, which was made before %s %s.",
             t->second, event_of(t, f->early), at(t, 0, f->early), at(t, 1, f->rerecorded),
             t->first, verb);
    } else if (f->early && f->early->seq > pair->first_seq) {
        tell(t,
             writes ? MR_HAZARD_BECAUSE_RECORDED_BEFORE_WRITE
                    : MR_HAZARD_BECAUSE_RECORDED_BEFORE_ACCESS,
             "%s waits for %s at %s, but that was recorded before %s %s: a record covers only what "
             "was submitted before it.",
             t->second, event_of(t, f->early), at(t, 0, f->early), t->first, verb);
    } else if (f->never && meant_for_this(c, f->never, pair)) {
        tell(t, MR_HAZARD_BECAUSE_NEVER_RECORDED,
             "%s waits for %s at %s, but at that moment it had never been recorded: such a wait "
             "succeeds at once and orders nothing.",
             t->second, event_of(t, f->never), at(t, 0, f->never));
    } else if (f->elsewhere && !host && f->elsewhere->kind == MR_ACTION_WAIT) {
        tell(t, MR_HAZARD_BECAUSE_WAIT_ON_WRONG_STREAM,
             "another stream waits for %s at %s, but not %s, which uses the data: a wait holds up "
             "only the stream that it is issued on.",
             t->first, at(t, 0, f->elsewhere), t->second);
    } else {
        return false;
    }
    return true;
}

/* ---- the host as the second side */

static void tell_host(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    (void)c;
    bool waited_other = f->sync_other || f->other;
    const log_line *other = f->sync_other ? f->sync_other : f->other;
    if (waited_other && other->kind == MR_ACTION_DEVICE_SYNC) {
        tell(t, MR_HAZARD_BECAUSE_OTHER_DEVICE,
             "the host synchronized device %d at %s, and %s runs on device %d: synchronizing one "
             "device does not wait for another.",
             other->device, at(t, 0, other), t->first, pair->first->device);
    } else if (waited_other) {
        tell(t, MR_HAZARD_BECAUSE_WAIT_ON_WRONG_STREAM,
             "the host waited for another stream at %s, not for %s.", at(t, 0, other), t->first);
    } else if (f->sync_before && f->sync_before->seq + 32 > pair->first_seq) {
        tell(t, MR_HAZARD_BECAUSE_SYNCHRONIZED_BEFORE,
             "the host waited at %s, before `%s` was submitted, and not again since: the call has "
             "returned, the work need not be done.",
             at(t, 0, f->sync_before), pair->first_op);
    } else {
        tell(t, MR_HAZARD_BECAUSE_HOST_DID_NOT_WAIT,
             "the host has not waited for %s since `%s` was submitted: that the call has returned "
             "does not mean that the work is done.",
             t->first, pair->first_op);
    }
}

/* ---- two streams */

static bool barrier_missed(const actor *a, const actor *b) {
    return a->device == b->device && ((a->legacy && !b->grouped) || (b->legacy && !a->grouped));
}

static void tell_streams(const checker *c, teller *t, const findings *f, const found_pair *pair) {
    const log_line *first = mr_hazard_log_find(c, pair->first_seq);
    if (pair->kind == MR_HAZARD_WRITE_AFTER_READ && f->back) {
        tell(t, MR_HAZARD_BECAUSE_ONE_WAY,
             "%s waits for %s at %s, so it reads what was written; nothing makes %s wait until it "
             "has been read before writing again.",
             t->first, t->second, at(t, 0, f->back), t->second);
    } else if (pair->covered_other || f->other) {
        tell(t, MR_HAZARD_BECAUSE_ONE_OF_SEVERAL,
             "%s is ordered after another stream%s%s, but not after %s: each producer needs a wait "
             "of its own.",
             t->second, f->other ? " at " : "", f->other ? at(t, 0, f->other) : "", t->first);
    } else if (first && first->synchronous) {
        tell(t, MR_HAZARD_BECAUSE_COPY_STILL_PENDING,
             "`%s` returned before the copy was done on the device: it orders %s, which does not "
             "take part in the default stream's barrier, in no way.",
             pair->first_op, t->second);
    } else if (barrier_missed(pair->first, pair->second)) {
        bool to_legacy = pair->second->legacy;
        tell(t, MR_HAZARD_BECAUSE_NO_PATH,
             "nothing makes %s wait for %s: %s is non-blocking, so %s.", t->second, t->first,
             to_legacy ? t->first : t->second,
             to_legacy ? "the default stream does not wait for it"
                       : "it does not wait for the default stream");
    } else if (f->unused) {
        tell(t, MR_HAZARD_BECAUSE_NO_PATH,
             "nothing makes %s wait for %s: %s, recorded at %s, would cover it, but %s does not "
             "wait for it.",
             t->second, t->first, event_of(t, f->unused), at(t, 0, f->unused), t->second);
    } else if (f->barrier && !pair->first->legacy && !pair->second->legacy) {
        bool second_free = !pair->second->grouped;
        tell(t, MR_HAZARD_BECAUSE_NONBLOCKING_STREAM,
             "the default stream's `%s` at %s lies between them, but %s is non-blocking, so %s.",
             f->barrier->op, at(t, 0, f->barrier), second_free ? t->second : t->first,
             second_free ? "it does not wait for the default stream"
                         : "the default stream does not wait for it");
    } else {
        tell(t, MR_HAZARD_BECAUSE_NO_PATH, "nothing makes %s wait for %s.", t->second, t->first);
    }
}

/* ---- lifetime */

static void tell_lifetime(teller *t, const found_pair *pair) {
    char made[120];
    mr_hazard_place(pair->history->storage->made, made, sizeof made);
    if (pair->kind == MR_HAZARD_USE_BEFORE_ALLOC) {
        tell(t, MR_HAZARD_BECAUSE_ALLOC_NOT_ORDERED,
             "the memory was allocated at %s in the order of %s, and nothing makes %s wait for "
             "that.",
             made, t->first, t->second);
    } else if (!pair->second_where.file) {
        tell(t, MR_HAZARD_BECAUSE_COLLECTED,
             "the memory, allocated at %s, was collected by Lua and freed in the order of %s while "
             "work in %s was pending: the next allocation may get it.",
             made, t->second, t->first);
    } else {
        tell(t, MR_HAZARD_BECAUSE_FREED_WITHOUT_RECORD_STREAM,
             "the memory, allocated at %s, is freed in the order of %s, which does not wait for "
             "%s: the next allocation may get it while %s still uses it.",
             made, t->second, t->first, t->first);
    }
}

void mr_hazard_explain(const checker *c, const found_pair *pair, mr_hazard_report *report) {
    teller t = {.report = report};
    mr_hazard_stream_text(c, pair->first, t.first, sizeof t.first);
    mr_hazard_stream_text(c, pair->second, t.second, sizeof t.second);
    if (pair->second == &c->host_actor) snprintf(t.second, sizeof t.second, "the host");
    if (pair->first == &c->host_actor) snprintf(t.first, sizeof t.first, "the host");
    if (pair->kind >= MR_HAZARD_USE_AFTER_FREE) {
        tell_lifetime(&t, pair);
        return;
    }
    findings f = look(c, pair);
    if (tell_events(c, &t, &f, pair)) return;
    if (pair->second == &c->host_actor) tell_host(c, &t, &f, pair);
    else tell_streams(c, &t, &f, pair);
}
