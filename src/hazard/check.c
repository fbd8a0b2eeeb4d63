/* The observer: what each action means for the order, and whether its accesses are ordered.
 *
 * Kept short, since it runs on every action. Whatever takes longer than a few comparisons is behind
 * mr_hazard_pair_found, which is called only for a pair that nothing orders. */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

#define CROWDED 64 /* entries of one storage */

/* ---- one access */

/* How this access and one of before conflict; false: two reads. A write that also reads counts as a
 * read where the other writes: that the value read is wrong is the worse half. */
static bool conflict(uint8_t first, uint8_t second, mr_hazard_kind *out_kind) {
    if (MR_BROKEN(READ_READ)) first |= MR_WRITE;
    if (!((first | second) & MR_WRITE)) return false;
    if ((first & MR_WRITE) && (second & MR_READ)) *out_kind = MR_HAZARD_READ_AFTER_WRITE;
    else if (first & MR_WRITE) *out_kind = MR_HAZARD_WRITE_AFTER_WRITE;
    else *out_kind = MR_HAZARD_WRITE_AFTER_READ;
    return true;
}

/* Whatever will conflict with the old access will conflict with the new one too. */
static bool replaces(uint8_t later, uint8_t earlier) {
    return (later & MR_WRITE) || !(earlier & MR_WRITE) || MR_BROKEN(WRITE_FORGOTTEN);
}

/* Of two conflicting pairs with the same stream, the later one's cure cures both. */
static bool outdated(const checker *c, const entry *e) {
    for (size_t i = 0; i < c->found.count; i++) {
        const entry *other = c->found.items[i];
        if (other && other->actor == e->actor && other->seq > e->seq) return true;
    }
    return false;
}

typedef struct {
    const mr_action *action;
    const mr_tensor *tensor;
    actor *actor;
    uint64_t seq; /* of the host function, when the host acts in one */
    uint8_t access;
    bool advisory;
    const char *op;
    mr_site where;
    const host_function *inside; /* R46, or NULL */
    vclock *clock;               /* all that the actor knows, while host functions are pending */
    bool clock_taken;
    bool only_look;     /* find hazards, change nothing */
    bool covered_other; /* an access of this action is ordered after another stream's */
} touch;

/* Inside a host function: what was submitted before it runs may have been submitted after it. */
static bool ordered_inside(const checker *c, const host_function *f, const entry *e) {
    if (e->seq < f->seq) return mr_hazard_function_after(c, f, e->actor, e->seq);
    return e->actor == f->actor || mr_hazard_clock_knows(c, e->clock, f->actor, f->seq);
}

static bool ordered(const checker *c, const touch *t, const entry *e) {
    if (t->inside && !MR_BROKEN(HOST_FUNCTION)) return ordered_inside(c, t->inside, e);
    return mr_hazard_knows(c, t->actor, e->actor, e->seq);
}

static void found(checker *c, history *h, const touch *t, const byte_view *view, entry *e,
                  mr_hazard_kind kind) {
    found_pair pair = {.kind = kind,
                       .history = h,
                       .tensor = t->tensor,
                       .first = e->actor,
                       .second = t->actor,
                       .first_seq = e->seq,
                       .second_seq = t->seq,
                       .first_access = e->access,
                       .second_access = t->access,
                       .first_op = e->op,
                       .second_op = t->op,
                       .first_where = e->where,
                       .second_where = t->where,
                       .first_view = &e->view,
                       .second_view = view,
                       .first_name = e->tensor_name,
                       .submitted = t->inside ? t->inside->where : (mr_site){0},
                       .action = t->action,
                       .covered_other = t->covered_other,
                       .advisory = e->advisory || t->advisory,
                       .only_look = t->only_look};
    if (e->seq > t->seq) { /* submitted after the host function that runs only now */
        pair.first = t->actor, pair.second = e->actor;
        pair.first_seq = t->seq, pair.second_seq = e->seq;
        pair.first_access = t->access, pair.second_access = e->access;
        pair.first_op = t->op, pair.second_op = e->op;
        pair.first_where = t->where, pair.second_where = e->where;
        pair.submitted = e->where;
        conflict(t->access, e->access, &pair.kind);
    }
    mr_hazard_pair_found(c, &pair);
}

