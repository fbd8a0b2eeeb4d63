/* Advice: possible improvements of correct code. Off by default, and never an error.
 *
 * If the user follows advice, no new hazard may appear. So a line that waits, records or synchronises is judged by all
 * its runs, at the end or when the script asks. Its side effects count, too. A command of the default stream is a
 * barrier (R5). A command of a blocking stream orders that stream, and every stream that waits for it, after such a
 * barrier. */
#include "hazard/explain.h"

#include "base/text.h"
#include "model/capture.h"

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
    mr_text_copy(draft.second.op, sizeof draft.second.op, op);
    draft.second.where = where;
    draft.second.seq = seq;
    draft.second.host = !a;
    draft.first.where = first_where;
    if (a) mr_hazard_stream_text(c, a, draft.second.stream, sizeof draft.second.stream);
    else snprintf(draft.second.stream, sizeof draft.second.stream, "host");
    va_start(args, format);
    mr_text_formatv(draft.why, sizeof draft.why, format, args);
    va_end(args);
    const mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (report && is_new) mr_hazard_publish(c, report);
}

static bool same_site(mr_site a, mr_site b) {
    return a.file == b.file && a.line == b.line;
}

/* ---- places */

#define MOST_PLACES 4096 /* lines beyond get no advice */

static uint64_t hash_place(mr_command_id kind, mr_site where) {
    uint64_t h = (uint64_t)(uintptr_t)where.file; /* interned; the address is only used as a hash */
    h = (h ^ (uint64_t)where.line) * 0x9e3779b97f4a7c15u;
    h = (h ^ (uint64_t)kind) * 0x9e3779b97f4a7c15u;
    return h >> 1;
}

/* NULL: too many places, or out of memory. `first`, `op`: for a new place. */
static advice_place *place_at(checker *c, mr_command_id kind, mr_site where, const char *op,
                              uint64_t first) {
    uint64_t hash = hash_place(kind, where);
    for (uint32_t *i = mr_map_find(&c->advice.at, hash); i; i = mr_map_again(&c->advice.at, i)) {
        advice_place *p = &c->advice.places.items[*i];
        if (p->kind == kind && same_site(p->where, where)) return p;
    }
    if (c->advice.places.count == MOST_PLACES || !mr_vec_reserve_one(&c->advice.places))
        return NULL;
    uint32_t *added = mr_map_insert(&c->advice.at, hash);
    if (!added) return NULL;
    *added = (uint32_t)c->advice.places.count;
    mr_vec_push(&c->advice.places,
                ((advice_place){.where = where, .kind = kind, .op = op, .seq = first}));
    return &c->advice.places.items[*added];
}

static void describe(checker *c, advice_place *p, const actor *a, const mr_event *event) {
    if (!p->stream[0]) mr_hazard_stream_text(c, a, p->stream, sizeof p->stream);
    if (!p->event[0]) mr_event_describe(event, p->event, sizeof p->event);
}

static void occurs(advice_place *p) {
    p->count++;
    p->fresh = true;
}

/* One run with an effect is enough; advice already given about the place was wrong. */
static void mark_needed(checker *c, advice_place *p) {
    p->needed = true;
    for (size_t i = 0; i < c->reports.listed.count && p->told; i++) {
        mr_hazard_report *r = c->reports.listed.items[i];
        if (mr_hazard_kind_is_advice(r->kind) && strcmp(r->second.op, p->op) == 0 &&
            same_site(r->second.where, p->where))
            r->withdrawn = true;
    }
}

/* ---- waits and records */

/* A command of the legacy stream is a barrier (R5). It may order earlier work of blocking streams before later work
 * of these streams, or of streams that do not exist yet. */
bool mr_hazard_advise_carries(const checker *c, const actor *t) {
    for (const actor *a = c->order.actors; a; a = a->next)
        if (a != t && a->grouped && a->device == t->device && a->last) return true;
    return false;
}

/* A wait is needed only if its stream does something afterwards. */
void mr_hazard_advise_active(checker *c, actor *a) {
    if (!a->idle_wait) return;
    if (a->idle_wait <= c->advice.places.count)
        mark_needed(c, &c->advice.places.items[a->idle_wait - 1]);
    a->idle_wait = 0;
}

static void wait_idly(checker *c, actor *a, advice_place *p) {
    mr_hazard_advise_active(c, a);
    a->idle_wait = (uint32_t)(p - c->advice.places.items) + 1;
    p->idle = true;
}

