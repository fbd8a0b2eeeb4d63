/* Accesses: the bytes that a command touches, and whether each conflicting earlier access is ordered before it.
 *
 * This code is short because it runs for every operand of every command. Slow work is in mr_hazard_pair_found, which
 * is called only for an unordered pair. */
#include "hazard/explain.h"

#include "ops/kernel.h"

#define CROWDED 64 /* entries of one storage */

/* ---- one access */

/* How this access and an earlier one conflict; false: two reads, or two atomic updates, which run in any order without
 * losing one. A write that also reads counts as a read if the other access writes: the wrong value that it reads is the
 * worse problem. */
static bool conflict(uint8_t first, uint8_t second, mr_hazard_kind *out_kind) {
    if (MR_BROKEN(READ_READ)) first |= MR_WRITE;
    if (!((first | second) & MR_WRITE)) return false;
    if ((first & second & MR_ATOMIC) && !MR_BROKEN(ATOMIC_PAIR)) return false;
    if ((first & MR_WRITE) && (second & MR_READ)) *out_kind = MR_HAZARD_READ_AFTER_WRITE;
    else if (first & MR_WRITE) *out_kind = MR_HAZARD_WRITE_AFTER_WRITE;
    else *out_kind = MR_HAZARD_WRITE_AFTER_READ;
    return true;
}

/* Whether every access that conflicts with the old access also conflicts with the new one. An atomic update replaces
 * none but its kind, as it does not conflict with other updates. An assumed access cannot replace a certain one. */
static bool replaces(uint8_t later, uint8_t earlier) {
    if ((later & MR_ATOMIC) && !(earlier & MR_ATOMIC) && !MR_BROKEN(ATOMIC_REPLACES)) return false;
    if ((later & MR_ASSUMED) && !(earlier & MR_ASSUMED) && !MR_BROKEN(ASSUMED_REPLACES))
        return false;
    return (later & MR_WRITE) || !(earlier & MR_WRITE) || MR_BROKEN(WRITE_FORGOTTEN);
}

/* `other` is a copy that may wait, as an advisory says. If it waits, its stream's earlier accesses to these bytes are
 * complete, too. */
static bool stands_for(const entry *other, const entry *e) {
    return !other->advisory || e->advisory || mr_hazard_view_covers(&other->view, &e->view);
}

/* One fix orders two conflicting pairs with the same stream. If two accesses came before the one at `seq`, it is a wait
 * for the later one. If two came after it, it is a wait in front of the earlier one. A pair with an assumed side takes
 * the place of no other, as it may be withdrawn. Returns the access that takes the place of `e`; NULL: none. */
static const entry *outdated_by(const checker *c, const entry *e, uint64_t seq, uint8_t access) {
    if (access & MR_ASSUMED) return NULL;
    for (size_t i = 0; i < c->histories.found.count; i++) {
        const entry *other = c->histories.found.items[i];
        if (!other || other->actor != e->actor || (other->access & MR_ASSUMED)) continue;
        if (e->seq < seq ? other->seq > e->seq && other->seq < seq && stands_for(other, e)
                         : other->seq < e->seq && other->seq > seq)
            return other;
    }
    return NULL;
}

typedef struct {
    const mr_command *command;
    const mr_tensor *tensor;
    actor *actor;
    const struct actor *waited_for; /* by the host, right before it does this; or NULL */
    uint64_t seq;                   /* of the host function, when the host acts in one */
    uint8_t access;
    bool advisory;
    const char *op;
    mr_site where;
    const host_function *inside; /* R46, or NULL */
    vclock *clock;               /* all that the actor knows, while host functions are pending */
    bool clock_taken;
    earlier_access earlier; /* of what this replaces, while host functions are pending */
    bool only_look;         /* find hazards, change nothing */
    bool covered_other;     /* an access of this command is ordered after another stream's */
    bool merged;            /* as of an entry */
    bool mixes;             /* it replaces atomic updates of another kind than its own */
    bool watched;           /* some of the bytes' storage has not been written */
} touch;