/* Taken once an action, since all its accesses know the same. */
static vclock *clock_of(checker *c, touch *t) {
    if (t->inside) return t->inside->clock;
    if (t->actor == &c->host_actor) return NULL;
    if (!t->clock_taken) t->clock = mr_hazard_order_clock_of(c, t->actor);
    t->clock_taken = true;
    return t->clock;
}

static void note(checker *c, history *h, touch *t, const byte_view *view, entry *into) {
    entry *e = into ? into : mr_hazard_history_add(c, h, t->actor, view);
    if (!e) return;
    if (e->actor != t->actor) {
        mr_hazard_actor_retain(t->actor);
        mr_hazard_actor_release(c, e->actor);
        e->actor = t->actor;
    }
    e->seq = t->seq;
    e->access = t->access;
    e->advisory = t->advisory;
    e->op = t->op;
    e->where = t->where;
    e->tensor_name = t->tensor->name;
    if (e->clock) mr_hazard_clock_release(c, e->clock);
    e->clock = NULL;
    if (mr_hazard_functions_reach(c, h->storage)) e->clock = mr_hazard_clock_retain(clock_of(c, t));
}

static void used_before_alloc(checker *c, history *h, const touch *t) {
    found_pair pair = {.kind = MR_HAZARD_USE_BEFORE_ALLOC,
                       .history = h,
                       .tensor = t->tensor,
                       .first = h->alloc_actor,
                       .second = t->actor,
                       .first_seq = h->alloc_seq,
                       .second_seq = t->seq,
                       .second_access = t->access,
                       .first_op = "alloc",
                       .second_op = t->op,
                       .first_where = h->storage->made,
                       .second_where = t->where,
                       .only_look = t->only_look};
    if (c->hooks.detected) c->hooks.detected(c->hooks.context, pair.kind, pair.first_seq, t->seq);
    mr_hazard_pair_found(c, &pair);
}

static bool before_alloc(checker *c, const history *h, const touch *t) {
    if (!h->alloc_actor || MR_BROKEN(ALLOC_CHECKED)) return false;
    if (!mr_hazard_knows(c, t->actor, h->alloc_actor, h->alloc_seq)) return true;
    if (c->advice && !t->only_look && t->actor != h->alloc_actor)
        mr_hazard_advise_needed(c, h->alloc_actor, h->alloc_seq);
    return false;
}

/* Whether the new access, which comes after that of `e`, cannot stand for it towards host functions. */
static bool wanted_by_function(checker *c, const history *h, touch *t, const entry *e) {
    return t->inside || (h->count < CROWDED && mr_hazard_function_between(c, e)) ||
           mr_hazard_function_needs(c, e, t->actor, clock_of(c, t));
}

/* Meets the new access with the entries in c->found. Of those that it replaces, one with the same view becomes its
 * own: the usual case needs no memory. */