/* Whether `t` comes after all work of `a` up to seq. Waits and records that it does not come after would add
 * nothing. */
static bool knows_work(const checker *c, const actor *t, const actor *a, uint64_t seq) {
    return mr_hazard_knows(c, t, a, seq) || (a->did <= seq && mr_hazard_knows(c, t, a, a->did));
}

/* In a barrier made of waits, each stream waits for others that have waited, too. So the work that those waited for
 * counts. Streams in the legacy barrier pass on more than their clocks say. */
bool mr_hazard_advise_news(const checker *c, const actor *t, const snapshot *s) {
    if (mr_hazard_knows(c, t, s->actor, s->worked)) return false;
    if (t->grouped || t->legacy || s->actor->grouped || s->actor->legacy || s->barrier) return true;
    if (!knows_work(c, t, s->actor, s->seq)) return true;
    for (const actor *a = c->order.actors; a; a = a->next)
        if (a != s->actor && !knows_work(c, t, a, mr_hazard_clock_get(s->clock, a->slot)))
            return true;
    return false;
}

/* Whether a line of the script submitted it. A graph's launch, the release of its memory, and a communicator also
 * submit records and waits; no line could be removed for these. */
static bool is_of_script(const mr_command *command) {
    return command->where.file && !command->launched.file &&
           strcmp(command->name, MR_MEETING_ORDER) != 0;
}

void mr_hazard_advise_wait(checker *c, const mr_command *command, bool added, bool carries) {
    const actor *a = command->stream->observed;
    const snapshot *s = mr_hazard_snapshot_of(command);
    bool never = command->u.event.record_seq == 0;
    /* A record and a wait of one stream at one place are the inside of a copy between devices. */
    bool at_record = s && same_site(s->where, command->where);
    if (!is_of_script(command)) return;
    if (at_record && s->actor == a) return;
    advice_place *p = place_at(c, MR_COMMAND_WAIT, command->where, command->name, command->seq);
    if (!p) return;
    occurs(p);
    describe(c, p, a, command->u.event.event);
    p->recorded |= !never;
    bool adds = !never && (added || !s || s->seq <= c->order.opened);
    if (s) mr_hazard_stream_text(c, s->actor, p->of, sizeof p->of);
    if (carries || (at_record && s->carries) || (adds && (a->grouped || !s))) mark_needed(c, p);
    else if (adds) wait_idly(c, command->stream->observed, p);
}

void mr_hazard_advise_record(checker *c, const mr_command *command, bool carries) {
    const mr_event *event = command->u.event.event;
    if (!is_of_script(command)) return;
    advice_place *p = place_at(c, MR_COMMAND_RECORD, command->where, "record_event", command->seq);
    if (!p) return;
    occurs(p);
    describe(c, p, command->stream->observed, event);
    /* for elapsed_time: the record is needed without a wait */
    if (carries || event->timing) mark_needed(c, p);
}

void mr_hazard_advise_used(checker *c, const snapshot *s) {
    advice_place *p = place_at(c, MR_COMMAND_RECORD, s->where, "record_event", s->seq);
    if (p) mark_needed(c, p);
}

/* ---- synchronises */

/* Whether a wait for `a` up to `seq` would add to the host's knowledge. For a stream in the legacy barrier it also
 * covers other streams. */
static bool host_lacks(const checker *c, const actor *a, uint64_t seq, uint64_t worked) {
    if (mr_hazard_host_knows(c, a, seq)) return false;
    return a->grouped || !mr_hazard_host_knows(c, a, worked);
}

static bool sync_adds(const checker *c, const mr_command *command) {
    switch (mr_command_kinds[command->kind].after) {
    case MR_AFTER_STREAM: {
        const actor *a = command->stream->observed;
        return a && host_lacks(c, a, a->last, a->worked);
    }
    case MR_AFTER_RECORD: {
        const snapshot *s = mr_hazard_snapshot_of(command);
        return s && (s->timed || host_lacks(c, s->actor, s->seq, s->worked));
    }
    case MR_AFTER_DEVICE:
        for (const actor *a = c->order.actors; a; a = a->next)
            if (a->device == command->u.device->index && host_lacks(c, a, a->last, a->worked))
                return true;
        return false;
    case MR_AFTER_NOTHING: break;
    }
    return false;
}