/* Inside a host function: the access of `e` may have been submitted after the function, which runs late. */
static bool ordered_inside(const checker *c, const host_function *f, const entry *e) {
    if (e->seq < f->seq) return mr_hazard_function_after(c, f, e->actor, e->seq);
    return e->actor == f->actor || mr_hazard_clock_knows(c, e->clock, f->actor, f->seq);
}

static bool ordered(const checker *c, const touch *t, const entry *e) {
    if (t->inside && !MR_BROKEN(HOST_FUNCTION)) return ordered_inside(c, t->inside, e);
    return mr_hazard_knows(c, t->actor, e->actor, e->seq) ||
           (t->waited_for && mr_hazard_knew(c, t->waited_for, e->actor, e->seq));
}

static void races_with(checker *c, history *h, const touch *t, const byte_view *view,
                       const entry *e, mr_hazard_kind kind) {
    found_pair pair = {
        .kind = kind,
        .history = h,
        .tensor = t->tensor,
        .first = e->actor,
        .second = t->actor,
        .first_seq = e->seq,
        .second_seq = t->seq,
        .first_access = e->access,
        .second_access = t->access,
        .first_merged = e->merged,
        .first_op = e->op,
        .second_op = t->op,
        .first_where = e->where,
        .second_where = t->where,
        .first_view = &e->view,
        .second_view = view,
        .first_name = mr_name_text(e->tensor_name),
        .submitted = t->inside ? t->inside->where : (mr_site){0},
        .command = t->command,
        .covered_other = t->covered_other,
        /* If the copy had waited, that would order later submissions, and no earlier ones. */
        .advisory = e->seq < t->seq ? e->advisory : t->advisory,
        .only_look = t->only_look};
    bool is_late = e->seq > t->seq; /* submitted after the host function that runs only now */
    if (is_late) {
        pair.first = t->actor, pair.second = e->actor;
        pair.first_seq = t->seq, pair.second_seq = e->seq;
        pair.first_access = t->access, pair.second_access = e->access;
        pair.first_op = t->op, pair.second_op = e->op;
        pair.first_where = t->where, pair.second_where = e->where;
    }
    const entry *later = outdated_by(c, e, t->seq, t->access);
    if (!is_late && later && later->advisory) return;
    if (pair.advisory) mr_hazard_tell_unspecified(c, &pair);
    else mr_hazard_tell_found(c, &pair);
    if (later) return;
    if (pair.advisory && !t->only_look) mr_claims_add(&c->totals.claims, MR_CLAIM_UNSPECIFIED);
    if (is_late) {
        const earlier_access *earlier = &e->earlier;
        if (earlier->seq > t->seq && conflict(t->access, earlier->access, &pair.kind)) {
            pair.second_seq = earlier->seq, pair.second_access = earlier->access;
            pair.second_op = earlier->op, pair.second_where = earlier->where;
        }
        pair.submitted = pair.second_where;
        conflict(t->access, pair.second_access, &pair.kind);
    }
    mr_hazard_pair_found(c, &pair);
}

/* Made once per command, since all its accesses have the same knowledge. */
static vclock *clock_of(checker *c, touch *t) {
    if (t->inside) return t->inside->clock;
    if (t->actor == &c->order.host_actor) return NULL;
    if (!t->clock_taken) t->clock = mr_hazard_order_clock_of(c, t->actor);
    t->clock_taken = true;
    return t->clock;
}

/* The copy holds a reference of its own. */
static void set_earlier(earlier_access *kept, earlier_access access) {
    mr_name_retain(access.op_name);
    mr_name_release(kept->op_name);
    *kept = access;
}