static void check_found(checker *c, history *h, touch *t, const byte_view *view) {
    entry *again = NULL;
    bool races = false, pending = mr_hazard_functions_reach(c, h->storage);
    /* What the host does itself comes before everything that it submits later: nothing can race with
     * it from behind, except a host function that was submitted before. */
    bool leaves_entry = (t->actor != &c->host_actor || pending) && !t->only_look;
    for (size_t i = 0; i < c->found.count; i++) {
        entry *e = c->found.items[i];
        mr_hazard_kind kind;
        bool conflicts = conflict(e->access, t->access, &kind);
        bool is_ordered = (conflicts || replaces(t->access, e->access)) && ordered(c, t, e);
        c->found.items[i] = NULL;
        if (conflicts && !is_ordered && mr_hazard_view_overlap(&e->view, view)) {
            c->found.items[i] = e;
            races = true;
            continue;
        }
        if (!is_ordered && !MR_BROKEN(READ_FORGOTTEN)) continue;
        if (conflicts && e->actor != t->actor && !mr_hazard_host_knows(c, e->actor, e->seq))
            t->covered_other = true;
        bool advise = c->advice && !t->only_look && e->actor != t->actor;
        if (advise && conflicts) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (t->only_look || !replaces(t->access, e->access) || e->advisory != t->advisory) continue;
        if (pending && wanted_by_function(c, h, t, e)) continue;
        bool is_same = leaves_entry && !again && mr_hazard_view_equal(view, &e->view);
        if (!is_same && !mr_hazard_view_covers(view, &e->view)) continue;
        if (advise) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (is_same) again = e;
        else mr_hazard_history_remove(c, h, e);
    }
    for (size_t i = 0; i < c->found.count && races; i++) {
        entry *e = c->found.items[i];
        mr_hazard_kind kind = MR_HAZARD_READ_AFTER_WRITE;
        if (!e) continue;
        conflict(e->access, t->access, &kind);
        if (c->hooks.detected && !e->advisory && !t->advisory)
            c->hooks.detected(c->hooks.context, kind, e->seq < t->seq ? e->seq : t->seq,
                              e->seq < t->seq ? t->seq : e->seq);
        if (!outdated(c, e)) found(c, h, t, view, e, kind);
        /* The work of a stream that is gone can hardly be waited for any more. Once it has been reported
         * against what overwrites it, keeping it would only grow the history of a broken program. */
        if (!e->actor->stream && h->count > CROWDED && replaces(t->access, e->access) &&
            !t->only_look && !pending && e->actor != &c->host_actor &&
            mr_hazard_view_covers(view, &e->view)) {
            c->found.items[i] = NULL;
            mr_hazard_history_remove(c, h, e);
        }
    }
    if (!races && before_alloc(c, h, t)) used_before_alloc(c, h, t);
    if (leaves_entry && !c->refusal) note(c, h, t, view, again);
}

static void touch_bytes(checker *c, touch *t) {
    byte_view view;
    history *h = mr_hazard_history_of(c, t->tensor->storage);
    if (!h || !mr_hazard_view_of(t->tensor, &view)) return;
    mr_hazard_history_search(c, h, &view);
    check_found(c, h, t, &view);
}

/* Reads before writes: an operation that reads what it writes then leaves one entry. */
static void touch_operands(checker *c, const mr_action *action, actor *a, uint8_t without,
                           bool only_look) {
    touch t = {.action = action,
               .actor = a,
               .seq = action->seq,
               .op = action->name,
               .where = action->where,
               .only_look = only_look};
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < action->operand_count; i++) {
            t.tensor = action->operands[i].tensor;
            t.access = action->operands[i].access;
            if (((t.access & MR_WRITE) != 0) != (pass == 1) || (without >> i & 1)) continue;
            t.advisory = action->kind == MR_ACTION_COPY && !action->u.copy.synchronous &&
                         action->u.copy.direction != MR_COPY_H2H &&
                         t.tensor->storage->kind == MR_MEMORY_PAGEABLE;
            touch_bytes(c, &t);
        }
    }
    if (t.clock_taken) mr_hazard_clock_release(c, t.clock);
}

/* ---- copies: who waits for whom (R20-R24, R60) */

