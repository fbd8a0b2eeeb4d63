/* Advice: what is not wrong and could be better. Off unless asked for, and never an error.
 *
 * Each piece is judged only when it is certain: a record when its event is recorded again or goes, a
 * device synchronise when the next one comes, a pageable copy when the next action is not the
 * synchronise that mr.copy_ itself makes. */
#include "hazard/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void advise(checker *c, mr_hazard_kind kind, const actor *a, const char *op, mr_site where,
                   uint64_t seq, mr_site first_where, const char *format, ...)
    __attribute__((format(printf, 8, 9)));
static void advise(checker *c, mr_hazard_kind kind, const actor *a, const char *op, mr_site where,
                   uint64_t seq, mr_site first_where, const char *format, ...) {
    mr_hazard_report draft;
    va_list args;
    bool is_new;
    memset(&draft, 0, sizeof draft);
    draft.kind = kind;
    draft.reason = MR_HAZARD_BECAUSE_ADVICE;
    draft.second.op = op;
    draft.second.where = where;
    draft.second.seq = seq;
    draft.second.host = !a;
    draft.first.where = first_where;
    if (a) mr_hazard_stream_text(c, a, draft.second.stream, sizeof draft.second.stream);
    else snprintf(draft.second.stream, sizeof draft.second.stream, "host");
    va_start(args, format);
    vsnprintf(draft.why, sizeof draft.why, format, args);
    va_end(args);
    const mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (report && is_new) mr_hazard_publish(c, report);
}

static bool same_site(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

/* ---- waits */

void mr_hazard_advise_wait(checker *c, const mr_action *action, bool added) {
    const mr_event *event = action->u.event.event;
    const actor *a = action->stream->observed;
    const snapshot *s = mr_hazard_snapshot_of(action);
    char text[80];
    if (action->u.event.record_seq == 0) {
        advise(c, MR_HAZARD_NEVER_RECORDED_WAIT, a, action->name, action->where, action->seq,
               (mr_site){0},
               "%s has never been recorded: the wait succeeds at once and orders nothing (R13).",
               mr_event_describe(event, text, sizeof text));
    } else if (s && !added && !(s->actor == a && same_site(s->where, action->where))) {
        /* A stream's wait for itself at one place is how a copy between devices is written inside. */
        advise(c, MR_HAZARD_REDUNDANT_WAIT, a, action->name, action->where, action->seq,
               (mr_site){0},
               "the wait adds nothing: another path already orders this stream after what %s "
               "captured.",
               mr_event_describe(event, text, sizeof text));
    }
}

void mr_hazard_advise_unused(checker *c, const snapshot *s) {
    char text[80];
    if (s->used || s->timed || s->seq <= c->floor) return;
    advise(c, MR_HAZARD_UNUSED_RECORD, s->actor, "record_event", s->where, s->seq, (mr_site){0},
           "nobody waited for this record of %s.", mr_event_describe(s->event, text, sizeof text));
}

void mr_hazard_finish(mr_hazard *c) {
    if (c->advice && c->mode != MR_HAZARD_OFF)
        for (snapshot *s = c->snapshots; s; s = s->next) {
            mr_hazard_advise_unused(c, s);
            s->used = true;
        }
}

/* ---- device synchronises */

static void judge_device_sync(checker *c) {
    if (!c->device_sync.watching) return;
    c->device_sync.watching = false;
    if (c->device_sync.busy < 2 || !c->device_sync.any || c->device_sync.several) return;
    char name[NAME_SIZE] = "one stream";
    for (const actor *a = c->actors; a; a = a->next)
        if (a->id == c->device_sync.needed) mr_hazard_stream_text(c, a, name, sizeof name);
    advise(c, MR_HAZARD_DEVICE_SYNCHRONIZE, NULL, "synchronize", c->device_sync.where,
           c->device_sync.seq, (mr_site){0},
           "the host waits for all %d busy streams of the device, and only what %s did was used "
           "before the next wait: an event recorded in it, or its synchronize(), would do.",
           c->device_sync.busy, name);
}

/* Called before the synchronise takes effect: remembers what the host knew without it. */
static void watch_device_sync(checker *c, const mr_action *action) {
    judge_device_sync(c);
    uint64_t *before = realloc(c->device_sync.before, c->slots * sizeof *before);
    if (!before) return;
    memcpy(before, c->host, c->slots * sizeof *before);
    c->device_sync.before = before;
    c->device_sync.count = c->slots;
    c->device_sync.busy = 0;
    for (const actor *a = c->actors; a; a = a->next)
        if (a->device == action->u.device->index && a->last && !mr_hazard_host_knows(c, a, a->last))
            c->device_sync.busy++;
    c->device_sync.watching = true;
    c->device_sync.any = c->device_sync.several = false;
    c->device_sync.where = action->where;
    c->device_sync.seq = action->seq;
}

/* `first` is ordered before an access of now: was it the device synchronise that ordered it? */
void mr_hazard_advise_needed(checker *c, const entry *first) {
    if (!c->device_sync.watching || first->seq > c->device_sync.seq ||
        first->actor == &c->host_actor)
        return;
    if (first->actor->slot < c->device_sync.count &&
        first->seq <= c->device_sync.before[first->actor->slot])
        return;
    if (c->device_sync.any && c->device_sync.needed != first->actor->id)
        c->device_sync.several = true;
    c->device_sync.any = true;
    c->device_sync.needed = first->actor->id;
}

/* ---- pageable copies */

static bool is_pageable_copy(const mr_action *action) {
    if (action->kind != MR_ACTION_COPY || action->u.copy.synchronous) return false;
    mr_copy_direction direction = action->u.copy.direction;
    if (direction != MR_COPY_H2D && direction != MR_COPY_D2H) return false;
    const mr_tensor *host = action->operands[direction == MR_COPY_H2D].tensor;
    return host->storage->kind == MR_MEMORY_PAGEABLE;
}

void mr_hazard_advise_action(checker *c, const mr_action *action) {
    if (c->pageable.pending) {
        bool waited = action->kind == MR_ACTION_STREAM_SYNC &&
                      action->stream->id == c->pageable.stream &&
                      same_site(action->where, c->pageable.where);
        c->pageable.pending = false;
        if (!waited)
            advise(
                c, MR_HAZARD_PAGEABLE_COPY, NULL, "copy", c->pageable.where, c->pageable.seq,
                (mr_site){0},
                "an asynchronous copy of pageable memory: whether the call waits is left open by "
                "CUDA (R23), and it does not overlap. Pin the memory (pinned=true, pin_memory()).");
    }
    if (is_pageable_copy(action)) {
        c->pageable.pending = true;
        c->pageable.stream = action->stream->id;
        c->pageable.where = action->where;
        c->pageable.seq = action->seq;
    }
    if (action->kind == MR_ACTION_DEVICE_SYNC) watch_device_sync(c, action);
}

void mr_hazard_set_advice(mr_hazard *c, bool on) {
    c->advice = on;
    c->pageable.pending = c->device_sync.watching = false;
}