/* As of an entry. */
static uint8_t updates_of(const touch *t) {
    if (!(t->access & MR_ATOMIC)) return 0;
    const mr_kernel_escapes *launch = mr_kernel_escapes_of(t->command);
    return launch ? launch->updates : 0;
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
    e->merged = t->merged;
    e->updates = t->mixes ? 0 : updates_of(t);
    e->op = t->op;
    e->where = t->where;
    mr_name_keep(&e->op_name, t->command->own_name);
    mr_name_keep(&e->tensor_name, t->tensor->name);
    if (e->earlier.seq || t->earlier.seq) set_earlier(&e->earlier, t->earlier);
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
    mr_hazard_tell_found(c, &pair);
    mr_hazard_pair_found(c, &pair);
}

static bool before_alloc(checker *c, const history *h, const touch *t) {
    if (!h->alloc_actor || MR_BROKEN(ALLOC_CHECKED)) return false;
    if (!mr_hazard_knows(c, t->actor, h->alloc_actor, h->alloc_seq)) return true;
    if (c->advice.on && !t->only_look && t->actor != h->alloc_actor)
        mr_hazard_advise_needed(c, h->alloc_actor, h->alloc_seq);
    return false;
}

/* Whether a pending host function may race with `e` but not with the new access, which is ordered after `e`. */
static bool wanted_by_function(checker *c, const history *h, touch *t, const entry *e) {
    return t->inside || (h->count < CROWDED && mr_hazard_function_between(c, e)) ||
           mr_hazard_function_needs(c, e, t->actor, clock_of(c, t));
}

static void keep_earlier(touch *t, const entry *e) {
    uint64_t seq = e->earlier.seq ? e->earlier.seq : e->seq;
    if (e->actor != t->actor || (t->earlier.seq && t->earlier.seq <= seq)) return;
    earlier_access self = {e->seq, e->access, e->op, e->op_name, e->where};
    set_earlier(&t->earlier, e->earlier.seq ? e->earlier : self);
}

/* Whether the new access, which replaces that of `e`, must also stand for it (entry.merged). A certain access covers
 * what `e` may have touched, and work for which the host has waited comes before all later work. */
static bool merges(const checker *c, const touch *t, const entry *e) {
    if (!(t->access & MR_ASSUMED) || !(e->access & MR_ASSUMED)) return false;
    return (e->merged || e->seq != t->seq) && !mr_hazard_host_knows(c, e->actor, e->seq);
}

/* Whether the command writes there, too: a read that its own read replaces is gone when its writes are met. */
static bool writes_there(const touch *t, const entry *e) {
    for (uint32_t i = 0; i < t->command->operand_count; i++) {
        const mr_operand *o = &t->command->operands[i];
        byte_view view;
        if ((o->access & MR_WRITE) && o->tensor->storage == t->tensor->storage &&
            mr_hazard_view_of(o->tensor, &view) && view.first < e->view.end &&
            e->view.first < view.end)
            return true;
    }
    return false;
}

static void tell_updated(const checker *c, const history *h, const touch *t, const entry *e) {
    if (!c->watcher.updated) return;
    mr_hazard_found updated = {.kind = MR_HAZARD_WRITE_AFTER_WRITE,
                               .first_seq = e->seq,
                               .second_seq = t->seq,
                               .first_where = e->where,
                               .second_where = t->command->where,
                               .storage = h->storage->id};
    c->watcher.updated(c->watcher.context, &updated);
}

/* Meets the new access with the entries in c->histories.found. One that it replaces, with the same view, becomes its
 * own: the usual case needs no memory. */
