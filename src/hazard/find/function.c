/* Host functions that have not run yet (R46). Their accesses become known only when they run, and may race
 * with commands that were submitted long before. So the history must keep the accesses that one of them
 * may still race with.
 *
 * These are few. Normally an access is replaced by a later access that is ordered after it and covers it: everything
 * that races with the old one also races with the new one. A pending function is an exception only if it is ordered
 * before the new access, and not ordered with the old one. The functions of one stream are ordered, so two searches in
 * its queue find whether there is one. The cost depends on the number of streams that have pending functions, not on
 * the number of functions. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

/* ---- what the host knew */

void mr_hazard_past_release(host_past *past) {
    if (past && --past->refs == 0) free(past);
}

host_past *mr_hazard_past_now(checker *c) {
    host_past *past = c->functions.past;
    size_t size = c->order.slots * sizeof *c->hosts.now;
    bool same = past && past->slots == c->order.slots && past->floor == c->order.floor &&
                memcmp(past->seq, c->hosts.now, size) == 0;
    if (!same) {
        past = malloc(sizeof *past + size);
        if (!past) {
            c->out_of_memory = true;
            return NULL;
        }
        past->refs = 1;
        past->slots = c->order.slots;
        past->floor = c->order.floor;
        memcpy(past->seq, c->hosts.now, size);
        mr_hazard_past_release(c->functions.past);
        c->functions.past = past;
    }
    past->refs++;
    return past;
}

static uint64_t past_get(const host_past *past, uint32_t slot) {
    return slot < past->slots ? past->seq[slot] : 0;
}

bool mr_hazard_past_knows(const checker *c, const host_past *past, const actor *a, uint64_t seq) {
    if (a->device < 0 || seq <= past->floor || past_get(past, a->slot) >= seq) return true;
    const barrier *b = &c->order.barriers[a->device];
    return past_get(past, b->all_slot) >= seq ||
           (a->grouped && past_get(past, b->group_slot) >= seq);
}

/* ---- the queues */

static void function_clear(checker *c, host_function *f) {
    mr_hazard_clock_release(c, f->clock);
    mr_hazard_actor_release(c, f->actor);
    mr_hazard_past_release(f->host);
}

static function_queue *queue_of(const checker *c, const actor *a) {
    for (size_t i = 0; i < c->functions.queues.count; i++)
        if (c->functions.queues.items[i].actor == a) return &c->functions.queues.items[i];
    return NULL;
}

/* R46. Everything that the host knows at its submission comes before it; what the host learns later need not. */
void mr_hazard_function_add(checker *c, actor *t, const mr_command *command) {
    function_queue *queue = queue_of(c, t), fresh = {.actor = t};
    if (!queue && mr_vec_push(&c->functions.queues, fresh))
        queue = &c->functions.queues.items[c->functions.queues.count - 1];
    host_function f = {.actor = t,
                       .seq = command->seq,
                       .where = command->where,
                       .name = command->name,
                       .host = mr_hazard_past_now(c)};
    if (f.host && queue && mr_vec_push(&queue->items, f)) {
        mr_hazard_actor_retain(t);
        queue->items.items[queue->items.count - 1].clock = mr_hazard_order_clock_of(c, t);
        return;
    }
    mr_hazard_past_release(f.host);
    if (queue && !queue->items.count) c->functions.queues.count--;
    c->out_of_memory = true;
}

static void queue_trim(function_queue *queue) {
    size_t left = queue->items.count - queue->first;
    if (queue->first < 16 || queue->first < left) return;
    memmove(queue->items.items, queue->items.items + queue->first,
            left * sizeof *queue->items.items);
    queue->items.count = left;
    queue->first = 0;
}

/* Not called at the wait itself: the wait is announced before the functions run. */
void mr_hazard_functions_drop(checker *c, bool all) {
    for (size_t i = c->functions.queues.count; i-- > 0;) {
        function_queue *queue = &c->functions.queues.items[i];
        for (; queue->first < queue->items.count; queue->first++) {
            host_function *f = &queue->items.items[queue->first];
            if (!all && !mr_hazard_all_know(c, f->actor, f->seq)) break;
            function_clear(c, f);
        }
        if (queue->first < queue->items.count) {
            queue_trim(queue);
            continue;
        }
        mr_vec_free(&queue->items);
        c->functions.queues.items[i] = c->functions.queues.items[--c->functions.queues.count];
    }
    c->functions.may_be_done = false;
    if (c->unset.events.count && !all) mr_hazard_unset_apply_deferred(c);
    if (c->functions.queues.count) return;
    mr_hazard_past_release(c->functions.past);
    c->functions.past = NULL;
}

/* Whether this command of the host may run before or after the function: the host has not waited for it. */
static bool meets_other_code(const checker *c, const host_function *f, const mr_command *command) {
    if (!mr_hazard_host_knows(c, f->actor, f->seq)) return true;
    const mr_hazard_hooks *hooks = &c->hooks;
    return hooks->waits_at_once && !hooks->waits_at_once(hooks->context, f->where, command->where);
}

