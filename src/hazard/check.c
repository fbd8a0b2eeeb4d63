/* The observer: for each command, updates the order and checks whether its accesses are ordered.
 *
 * This code is short because it runs for every command. Anything that takes longer than a few comparisons
 * is in mr_hazard_pair_found, which is called only for a pair that nothing orders. */
#include "hazard/explain.h"

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

/* Of two conflicting pairs with the same stream, one fix orders both: a wait for the later of two that came before
 * the access at `seq`, or a wait in front of the earlier of two that came after it. */
static bool outdated(const checker *c, const entry *e, uint64_t seq) {
    for (size_t i = 0; i < c->found.count; i++) {
        const entry *other = c->found.items[i];
        if (!other || other->actor != e->actor) continue;
        if (e->seq < seq ? other->seq > e->seq && other->seq < seq
                         : other->seq < e->seq && other->seq > seq)
            return true;
    }
    return false;
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
    bool watched;           /* some of the bytes' storage has not been written */
} touch;

/* Inside a host function: what was submitted before it runs may have been submitted after it. */
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
                       .first_name = mr_name_text(e->tensor_name),
                       .submitted = t->inside ? t->inside->where : (mr_site){0},
                       .command = t->command,
                       .covered_other = t->covered_other,
                       .advisory = e->advisory || t->advisory,
                       .only_look = t->only_look};
    bool is_late = e->seq > t->seq; /* submitted after the host function that runs only now */
    if (is_late) {
        pair.first = t->actor, pair.second = e->actor;
        pair.first_seq = t->seq, pair.second_seq = e->seq;
        pair.first_access = t->access, pair.second_access = e->access;
        pair.first_op = t->op, pair.second_op = e->op;
        pair.first_where = t->where, pair.second_where = e->where;
    }
    if (!pair.advisory) mr_hazard_tell_found(c, &pair);
    if (outdated(c, e, t->seq)) return;
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

/* Taken once a command, since all its accesses know the same. */
static vclock *clock_of(checker *c, touch *t) {
    if (t->inside) return t->inside->clock;
    if (t->actor == &c->host_actor) return NULL;
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
    mr_name_keep(&e->op_name, t->command->own_name);
    mr_name_keep(&e->tensor_name, t->tensor->name);
    set_earlier(&e->earlier, t->earlier);
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
    if (c->advice && !t->only_look && t->actor != h->alloc_actor)
        mr_hazard_advise_needed(c, h->alloc_actor, h->alloc_seq);
    return false;
}

/* Whether the new access, which comes after that of `e`, cannot stand for it towards host functions. */
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
        if (!t->covered_other && e->actor != t->actor && e->seq < t->seq &&
            !mr_hazard_host_knows(c, e->actor, e->seq))
            t->covered_other = conflicts || writes_there(t, e);
        bool advise = c->advice && !t->only_look && e->actor != t->actor;
        if (advise && conflicts) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (t->only_look || !replaces(t->access, e->access) || e->advisory != t->advisory) continue;
        if (pending && wanted_by_function(c, h, t, e)) continue;
        bool is_same = leaves_entry && !again && mr_hazard_view_equal(view, &e->view);
        if (!is_same && !mr_hazard_view_covers(view, &e->view)) continue;
        if (advise) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (pending && is_same) keep_earlier(t, e);
        if (is_same) again = e;
        else mr_hazard_history_remove(c, h, e);
    }
    for (size_t i = 0; i < c->found.count && races; i++) {
        entry *e = c->found.items[i];
        mr_hazard_kind kind = MR_HAZARD_READ_AFTER_WRITE;
        if (!e) continue;
        conflict(e->access, t->access, &kind);
        races_with(c, h, t, view, e, kind);
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
    if (leaves_entry) note(c, h, t, view, again);
    set_earlier(&t->earlier, (earlier_access){0});
}

