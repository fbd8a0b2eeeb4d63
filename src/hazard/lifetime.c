/* The life of device memory (R28, R33): every use comes after the allocation and before the free, by
 * an order that CUDA guarantees. Host memory has no stream order: it stays while anything names it. */
#include "hazard/state.h"

void mr_hazard_alloc(checker *c, actor *t, const mr_action *action) {
    history *h = mr_hazard_history_of(c, action->u.storage);
    if (!h || h->alloc_actor) return;
    h->alloc_actor = t;
    h->alloc_seq = action->seq;
    mr_hazard_actor_retain(t);
}

/* R33: the free comes after all work submitted so far to the streams that record_stream named. The
 * streams' memory of a closed stream is freed in the default stream, after what the closed one still
 * has to do: nothing that a script could have written better. */
static bool free_waits(const checker *c, const mr_storage *storage, const actor *t,
                       const entry *e) {
    if (mr_hazard_order_before_free(c, t, e->actor, e->seq)) return true;
    const mr_stream *own = storage->stream;
    if (own && own->closed && own->observed && mr_hazard_knew(c, own->observed, e->actor, e->seq))
        return true;
    if (MR_BROKEN(FREE_USED_BY)) return false;
    for (size_t i = 0; i < storage->used_by.count; i++) {
        const actor *user = storage->used_by.items[i]->observed;
        if (user && mr_hazard_knew(c, user, e->actor, e->seq)) return true;
    }
    return false;
}

static bool is_last_of_its_stream(const history *h, const entry *e) {
    for (uint32_t i = 0; i < h->count; i++)
        if (h->entries[i]->actor == e->actor && h->entries[i]->seq > e->seq) return false;
    return true;
}

static void free_races(checker *c, history *h, actor *t, const mr_action *action, const entry *e) {
    found_pair pair = {.kind = MR_HAZARD_USE_AFTER_FREE,
                       .history = h,
                       .first = e->actor,
                       .second = t,
                       .first_seq = e->seq,
                       .second_seq = action->seq,
                       .first_access = e->access,
                       .first_op = e->op,
                       .second_op = "free",
                       .first_where = e->where,
                       .second_where = action->where,
                       .first_view = &e->view,
                       .first_name = e->tensor_name,
                       .advisory = e->advisory};
    mr_hazard_pair_found(c, &pair);
}

void mr_hazard_free_memory(checker *c, actor *t, const mr_action *action) {
    mr_storage *storage = action->u.storage;
    history *h = mr_hazard_history_of(c, storage);
    if (!h || h->freed) return;
    for (uint32_t i = 0; i < h->count; i++) {
        const entry *e = h->entries[i];
        bool waits = free_waits(c, storage, t, e);
        if (c->advice && waits && e->actor != t) mr_hazard_advise_needed(c, e->actor, e->seq);
        if (MR_BROKEN(FREE_CHECKED) || waits) continue;
        if (c->hooks.detected)
            c->hooks.detected(c->hooks.context, MR_HAZARD_USE_AFTER_FREE, e->seq, action->seq);
        if (is_last_of_its_stream(h, e)) free_races(c, h, t, action, e);
    }
    /* Memory that nobody has touched can still be freed before it was allocated. */
    if (h->alloc_actor && !mr_hazard_order_before_free(c, t, h->alloc_actor, h->alloc_seq) &&
        !h->count && !MR_BROKEN(ALLOC_CHECKED)) {
        found_pair pair = {.kind = MR_HAZARD_USE_BEFORE_ALLOC,
                           .history = h,
                           .first = h->alloc_actor,
                           .second = t,
                           .first_seq = h->alloc_seq,
                           .second_seq = action->seq,
                           .first_op = "alloc",
                           .second_op = "free",
                           .first_where = storage->made,
                           .second_where = action->where};
        if (c->hooks.detected)
            c->hooks.detected(c->hooks.context, pair.kind, pair.first_seq, action->seq);
        bool closed = storage->stream && storage->stream->closed;
        if (!closed) mr_hazard_pair_found(c, &pair);
    }
    if (c->refusal) return; /* error mode: it is not carried out */
    h->freed = true;
}

/* A tensor that the collector took while work on it was pending is a hazard of the program only if the
 * program goes on: at the end of the script everything is collected, and nothing can come after. */
void mr_hazard_flush_collected(checker *c) {
    for (size_t i = 0; i < c->collected.count; i++) {
        bool is_new;
        mr_hazard_report *report = mr_hazard_report_add(c, c->collected.items[i], &is_new);
        if (report && (is_new || c->mode == MR_HAZARD_ERROR))
            mr_hazard_publish(c, c->collected.items[i]);
        free(c->collected.items[i]);
    }
    c->collected.count = 0;
}

void mr_hazard_drop_collected(checker *c) {
    for (size_t i = 0; i < c->collected.count; i++) free(c->collected.items[i]);
    c->collected.count = 0;
}