static void copy_action(checker *c, const mr_action *action, actor *a) {
    mr_copy_direction direction = action->u.copy.direction;
    bool synchronous = action->u.copy.synchronous;
    copy_effect rules = mr_hazard_copy_effect(action);
    bool staged = rules.staged, host_waits = rules.host_waits;
    if (MR_BROKEN(COPY_SYNC)) host_waits = false;
    if (MR_BROKEN(COPY_ASYNC)) host_waits = true;
    if (MR_BROKEN(COPY_D2D) && synchronous && direction == MR_COPY_D2D) host_waits = true;
    if (MR_BROKEN(STAGED) && staged) host_waits = true;

    if (direction == MR_COPY_D2H && action->operands[0].tensor->storage->kind == MR_MEMORY_PAGEABLE)
        c->totals.decided_by_host++; /* item, totable, print: values are taken from there unseen */
    if (rules.peer) mr_hazard_order_peer_copy(c, action);
    /* R20: the source of a staged copy has been read when the call returns. The stream was
     * synchronised for that, so the host's own order covers it and it leaves no entry. */
    if (staged) mr_hazard_order_stream_sync(c, a, action->seq - 1);
    if (staged) {
        touch t = {.action = action,
                   .tensor = action->operands[1].tensor,
                   .actor = &c->host_actor,
                   .seq = action->seq,
                   .access = MR_READ,
                   .op = action->name,
                   .where = action->where};
        touch_bytes(c, &t);
    }
    touch_operands(c, action, a, staged ? 2 : 0, false);
    if (host_waits) mr_hazard_order_stream_sync(c, a, action->seq);
}

/* ---- the host */

static void host_access(checker *c, const mr_action *action) {
    const mr_action *function = c->machine->host_function;
    if (!function || MR_BROKEN(HOST_FUNCTION)) {
        touch_operands(c, action, &c->host_actor, 0, false);
        return;
    }
    const host_function *f = mr_hazard_function_of(c, function);
    if (!f) return; /* submitted before the checker was on, or before the check: that is ordered */
    if (f->seq <= c->opened) return;
    touch t = {.action = action,
               .actor = f->actor,
               .seq = f->seq,
               .op = action->name,
               .where = action->where.file ? action->where : f->where,
               .inside = f};
    for (uint32_t i = 0; i < action->operand_count; i++) {
        t.tensor = action->operands[i].tensor;
        t.access = action->operands[i].access;
        touch_bytes(c, &t);
    }
}

/* ---- mr.reset */

static void forget_everything(checker *c) {
    mr_hazard_drop_collected(c);
    mr_hazard_history_drop_all(c);
    mr_hazard_order_close(c);
    mr_hazard_order_open(c);
}

/* ---- actions */

static void use_record(checker *c, snapshot *s) {
    if (c->advice && !s->used) mr_hazard_advise_used(c, s);
    s->used = true;
}

static void memory_action(checker *c, actor *a, const mr_action *action, bool checked) {
    if (action->kind == MR_ACTION_ALLOC) {
        mr_hazard_order_alloc(c, a, action->seq);
        mr_hazard_alloc(c, a, action);
        return;
    }
    mr_hazard_order_free(c, a, action->seq);
    if (!checked) mr_hazard_free_memory(c, a, action);
}

static void submitted(checker *c, const mr_action *action) {
    actor *a = mr_hazard_actor_of(c, action->stream);
    if (!a) return;
    if (c->functions_may_be_done) mr_hazard_functions_drop(c, false);
    bool may_refuse =
        c->mode == MR_HAZARD_ERROR && (action->where.file || action->kind != MR_ACTION_FREE);
    if (may_refuse) { /* what is refused has not happened: it leaves no trace */
        if (action->kind == MR_ACTION_FREE) {
            mr_hazard_free_memory(c, a, action);
        } else {
            touch_operands(c, action, a, 0, true);
        }
        if (c->refusal) return;
    }
    if (action->kind == MR_ACTION_ALLOC || action->kind == MR_ACTION_FREE) {
        memory_action(c, a, action, may_refuse);
        return;
    }
    bool carries = mr_hazard_order_submitted(c, a, action->seq);
    if (c->advice && a->legacy) carries = mr_hazard_advise_carries(c, a);
    switch (action->kind) {
    case MR_ACTION_OP:
        c->totals.operations++;
        touch_operands(c, action, a, 0, false);
        break;
    case MR_ACTION_COPY:
        c->totals.operations++;
        copy_action(c, action, a);
        break;
    case MR_ACTION_RECORD:
        mr_hazard_order_record(c, a, action, carries);
        if (c->advice) mr_hazard_advise_record(c, action, carries);
        break;
    case MR_ACTION_WAIT: {
        snapshot *s = mr_hazard_snapshot_of(action);
        bool added = s && mr_hazard_order_wait(c, a, action->seq, s);
        if (s) use_record(c, s);
        if (c->advice) mr_hazard_advise_wait(c, action, added, carries);
        if (c->recent_next) mr_hazard_amend(c, a, action);
        break;
    }
    case MR_ACTION_HOST_FUNCTION:
        c->totals.operations++;
        mr_hazard_function_add(c, a, action);
        break;
    default: break;
    }
}