static void check_found(checker *c, history *h, touch *t, const byte_view *view) {
    entry *again = NULL;
    bool races = false, certain = false, pending = mr_hazard_functions_reach(c, h->storage);
    /* The host's own accesses come before all its later submissions. Only a host function that was submitted earlier
     * can still race with them. */
    bool leaves_entry = (t->actor != &c->order.host_actor || pending) && !t->only_look;
    for (size_t i = 0; i < c->histories.found.count; i++) {
        entry *e = c->histories.found.items[i];
        mr_hazard_kind kind;
        bool conflicts = conflict(e->access, t->access, &kind);
        bool is_ordered = (conflicts || replaces(t->access, e->access)) && ordered(c, t, e);
        c->histories.found.items[i] = NULL;
        if (conflicts && !is_ordered && mr_hazard_view_overlap(&e->view, view)) {
            c->histories.found.items[i] = e;
            races = true;
            certain |= !((e->access | t->access) & MR_ASSUMED);
            continue;
        }
        if (!is_ordered && (e->access & t->access & MR_ATOMIC) && !t->only_look &&
            mr_hazard_view_overlap(&e->view, view)) {
            /* Updates of one kind, whose results are not used, have the same effect in every order. */
            bool commute = e->updates && e->updates == updates_of(t);
            if (!commute) mr_claims_add(&c->totals.claims, MR_CLAIM_UPDATES);
            tell_updated(c, h, t, e);
        }
        if (!is_ordered && !MR_BROKEN(READ_FORGOTTEN)) continue;
        if (!t->covered_other && e->actor != t->actor && e->seq < t->seq &&
            !mr_hazard_host_knows(c, e->actor, e->seq))
            t->covered_other = conflicts || writes_there(t, e);
        bool advise = c->advice.on && !t->only_look && e->actor != t->actor;
        if (advise && conflicts) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (t->only_look || !replaces(t->access, e->access) || e->advisory != t->advisory) continue;
        if (pending && wanted_by_function(c, h, t, e)) continue;
        bool is_same = leaves_entry && !again && mr_hazard_view_equal(view, &e->view);
        if (!is_same && !mr_hazard_view_covers(view, &e->view)) continue;
        if (advise) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (pending && is_same) keep_earlier(t, e);
        t->merged |= merges(c, t, e);
        t->mixes |= (e->access & t->access & MR_ATOMIC) && e->updates != updates_of(t);
        if (is_same) again = e;
        else if (!mr_vec_push(&c->histories.replaced, e)) c->out_of_memory = true;
    }
    for (size_t i = 0; i < c->histories.found.count && races; i++) {
        entry *e = c->histories.found.items[i];
        mr_hazard_kind kind = MR_HAZARD_READ_AFTER_WRITE;
        if (!e) continue;
        conflict(e->access, t->access, &kind);
        races_with(c, h, t, view, e, kind);
        /* A script can hardly wait for the work of a destroyed stream. Once a race with it is reported, keeping it
         * would only grow the history of a broken program. */
        if (!e->actor->stream && h->count > CROWDED && replaces(t->access, e->access) &&
            !t->only_look && !pending && e->actor != &c->order.host_actor &&
            !(t->access & MR_ASSUMED) && mr_hazard_view_covers(view, &e->view)) {
            c->histories.found.items[i] = NULL;
            mr_hazard_history_remove(c, h, e);
        }
    }
    /* Only now: an explanation of a race looks for them. */
    while (c->histories.replaced.count)
        mr_hazard_history_remove(c, h, mr_vec_pop(&c->histories.replaced));
    if (!certain && before_alloc(c, h, t)) used_before_alloc(c, h, t);
    if (leaves_entry) note(c, h, t, view, again);
    if (t->earlier.seq) set_earlier(&t->earlier, (earlier_access){0});
    t->merged = t->mixes = false;
}

/* Whether the command writes all of unwritten memory and reads no such memory: the usual case of an operation's
 * result. */
static bool writes_all(const checker *c, const history *h, const touch *t, const byte_view *view) {
    bool all = t->access == MR_WRITE && !t->watched && !t->only_look && !h->unset_events &&
               t->command->kind == MR_COMMAND_OP && !mr_hazard_functions_reach(c, h->storage) &&
               view->ndim == 0 && view->run == h->storage->bytes;
    for (uint32_t i = 0; i < t->command->operand_count && all; i++)
        all = (t->command->operands[i].access & MR_ACCESSES) !=
              MR_ACCESSES; /* may still be to come */
    return all;
}