/* A function for which the host waits at once runs beside no other code. */
void mr_hazard_functions_note(checker *c, const mr_command *command) {
    bool is_function = command->kind == MR_COMMAND_HOST_FUNCTION;
    uint64_t before = is_function ? command->seq : c->machine->counts.next_seq;
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        for (size_t k = queue->items.count; k-- > queue->first;) {
            const host_function *f = &queue->items.items[k];
            if (f->seq <= c->functions.noted) break;
            if (f->seq < before && meets_other_code(c, f, command))
                mr_claims_add(&c->totals.claims, MR_CLAIM_HOST_FUNCTIONS);
        }
    }
    c->functions.noted = before - 1;
}

void mr_hazard_functions_note_rest(checker *c) {
    const mr_site none = {0};
    for (size_t i = 0; i < c->functions.queues.count && c->hooks.waits_at_once; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        for (size_t k = queue->items.count; k-- > queue->first;) {
            const host_function *f = &queue->items.items[k];
            if (f->seq <= c->functions.noted) break;
            if (!c->hooks.waits_at_once(c->hooks.context, f->where, none))
                mr_claims_add(&c->totals.claims, MR_CLAIM_HOST_FUNCTIONS);
        }
    }
    c->functions.noted = c->machine->counts.next_seq - 1;
}

/* ---- asking */

/* The place of the first function of the queue that was submitted after `seq`. */
static size_t first_after(const function_queue *queue, uint64_t seq) {
    size_t low = queue->first, high = queue->items.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (queue->items.items[middle].seq > seq) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* R46: the running host function: its stream, and its place in the order. */
const host_function *mr_hazard_function_of(const checker *c, const mr_command *command) {
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        size_t after = first_after(queue, command->seq);
        if (after == queue->first) continue;
        const host_function *f = &queue->items.items[after - 1];
        if (f->seq == command->seq) return f;
    }
    return NULL;
}

void mr_hazard_function_ran(checker *c, const mr_command *command) {
    host_function *f = (host_function *)mr_hazard_function_of(c, command);
    if (f) f->ran = true;
    if (c->unset.events.count) mr_hazard_unset_apply_deferred(c);
    mr_hazard_publish_held(c);
}

bool mr_hazard_functions_left_before(const checker *c, uint64_t seq) {
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        size_t before = first_after(queue, seq - 1); /* of one stream, they run in order */
        if (before > queue->first && !queue->items.items[before - 1].ran) return true;
    }
    return false;
}

uint64_t mr_hazard_functions_left(const checker *c, int device) {
    uint64_t left = 0;
    if (c->machine->lost) return 0; /* R46: after an error they are no longer called */
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        if (device >= 0 && queue->actor->device != device) continue;
        for (size_t k = queue->items.count; k-- > queue->first && !queue->items.items[k].ran;)
            left++;
    }
    return left;
}

/* The accesses of kernels, too, become known only when they run. */
uint64_t mr_hazard_kernels_left(const checker *c, int device) {
    uint64_t left = 0;
    if (c->machine->lost) return 0; /* they do not run any more */
    for (const actor *a = c->order.actors; a; a = a->next)
        left += a->launched && (device < 0 || a->device == device) &&
                !mr_hazard_host_knows(c, a, a->launched);
    return left;
}

bool mr_hazard_function_after(const checker *c, const host_function *f, const actor *a,
                              uint64_t seq) {
    if (a == f->actor || mr_hazard_past_knows(c, f->host, a, seq)) return true;
    return mr_hazard_gathers_from(f->actor, a) || mr_hazard_clock_knows(c, f->clock, a, seq);
}

bool mr_hazard_function_between(const checker *c, const entry *e) {
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        size_t after = first_after(queue, e->seq);
        if (after < queue->items.count &&
            !mr_hazard_function_after(c, &queue->items.items[after], e->actor, e->seq))
            return true;
    }
    return false;
}

/* Later functions of a queue come after more commands. So of the functions after `e`, the first one decides; of those
 * before `e`, the last one that is also before the new access. */
bool mr_hazard_function_needs(const checker *c, const entry *e, const actor *t,
                              const vclock *clock) {
    if (MR_BROKEN(FUNCTION_FORGOTTEN)) return false;
    for (size_t i = 0; i < c->functions.queues.count; i++) {
        const function_queue *queue = &c->functions.queues.items[i];
        const host_function *items = queue->items.items;
        uint64_t reach =
            !t || t == queue->actor ? UINT64_MAX : mr_hazard_clock_reach(c, clock, queue->actor);
        if (items[queue->first].seq > reach) continue;
        size_t after = first_after(queue, e->seq);
        if (after < queue->items.count && items[after].seq <= reach &&
            !mr_hazard_function_after(c, &items[after], e->actor, e->seq))
            return true;
        size_t before = reach < e->seq ? first_after(queue, reach) : after;
        if (before == queue->first || e->actor == queue->actor) continue;
        if (items[before - 1].seq > mr_hazard_clock_reach(c, e->clock, queue->actor)) return true;
    }
    return false;
}

void mr_hazard_functions_waited(checker *c) {
    c->functions.may_be_done = c->functions.queues.count > 0;
}

void mr_hazard_functions_destroy(checker *c) {
    mr_vec_free(&c->functions.queues);
}