/* Finds the streams whose last wait the host relies on from now on. */
static void rely_on_waits(checker *c, const mr_command *command) {
    mr_command_after after = mr_command_kinds[command->kind].after;
    if (after == MR_AFTER_STREAM && command->stream->observed)
        mr_hazard_advise_active(c, command->stream->observed);
    for (actor *a = c->order.actors; a && after == MR_AFTER_DEVICE; a = a->next)
        if (a->device == command->u.device->index) mr_hazard_advise_active(c, a);
}

/* R63. The wait may have another purpose, so it gets no other advice. */
static void advise_in_group(checker *c, const mr_command *command, advice_place *p) {
    mr_command_after after = mr_command_kinds[command->kind].after;
    const char *name;
    mr_site called;
    char place[240];
    if (after != MR_AFTER_STREAM && after != MR_AFTER_DEVICE) return;
    if (!c->hooks.in_group || !c->hooks.in_group(c->hooks.context, command, &name, &called)) return;
    mark_needed(c, p);
    mr_site shown = mr_hazard_shown(c, called);
    mr_text_format(place, sizeof place, "%.200s:%d", shown.file ? shown.file : "?", shown.line);
    advise(c, MR_HAZARD_WAIT_IN_GROUP, NULL, command->name, command->where, command->seq, called,
           "the host waits inside mr.nccl.group, and nothing of the group is submitted before it "
           "ends: `%s` (%s) comes after this wait (R63). Wait after the group.",
           name, place);
}

/* A wait that an operation makes by itself has the operation's name. */
void mr_hazard_advise_sync(checker *c, const mr_command *command) {
    rely_on_waits(c, command);
    if (mr_command_is(command, MR_TRAIT_QUERY) || strcmp(command->name, "synchronize") != 0) return;
    advice_place *p =
        place_at(c, MR_COMMAND_STREAM_SYNC, command->where, command->name, command->seq);
    if (!p) return;
    occurs(p);
    if (sync_adds(c, command)) mark_needed(c, p);
    advise_in_group(c, command, p);
}

/* Called before the synchronise takes effect: remembers what the host knew without it. */
static void watch_device_sync(checker *c, const mr_command *command) {
    int device = command->u.device->index, busy = 0;
    /* This one is superfluous and may be removed, so later commands count for the earlier one. */
    if (!sync_adds(c, command) && c->order.barriers[device].watch.before) return;
    sync_watch *watch = &c->order.barriers[device].watch;
    advice_place *p =
        place_at(c, MR_COMMAND_DEVICE_SYNC, command->where, "synchronize", command->seq);
    mr_hazard_past_release(watch->before);
    watch->before = p ? mr_hazard_past_now(c) : NULL;
    if (!watch->before) return;
    watch->seq = command->seq;
    watch->place = (uint32_t)(p - c->advice.places.items) + 1;
    for (const actor *a = c->order.actors; a; a = a->next)
        if (a->device == device && a->last && !mr_hazard_host_knows(c, a, a->last)) busy++;
    if (busy > p->busy) p->busy = busy;
    occurs(p);
}

/* Command `seq` of `a` comes before the current access or free, or is forgotten because of it. If a device synchronise
 * made that order, it is needed. Between streams of two devices, one synchronise may also cover the other device's work
 * (R10); then there is no advice. */
void mr_hazard_advise_needed(checker *c, const actor *a, uint64_t seq) {
    for (int i = 0; i < c->order.barrier_count && a != &c->order.host_actor; i++) {
        const sync_watch *watch = &c->order.barriers[i].watch,
                         *own = &c->order.barriers[a->device].watch;
        if (!watch->before || seq > watch->seq || mr_hazard_past_knows(c, watch->before, a, seq))
            continue;
        bool later = i != a->device && own->before && own->seq > watch->seq && seq <= own->seq &&
                     !mr_hazard_past_knows(c, own->before, a, seq);
        if (later) continue; /* the other one did not cover it */
        advice_place *p = &c->advice.places.items[watch->place - 1];
        if (p->needed) continue;
        bool same =
            i == a->device && (!p->producer || p->producer == a->id) && seq > c->order.opened;
        if (!same) mark_needed(c, p);
        else if (!p->producer) mr_hazard_stream_text(c, a, p->stream, sizeof p->stream);
        p->producer = a->id;
    }
}

/* ---- giving it */