static void host_did(checker *c, const mr_action *action) {
    actor *a;
    snapshot *s;
    if (action->kind != MR_ACTION_HOST_ACCESS) c->functions_may_be_done = c->functions.count > 0;
    switch (action->kind) {
    case MR_ACTION_STREAM_QUERY:
        c->totals.decided_by_host++;
        if (MR_BROKEN(QUERY)) break;
        /* fall through */
    case MR_ACTION_STREAM_SYNC:
        a = mr_hazard_actor_of(c, action->stream);
        if (a) mr_hazard_order_stream_sync(c, a, action->seq);
        break;
    case MR_ACTION_EVENT_QUERY:
        c->totals.decided_by_host++;
        if (MR_BROKEN(QUERY)) break;
        /* fall through */
    case MR_ACTION_EVENT_SYNC:
        s = mr_hazard_snapshot_of(action);
        if (!s) break;
        use_record(c, s);
        mr_hazard_order_event_sync(c, s);
        break;
    case MR_ACTION_DEVICE_SYNC:
        mr_hazard_order_device_sync(c, action->u.device, action->seq);
        break;
    case MR_ACTION_HOST_ACCESS:
        host_access(c, action);
        if (!c->refusal) c->totals.decided_by_host++;
        break;
    case MR_ACTION_RESET: forget_everything(c); break;
    default: break;
    }
}

mr_status mr_hazard_refuse(checker *c) {
    mr_status refusal = c->refusal;
    c->refusal = MR_OK;
    return refusal;
}

/* A refusal found by this action is raised by it; one that came up where nothing can be raised (a
 * tensor collected by Lua) by the next one. */
static mr_status see(mr_observer *observer, const mr_action *action) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    bool collected = action->kind == MR_ACTION_FREE && !action->where.file;
    if (c->collected.count && !collected) mr_hazard_flush_collected(c);
    if (c->refusal && !collected) return mr_hazard_refuse(c);
    mr_hazard_log_action(c, action);
    if (c->advice) mr_hazard_advise_action(c, action);
    if (action->kind <= MR_ACTION_LAST_SUBMITTED) submitted(c, action);
    else host_did(c, action);
    if (__builtin_expect(c->out_of_memory, 0)) {
        c->out_of_memory = false;
        return mr_fail(
            MR_CODE_OUT_OF_MEMORY,
            "no memory for the hazard checker; mr.hazard.mode(\"off\") frees what it holds");
    }
    if (__builtin_expect(c->refusal != MR_OK, 0) && !collected) {
        mr_hazard_log_take_back(c);
        if (c->pageable.seq == action->seq) c->pageable.pending = false;
        return mr_hazard_refuse(c);
    }
    return MR_OK;
}

/* ---- objects that go */

static void storage_gone(mr_observer *observer, mr_storage *storage) {
    mr_hazard_history_drop((checker *)((char *)observer - offsetof(checker, observer)),
                           storage->observed);
}

static void stream_gone(mr_observer *observer, mr_stream *stream) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    actor *a = stream->observed;
    a->stream = NULL;
    stream->observed = NULL;
    c->zombies++;
    mr_hazard_actor_release(c, a);
}

static void event_gone(mr_observer *observer, mr_event *event) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    snapshot *s = event->observed;
    mr_hazard_snapshot_free(c, s);
}

const mr_observer mr_hazard_observer = {.name = "hazard",
                                        .action = see,
                                        .storage_gone = storage_gone,
                                        .stream_gone = stream_gone,
                                        .event_gone = event_gone};