static void touch_bytes(checker *c, touch *t) {
    byte_view view;
    history *h = mr_hazard_history_of(c, t->tensor->storage);
    if (!h || !mr_hazard_view_of(t->tensor, &view)) return;
    if (__builtin_expect(c->machine->rank != 0, 0) && !h->storage->rank && !t->only_look)
        mr_hazard_rank_touches(c, h, t->actor, t->access, &view);
    mr_hazard_history_search(c, h, &view);
    check_found(c, h, t, &view);
    if (__builtin_expect(!h->watched, 1)) return;
    /* Code of another process may have written memory that is shared with it. */
    if (h->storage->shared || writes_all(c, h, t, &view)) mr_hazard_unset_drop(h);
    else t->watched = true;
}

static void judge_unset(checker *c, const touch *t) {
    unset_use use = {.actor = t->actor,
                     .seq = t->seq,
                     .op = t->op,
                     .where = t->where,
                     .only_look = t->only_look};
    mr_hazard_unset_command(c, t->command, &use);
}

/* Reads before writes: an operation that reads what it writes then leaves one entry. */
void mr_hazard_touch_operands(checker *c, const mr_command *command, actor *a, bool staged,
                              bool only_look) {
    if (!command->operand_count) return; /* as for records and waits */
    touch t = {.command = command,
               .actor = a,
               .seq = command->seq,
               .op = command->name,
               .where = command->where,
               .only_look = only_look};
    bool is_open = mr_order_copy_is_open(command);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < command->operand_count; i++) {
            t.tensor = command->operands[i].tensor;
            t.access = command->operands[i].access & (MR_ACCESSES | MR_ATOMIC | MR_ASSUMED);
            if (((t.access & MR_WRITE) != 0) != (pass == 1) || (staged && i == 1)) continue;
            t.advisory = is_open && t.tensor->storage->kind == MR_MEMORY_PAGEABLE;
            touch_bytes(c, &t);
        }
    }
    if (t.clock_taken) mr_hazard_clock_release(c, t.clock);
    if (staged) {
        const history *source = command->operands[1].tensor->storage->observed;
        t.watched |= source && source->watched;
    }
    if (__builtin_expect(t.watched, 0)) judge_unset(c, &t);
}

/* ---- accesses that are not work of a stream */

/* R20: the source of a staged copy has been read when the call returns. The stream was synchronised
 * for that, so the host's own order covers it and it leaves no entry. */
void mr_hazard_read_staged(checker *c, const mr_command *command, actor *a, bool only_look) {
    touch t = {.command = command,
               .tensor = command->operands[1].tensor,
               .actor = &c->order.host_actor,
               .waited_for = a,
               .seq = command->seq,
               .access = MR_READ,
               .op = command->name,
               .where = command->where,
               .only_look = only_look};
    touch_bytes(c, &t);
    if (!only_look) mr_hazard_order_stream_sync(c, a, command->seq - 1);
}

void mr_hazard_host_access(checker *c, const mr_command *command, bool only_look) {
    const mr_command *function = c->machine->host_function.command;
    if (!function || MR_BROKEN(HOST_FUNCTION)) {
        mr_hazard_touch_operands(c, command, &c->order.host_actor, false, only_look);
        return;
    }
    const host_function *f = mr_hazard_function_of(c, function);
    /* submitted before the checker was on, or before the check: it counts as ordered */
    if (!f) return;
    if (f->seq <= c->order.opened) return;
    touch t = {.command = command,
               .actor = f->actor,
               .seq = f->seq,
               .op = command->name,
               .where = command->where.file ? command->where : f->where,
               .inside = f,
               .only_look = only_look};
    for (uint32_t i = 0; i < command->operand_count; i++) {
        t.tensor = command->operands[i].tensor;
        t.access = command->operands[i].access & MR_ACCESSES;
        touch_bytes(c, &t);
    }
    if (t.watched) judge_unset(c, &t);
}