static void explain_wait(const advice_place *p, char *out, size_t size) {
    if (p->idle)
        mr_text_format(out, size, "the wait has no effect: %s does nothing after it.", p->stream);
    else if (strcmp(p->op, "wait_stream") == 0)
        mr_text_format(out, size,
                       "the wait has no effect: %s already comes after all that %s has done by "
                       "then.",
                       p->stream, p->of);
    else if (strcmp(p->op, "barrier") == 0)
        mr_text_format(out, size,
                       "the barrier has no effect: each of its streams already comes after what "
                       "the others have done by then.");
    else
        mr_text_format(out, size,
                       "the wait has no effect: something else already orders this stream after "
                       "the work that %s captured.",
                       p->event);
}

static void explain_stream_wait(const advice_place *p, mr_hazard_report *draft) {
    draft->kind = p->recorded ? MR_HAZARD_REDUNDANT_WAIT : MR_HAZARD_NEVER_RECORDED_WAIT;
    if (p->recorded) explain_wait(p, draft->why, sizeof draft->why);
    else
        mr_text_format(draft->why, sizeof draft->why,
                       "%s has never been recorded: the wait succeeds at once and orders nothing "
                       "(R13).",
                       p->event);
}

static void explain(const advice_place *p, mr_hazard_report *draft) {
    switch (p->kind) {
    case MR_COMMAND_DEVICE_SYNC:
        draft->kind = MR_HAZARD_DEVICE_SYNCHRONIZE;
        mr_text_format(draft->why, sizeof draft->why,
                       "the host waits for all %d busy streams of the device, but only the results "
                       "of %s were used before the next wait. An event that is recorded in it, or "
                       "its synchronize(), is enough.",
                       p->busy, p->stream);
        break;
    case MR_COMMAND_RECORD:
        draft->kind = MR_HAZARD_UNUSED_RECORD;
        mr_text_format(draft->why, sizeof draft->why, "nothing waited for this record of %s.",
                       p->event);
        break;
    case MR_COMMAND_STREAM_SYNC:
        draft->kind = MR_HAZARD_REDUNDANT_SYNCHRONIZE;
        mr_text_format(draft->why, sizeof draft->why,
                       "the wait has no effect: when the host came here, it had already waited for "
                       "all that this covers, or there was nothing.");
        break;
    case MR_COMMAND_WAIT: explain_stream_wait(p, draft); break;
    case MR_COMMAND_OP: /* no advice about these */
    case MR_COMMAND_COPY:
    case MR_COMMAND_HOST_FUNCTION:
    case MR_COMMAND_ALLOC:
    case MR_COMMAND_FREE:
    case MR_COMMAND_FAULT:
    case MR_COMMAND_EVENT_SYNC:
    case MR_COMMAND_STREAM_QUERY:
    case MR_COMMAND_EVENT_QUERY:
    case MR_COMMAND_HOST_ACCESS:
    case MR_COMMAND_STREAM_CREATE:
    case MR_COMMAND_STREAM_CLOSE:
    case MR_COMMAND_RESET: MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
}

static void give(checker *c, const advice_place *p) {
    mr_hazard_report draft;
    bool is_new;
    memset(&draft, 0, sizeof draft);
    draft.reason = MR_HAZARD_BECAUSE_ADVICE;
    mr_text_copy(draft.second.op, sizeof draft.second.op, p->op);
    draft.second.where = p->where;
    draft.second.seq = p->seq;
    draft.second.host = mr_kind_waits(p->kind);
    mr_text_copy(draft.second.stream, sizeof draft.second.stream,
                 draft.second.host ? "host" : p->stream);
    explain(p, &draft);
    mr_hazard_report *report = mr_hazard_report_add(c, &draft, &is_new);
    if (!report) return;
    report->count = p->count;
    report->withdrawn = false;
    if (is_new) mr_hazard_publish(c, report);
}

void mr_hazard_finish(mr_hazard *c) {
    mr_hazard_publish_held(c); /* os.exit in a host function */
    mr_hazard_write_rest(c);
    for (size_t i = 0; i < c->advice.places.count && c->advice.on; i++) {
        advice_place *p = &c->advice.places.items[i];
        if (p->needed || p->told || !p->fresh) continue;
        if (p->kind == MR_COMMAND_DEVICE_SYNC && (p->busy < 2 || !p->producer)) continue;
        give(c, p);
        p->told = !c->check.on; /* the check's own list is dropped, so advice may be given again */
    }
}

void mr_hazard_advice_clear(checker *c) {
    for (size_t i = 0; i < c->advice.places.count; i++)
        c->advice.places.items[i].fresh = c->advice.places.items[i].told = false;
}

void mr_hazard_advice_forget(checker *c) {
    for (actor *a = c->order.actors; a; a = a->next) a->idle_wait = 0;
    mr_vec_free(&c->advice.places);
    mr_map_free(&c->advice.at);
    for (int i = 0; i < c->order.barrier_count; i++) {
        mr_hazard_past_release(c->order.barriers[i].watch.before);
        c->order.barriers[i].watch.before = NULL;
    }
}

void mr_hazard_advice_end(checker *c) {
    c->advice.pageable.pending = false;
}

void mr_hazard_set_advice(mr_hazard *c, bool on) {
    if (c->advice.on == on) return;
    c->advice.on = on;
    c->advice.pageable.pending = false;
    mr_hazard_advice_forget(c);
}

/* ---- pageable copies */

/* ---- collectives: R64a */

void mr_hazard_advise_in_flight(checker *c, const in_flight *own, const in_flight *before,
                                int other_device) {
    char first[NAME_SIZE], second[NAME_SIZE];
    int device = own->actor->device;
    mr_site shown = mr_hazard_shown(c, before->where);
    mr_hazard_stream_text(c, before->actor, first, sizeof first);
    mr_hazard_stream_text(c, own->actor, second, sizeof second);
    advise(
        c, MR_HAZARD_UNORDERED_COLLECTIVES, own->actor, own->name, own->where, own->seq,
        before->where,
        "on device %d nothing orders it behind the `%s` of %s (%.80s:%d). Device %d may begin it "
        "first, and device %d the other one. With too little room, both wait for ever (R64a). "
        "Before it, %s %s wait for %s; likewise on the other devices.",
        device, before->name, before->title, shown.file ? shown.file : "?", shown.line, device,
        other_device, c->machine->rank ? "call wait() of that one's work, or let" : "let", second,
        first);
}

/* ---- captures: R39 */

static void advise_uncaptured(checker *c, const mr_command *command) {
    mr_site begun;
    const mr_machine *machine = command->machine;
    bool is_work = mr_command_is(command, MR_TRAIT_WORK) && command->stream &&
                   command->stream->kind == MR_STREAM_LEGACY;
    if (!is_work || !is_of_script(command) || !mr_capture_rules_of(machine)->origin) return;
    const mr_stream *origin = mr_capture_rules_of(machine)->origin(command->stream->device, &begun);
    if (!origin) return;
    char on[NAME_SIZE], since[160] = "";
    mr_stream_describe(origin, on, sizeof on);
    if (begun.file)
        mr_text_format(since, sizeof since, " (since %.100s:%d)", begun.file, begun.line);
    advise(c, MR_HAZARD_UNCAPTURED_WORK, command->stream->observed, command->name, command->where,
           command->seq, begun,
           "%s captures%s, and the default stream is not captured: this runs now, and in no launch "
           "of the graph (R39). Run it on %s, or after the capture.",
           on, since, on);
}

void mr_hazard_advise_command(checker *c, const mr_command *command) {
    if (command->machine->captures.open) advise_uncaptured(c, command);
    if (c->advice.pageable.pending) {
        bool waited = command->kind == MR_COMMAND_STREAM_SYNC &&
                      command->stream->id == c->advice.pageable.stream &&
                      same_site(command->where, c->advice.pageable.where);
        c->advice.pageable.pending = false;
        if (!waited)
            advise(c, MR_HAZARD_PAGEABLE_COPY, NULL, "copy", c->advice.pageable.where,
                   c->advice.pageable.seq, (mr_site){0},
                   "an asynchronous copy of pageable memory: CUDA does not specify whether the "
                   "call waits (R23), and the copy does not overlap with other work. Pin the "
                   "memory (pinned=true, pin_memory()).");
    }
    if (mr_order_copy_is_open(command)) {
        c->advice.pageable.pending = true;
        c->advice.pageable.stream = command->stream->id;
        c->advice.pageable.where = command->where;
        c->advice.pageable.seq = command->seq;
    }
    if (command->kind == MR_COMMAND_DEVICE_SYNC) watch_device_sync(c, command);
    bool peer = mr_order_walls(command) != 0;
    for (actor *a = c->order.actors; a && peer; a = a->next)
        mr_hazard_advise_active(c, a); /* R60 */
}
