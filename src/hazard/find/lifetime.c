/* The lifetime of device memory (R28, R33): every use must be ordered after the allocation and before the
 * free, by an order that CUDA guarantees. An immediate free (R27) is an action of the host: cudaFree does not wait, and
 * assumes that all work on the memory is done. Host memory has no stream order: it stays while anything refers to
 * it. */
#include "hazard/explain.h"

void mr_hazard_alloc(checker *c, actor *t, const mr_command *command) {
    history *h = mr_hazard_history_of(c, command->u.storage);
    /* Memory of the backend got its values before the call that loaded it returned. */
    if (!h || h->alloc_actor || command->u.storage->fixed_address) return;
    h->alloc_actor = t;
    h->alloc_seq = command->seq;
    mr_hazard_actor_retain(t);
    mr_hazard_unset_begin(h);
}

/* The places that a free by `t` waits for besides its own stream (order/order.h). */
static mr_place_set guards_of_free(const checker *c, const actor *t) {
    bool of_host = t == &c->order.host_actor;
    mr_order_facts facts = mr_order_facts_of_kind(MR_COMMAND_FREE, of_host ? 0 : t->lane.facts);
    return mr_order_put(facts, MR_PLACE_FREED, MR_GUARANTEED);
}

/* R33: a stream that record_stream named and whose last command comes after the access; NULL: there is none. */
static actor *recorded_user(const checker *c, const mr_storage *storage, const actor *t,
                            const entry *e) {
    if (MR_BROKEN(FREE_USED_BY) || !storage->used_by.count) return NULL;
    if (!mr_place_in(guards_of_free(c, t), MR_PLACE_USERS)) return NULL;
    for (size_t i = 0; i < storage->used_by.count; i++) {
        actor *user = storage->used_by.items[i]->observed;
        if (user && mr_hazard_knew(c, user, e->actor, e->seq)) return user;
    }
    return NULL;
}

/* R9: memory of a closed stream is freed in the default stream, after the closed stream's pending work. A script cannot
 * order that better. NULL: the stream is not closed, or its work does not come after the access. */
static actor *closed_owner(const checker *c, const mr_storage *storage, const actor *t,
                           const entry *e) {
    const mr_stream *own = storage->stream;
    if (!own || !own->closed || !own->observed) return NULL;
    if (!mr_place_in(guards_of_free(c, t), MR_PLACE_OWNER)) return NULL;
    return mr_hazard_knew(c, own->observed, e->actor, e->seq) ? own->observed : NULL;
}

static bool free_waits(checker *c, const mr_storage *storage, const actor *t, const entry *e) {
    if (mr_hazard_order_before_free(c, t, e->actor, e->seq)) return true;
    actor *owner = closed_owner(c, storage, t, e);
    if (owner) {
        mr_hazard_advise_active(c, owner);
        return true;
    }
    actor *user = recorded_user(c, storage, t, e);
    if (user && user->idle_wait) mr_hazard_advise_active(c, user);
    return user != NULL;
}

static bool is_last_of_its_stream(const history *h, const entry *e) {
    for (uint32_t i = 0; i < h->count; i++)
        if (h->entries[i]->actor == e->actor && h->entries[i]->seq > e->seq) return false;
    return true;
}

static void free_races(checker *c, history *h, actor *t, const mr_command *command, const entry *e,
                       bool only_look) {
    found_pair pair = {.kind = MR_HAZARD_USE_AFTER_FREE,
                       .history = h,
                       .first = e->actor,
                       .second = t,
                       .first_seq = e->seq,
                       .second_seq = command->seq,
                       .first_access = e->access,
                       .first_op = e->op,
                       .second_op = "free",
                       .first_where = e->where,
                       .second_where = command->where,
                       .first_view = &e->view,
                       .first_name = mr_name_text(e->tensor_name),
                       .advisory = e->advisory,
                       .by_scope = command->u.by_scope,
                       .only_look = only_look};
    mr_hazard_tell_found(c, &pair);
    if (is_last_of_its_stream(h, e)) mr_hazard_pair_found(c, &pair);
}

/* Another run may free it earlier. That matters only if another stream used the memory: not its own stream, not one
 * that record_stream named, and not ordered work. */
static bool other_stream_used(const checker *c, const history *h, const actor *t) {
    for (uint32_t i = 0; i < h->count; i++) {
        const entry *e = h->entries[i];
        if (e->actor != t && e->seq > c->order.floor && !recorded_user(c, h->storage, t, e))
            return true;
    }
    return false;
}

void mr_hazard_free_memory(checker *c, actor *t, const mr_command *command, bool only_look) {
    mr_storage *storage = command->u.storage;
    history *h = mr_hazard_history_of(c, storage);
    if (!h || h->freed) return;
    bool judged = !(c->check.returned && mr_hazard_is_collected(command));
    if (judged && !only_look && mr_hazard_is_collected(command) && other_stream_used(c, h, t))
        mr_claims_add(&c->totals.claims, MR_CLAIM_COLLECTED);
    for (uint32_t i = 0; i < h->count; i++) {
        const entry *e = h->entries[i];
        bool waits = free_waits(c, storage, t, e);
        if (c->advice.on && !only_look && waits && e->actor != t)
            mr_hazard_advise_needed(c, e->actor, e->seq);
        if (MR_BROKEN(FREE_CHECKED) || waits || !judged) continue;
        free_races(c, h, t, command, e, only_look);
    }
    /* Memory without any access can still be freed before it was allocated. */
    if (judged && h->alloc_actor &&
        !mr_hazard_order_before_free(c, t, h->alloc_actor, h->alloc_seq) && !h->count &&
        !MR_BROKEN(ALLOC_CHECKED)) {
        found_pair pair = {.kind = MR_HAZARD_USE_BEFORE_ALLOC,
                           .history = h,
                           .first = h->alloc_actor,
                           .second = t,
                           .first_seq = h->alloc_seq,
                           .second_seq = command->seq,
                           .first_op = "alloc",
                           .second_op = "free",
                           .first_where = storage->made,
                           .second_where = command->where,
                           .only_look = only_look};
        mr_hazard_tell_found(c, &pair);
        bool closed = storage->stream && storage->stream->closed;
        if (!closed) mr_hazard_pair_found(c, &pair);
    }
    if (only_look) return;
    h->freed = true;
    /* No rank can still name a storage that the collector takes. */
    if (!c->machine->rank || storage->rank || mr_hazard_is_collected(command)) return;
    byte_view all = {.end = storage->bytes};
    mr_hazard_rank_touches(c, h, t, MR_WRITE, &all);
}