/* An operation's result, as a rule: all of memory that nothing has written, by what reads none such. */
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
    mr_hazard_history_search(c, h, &view);
    check_found(c, h, t, &view);
    if (__builtin_expect(!h->watched, 1)) return;
    if (writes_all(c, h, t, &view)) mr_hazard_unset_drop(h);
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

/* Reads before writes: an operation that reads what it writes then leaves one entry. `staged`: a copy whose source,
 * operand 1, has been looked at before. */
static void touch_operands(checker *c, const mr_command *command, actor *a, bool staged,
                           bool only_look) {
    touch t = {.command = command,
               .actor = a,
               .seq = command->seq,
               .op = command->name,
               .where = command->where,
               .only_look = only_look};
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < command->operand_count; i++) {
            t.tensor = command->operands[i].tensor;
            t.access = command->operands[i].access & MR_ACCESSES;
            if (((t.access & MR_WRITE) != 0) != (pass == 1) || (staged && i == 1)) continue;
            t.advisory = command->kind == MR_COMMAND_COPY && !command->u.copy.synchronous &&
                         command->u.copy.direction != MR_COPY_H2H &&
                         t.tensor->storage->kind == MR_MEMORY_PAGEABLE;
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

/* ---- copies: who waits for whom (R20-R24, R60) */

/* R20: the source of a staged copy has been read when the call returns. The stream was synchronised
 * for that, so the host's own order covers it and it leaves no entry. */
static void read_staged(checker *c, const mr_command *command, actor *a, bool only_look) {
    touch t = {.command = command,
               .tensor = command->operands[1].tensor,
               .actor = &c->host_actor,
               .waited_for = a,
               .seq = command->seq,
               .access = MR_READ,
               .op = command->name,
               .where = command->where,
               .only_look = only_look};
    touch_bytes(c, &t);
    if (!only_look) mr_hazard_order_stream_sync(c, a, command->seq - 1);
}

/* The order that a command of a stream brings, and then what it touches: the same for the fact and for the
 * look at what is to come, which is followed by mr_hazard_order_restore. */
static bool order_and_touch(checker *c, const mr_command *command, actor *a, bool only_look) {
    bool staged = command->kind == MR_COMMAND_COPY && mr_hazard_copy_effect(command).staged;
    if (staged) read_staged(c, command, a, only_look);
    bool carries = mr_hazard_order_before(c, a, command);
    if (c->advice && a->legacy && !only_look) carries = mr_hazard_advise_carries(c, a);
    touch_operands(c, command, a, staged, only_look);
    return carries;
}

static void copy_command(checker *c, const mr_command *command, actor *a, bool host_waited) {
    mr_copy_direction direction = command->u.copy.direction;
    bool synchronous = command->u.copy.synchronous;
    copy_effect rules = mr_hazard_copy_effect(command);
    bool host_waits = rules.host_waits && host_waited;
    if (MR_BROKEN(COPY_SYNC)) host_waits = false;
    if (MR_BROKEN(COPY_ASYNC)) host_waits = true;
    if (MR_BROKEN(COPY_D2D) && synchronous && direction == MR_COPY_D2D) host_waits = true;
    if (MR_BROKEN(STAGED) && rules.staged) host_waits = true;

    if (direction == MR_COPY_D2H &&
        command->operands[0].tensor->storage->kind == MR_MEMORY_PAGEABLE)
        c->totals.decided_by_host++; /* item, totable, print: values are taken from there unseen */
    if (host_waits) mr_hazard_order_stream_sync(c, a, command->seq);
}

/* ---- the host */

static void host_access(checker *c, const mr_command *command, bool only_look) {
    const mr_command *function = c->machine->host_function;
    if (!function || MR_BROKEN(HOST_FUNCTION)) {
        touch_operands(c, command, &c->host_actor, false, only_look);
        return;
    }
    const host_function *f = mr_hazard_function_of(c, function);
    if (!f) return; /* submitted before the checker was on, or before the check: that is ordered */
    if (f->seq <= c->opened) return;
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

/* ---- mr.reset */

static void forget_everything(checker *c) {
    mr_hazard_drop_collected(c);
    mr_hazard_history_drop_all(c);
    c->first_storage = c->machine->next_storage; /* host memory has kept its values */
    mr_hazard_order_close(c);
    mr_hazard_order_open(c);
}

/* ---- commands */

static void use_record(checker *c, snapshot *s) {
    if (c->advice && !s->used) mr_hazard_advise_used(c, s);
    s->used = true;
}

/* R27: cudaFree is the host's, whatever stream the memory was of. */
static actor *freeing_actor(checker *c, actor *a, const mr_command *command) {
    return command->u.at_once && !MR_BROKEN(FREE_AT_ONCE) ? &c->host_actor : a;
}

static void memory_command(checker *c, actor *a, const mr_command *command) {
    if (command->kind == MR_COMMAND_ALLOC) {
        mr_hazard_order_alloc(c, a, command->seq);
        mr_hazard_alloc(c, a, command);
        return;
    }
    if (!command->u.at_once) mr_hazard_order_free(c, a, command->seq);
    mr_hazard_free_memory(c, freeing_actor(c, a, command), command, false);
}

static void submitted(checker *c, const mr_command *command, bool host_waited) {
    actor *a = mr_hazard_actor_of(c, command->stream);
    if (!a) return;
    if (c->functions_may_be_done) mr_hazard_functions_drop(c, false);
    if (__builtin_expect(a->idle_wait != 0, 0)) mr_hazard_advise_active(c, a);
    if (mr_command_has(command, MR_PART_MEMORY)) {
        memory_command(c, a, command);
        a->worked = a->did = command->seq;
        return;
    }
    bool carries = order_and_touch(c, command, a, false);
    bool marks =
        !carries && (command->kind == MR_COMMAND_WAIT || command->kind == MR_COMMAND_RECORD);
    if (!marks) a->worked = a->did = command->seq;
    switch (command->kind) {
    case MR_COMMAND_OP: c->totals.operations++; break;
    case MR_COMMAND_COPY:
        c->totals.operations++;
        copy_command(c, command, a, host_waited);
        break;
    case MR_COMMAND_RECORD:
        mr_hazard_order_record(c, a, command, carries);
        if (command->u.event.event->timing)
            a->worked = a->did = command->seq; /* a time is asked for */
        if (c->advice) mr_hazard_advise_record(c, command, carries);
        break;
    case MR_COMMAND_WAIT: {
        snapshot *s = mr_hazard_snapshot_of(command);
        bool news = s && mr_hazard_advise_news(c, a, s);
        bool added = s && mr_hazard_order_wait(c, a, command->seq, s) && news;
        if (added) a->worked = command->seq;
        if (s) use_record(c, s);
        if (c->advice) mr_hazard_advise_wait(c, command, added, carries);
        if (c->recent_next) mr_hazard_amend(c, a, command);
        break;
    }
    case MR_COMMAND_HOST_FUNCTION:
        c->totals.operations++;
        mr_hazard_function_add(c, a, command);
        break;
    default: break;
    }
}

/* The host goes on behind what it has waited for. */
static void order_host(checker *c, const mr_command *command) {
    if (c->advice) mr_hazard_advise_sync(c, command);
    switch (mr_command_kinds[command->kind].after) {
    case MR_AFTER_STREAM: {
        actor *a = mr_hazard_actor_of(c, command->stream);
        if (a) mr_hazard_order_stream_sync(c, a, command->seq);
        break;
    }
    case MR_AFTER_RECORD: {
        snapshot *s = mr_hazard_snapshot_of(command);
        if (!s) break;
        use_record(c, s);
        mr_hazard_order_event_sync(c, s);
        break;
    }
    case MR_AFTER_DEVICE: mr_hazard_order_device_sync(c, command->u.device, command->seq); break;
    case MR_AFTER_NOTHING: break;
    }
}

static void host_did(checker *c, const mr_command *command) {
    bool access = command->kind == MR_COMMAND_HOST_ACCESS;
    bool query = mr_command_is(command, MR_TRAIT_QUERY);
    if (access || query) c->totals.decided_by_host++;
    if (!access) c->functions_may_be_done = c->functions.count > 0;
    if (access) host_access(c, command, false);
    else if (command->kind == MR_COMMAND_RESET) forget_everything(c);
    else if (!query || !MR_BROKEN(QUERY)) order_host(c, command);
}

mr_status mr_hazard_refuse(checker *c) {
    mr_status refusal = c->refusal;
    c->refusal = MR_OK;
    return refusal;
}

static void look_ahead(checker *c, const mr_command *command, actor *a) {
    order_before before;
    if (!command->operand_count) return;
    mr_hazard_order_save(c, a, command, &before);
    if (MR_BROKEN(LOOK_WITHOUT_ORDER)) touch_operands(c, command, a, false, true);
    else order_and_touch(c, command, a, true);
    mr_hazard_order_restore(c, &before);
}

/* Error mode: finds what the command would race with, and changes nothing. */
static void check_ahead(checker *c, const mr_command *command) {
    mr_hazard_log_command(c, command); /* the explanation of a race looks for both sides there */
    if (command->kind == MR_COMMAND_HOST_ACCESS) {
        host_access(c, command, true);
    } else if (mr_command_is(command, MR_TRAIT_SUBMITTED)) {
        actor *a = mr_hazard_actor_of(c, command->stream);
        if (a && c->functions_may_be_done) mr_hazard_functions_drop(c, false);
        if (a && command->kind == MR_COMMAND_FREE)
            mr_hazard_free_memory(c, freeing_actor(c, a, command), command, true);
        else if (a && command->kind != MR_COMMAND_ALLOC) look_ahead(c, command, a);
    }
    mr_hazard_publish_held(c);
    mr_hazard_log_take_back(c);
}

/* What came up where nothing could be raised (a tensor collected by Lua, no memory to remember
 * what was submitted) is raised by the next call. */
static mr_status may(mr_observer *observer, const mr_command *command) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    if (mr_hazard_is_collected(command)) return MR_OK;
    if (c->collected.count) mr_hazard_flush_collected(c);
    if (c->mode == MR_HAZARD_ERROR && !c->refusal) check_ahead(c, command);
    if (__builtin_expect(c->refusal != MR_OK, 0)) return mr_hazard_refuse(c);
    if (__builtin_expect(!c->out_of_memory, 1)) return MR_OK;
    c->out_of_memory = false;
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "no memory for the hazard checker; mr.hazard.mode(\"off\") frees what it holds");
}

static void did(mr_observer *observer, const mr_command *command, bool host_waited) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    mr_hazard_log_command(c, command);
    if (c->advice) mr_hazard_advise_command(c, command);
    if (mr_hazard_is_unseen_launch(c, command)) c->totals.not_looked_inside++;
    if (mr_command_is(command, MR_TRAIT_SUBMITTED)) submitted(c, command, host_waited);
    else host_did(c, command);
    if (__builtin_expect(c->held.count != 0, 0) && !c->machine->host_function)
        mr_hazard_publish_held(c);
}

static void function_ran(mr_observer *observer, const mr_command *command) {
    mr_hazard_function_ran((checker *)((char *)observer - offsetof(checker, observer)), command);
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
                                        .may = may,
                                        .did = did,
                                        .found = mr_hazard_found_in_kernel,
                                        .unset = mr_hazard_unset_before,
                                        .function_ran = function_ran,
                                        .storage_gone = storage_gone,
                                        .stream_gone = stream_gone,
                                        .event_gone = event_gone};
