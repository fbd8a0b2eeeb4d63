/* The history of a storage: the accesses that a later access could still race with.
 *
 * An entry is removed when a later access replaces it. The new access must be ordered after the entry, use all its
 * bytes, and conflict with the same accesses. Then everything that races with the old one also races with the new one.
 * So a storage that is used as a whole by ordered work has one entry, or two, however long the program runs. */
#include "hazard/explain.h"

#include <stdlib.h>
#include <string.h>

#ifndef INDEX_FROM
#define INDEX_FROM 8 /* entries; with fewer, a linear search is faster */
#endif
#define MOST_ENTRIES                                                                               \
    (1 << 20) /* of one storage; beyond, the oldest is forgotten and that is counted */

history *mr_hazard_history_of(checker *c, mr_storage *storage) {
    history *h = storage->observed;
    if (h) return h;
    h = mr_slab_alloc(&c->histories.slab);
    if (!h) {
        c->out_of_memory = true;
        return NULL;
    }
    memset(h, 0, sizeof *h);
    h->storage = storage;
    h->entries = h->few;
    h->capacity = sizeof h->few / sizeof *h->few;
    h->next = c->histories.all;
    if (h->next) h->next->previous = h;
    c->histories.all = h;
    storage->observed = h;
    if (storage->blank && storage->id > c->histories.first_storage) mr_hazard_unset_begin(h);
    return h;
}

static void entry_free(checker *c, entry *e) {
    mr_hazard_actor_release(c, e->actor);
    mr_hazard_clock_release(c, e->clock);
    mr_name_release(e->op_name);
    mr_name_release(e->earlier.op_name);
    mr_name_release(e->tensor_name);
    mr_slab_free(e->large ? &c->histories.large_entries : &c->histories.small_entries, e);
    c->histories.entry_count--;
}

void mr_hazard_history_drop(checker *c, history *h) {
    mr_hazard_unset_drop(h);
    mr_hazard_unset_drop_kept(h);
    mr_hazard_rank_uses_free(h->by_ranks);
    mr_hazard_index_destroy(h->index);
    for (uint32_t i = 0; i < h->count; i++) entry_free(c, h->entries[i]);
    mr_few_free(h->entries, h->few);
    if (h->alloc_actor) mr_hazard_actor_release(c, h->alloc_actor);
    free(h->last_name);
    if (h->previous) h->previous->next = h->next;
    else c->histories.all = h->next;
    if (h->next) h->next->previous = h->previous;
    h->storage->observed = NULL;
    mr_slab_free(&c->histories.slab, h);
}

void mr_hazard_history_drop_all(checker *c) {
    mr_hazard_unset_forget(c);
    mr_hazard_before_forget(c);
    while (c->histories.all) mr_hazard_history_drop(c, c->histories.all);
}

static bool grow(history *h) {
    if (!mr_few_grow(h->entries, h->few, h->count, h->capacity * 4)) return false;
    h->capacity *= 4;
    return true;
}

/* An access that the host knows to be done cannot race with a later one, except with a pending host function that was
 * submitted before it. */
static void forget_finished(checker *c, history *h) {
    bool pending = mr_hazard_functions_reach(c, h->storage);
    bool only_of_host = h->storage->rank; /* no other rank uses what a rank has made */
    for (uint32_t i = h->count; i-- > 0;) {
        entry *e = h->entries[i];
        bool known = only_of_host ? mr_hazard_host_knows(c, e->actor, e->seq)
                                  : mr_hazard_all_know(c, e->actor, e->seq);
        if (!known) continue;
        if (pending && mr_hazard_function_needs(c, e, NULL, NULL)) continue;
        if (c->advice.on) mr_hazard_advise_needed(c, e->actor, e->seq);
        mr_hazard_history_remove(c, h, e);
    }
}

static void forget_oldest(checker *c, history *h) {
    uint64_t least = UINT64_MAX, most = 0;
    for (uint32_t i = 0; i < h->count; i++) {
        uint64_t seq = h->entries[i]->seq;
        if (seq < least) least = seq;
        if (seq > most) most = seq;
    }
    for (uint32_t i = h->count; i-- > 0;) {
        if (h->entries[i]->seq > least + (most - least) / 2) continue;
        mr_hazard_history_remove(c, h, h->entries[i]);
        mr_claims_add(&c->totals.claims, MR_CLAIM_FORGOTTEN);
    }
}

static bool make_room(checker *c, history *h) {
    if (h->count < h->capacity) return true;
    if (h->count >= INDEX_FROM) forget_finished(c, h);
    if (h->count < h->capacity / 4 * 3) return true;
    if (h->capacity < MOST_ENTRIES) return grow(h);
    forget_oldest(c, h);
    return true;
}

entry *mr_hazard_history_add(checker *c, history *h, actor *a, const byte_view *view) {
    bool large = view->ndim > SMALL_ENTRY_DIMS;
    if (!make_room(c, h)) {
        c->out_of_memory = true;
        return NULL;
    }
    entry *e = mr_slab_alloc(large ? &c->histories.large_entries : &c->histories.small_entries);
    if (!e) {
        c->out_of_memory = true;
        return NULL;
    }
    memset(e, 0, offsetof(entry, view));
    memcpy(&e->view, view, offsetof(byte_view, dim) + (size_t)view->ndim * sizeof *view->dim);
    e->large = large;
    e->actor = a;
    mr_hazard_actor_retain(a);
    e->at = h->count;
    h->entries[h->count++] = e;
    c->histories.entry_count++;
    if (!h->index && h->count > INDEX_FROM) {
        h->index = mr_hazard_index_create(h);
        if (!h->index) c->out_of_memory = true;
    } else if (h->index && !mr_hazard_index_add(h->index, e)) {
        c->out_of_memory = true;
    }
    return e;
}

void mr_hazard_history_remove(checker *c, history *h, entry *e) {
    if (h->index) mr_hazard_index_remove(h->index, e);
    entry *last = h->entries[--h->count];
    h->entries[e->at] = last;
    last->at = e->at;
    if (h->index && h->count < INDEX_FROM / 2) {
        mr_hazard_index_destroy(h->index);
        h->index = NULL;
    }
    entry_free(c, e);
}

void mr_hazard_history_search(checker *c, history *h, const byte_view *view) {
    c->histories.found.count = 0;
    if (h->index) {
        mr_hazard_index_search(c, h->index, view);
        return;
    }
    for (uint32_t i = 0; i < h->count; i++) {
        entry *e = h->entries[i];
        if (e->view.first >= view->end || view->first >= e->view.end) continue;
        if (!mr_vec_push(&c->histories.found, e)) c->out_of_memory = true;
    }
}

void mr_hazard_histories_create(checker *c) {
    size_t head = offsetof(entry, view) + offsetof(byte_view, dim);
    mr_slab_init(&c->histories.slab, sizeof(history), 128);
    mr_slab_init(&c->histories.small_entries, head + SMALL_ENTRY_DIMS * sizeof(view_dim), 128);
    mr_slab_init(&c->histories.large_entries, sizeof(entry), 64);
}

void mr_hazard_histories_begin(checker *c) {
    c->histories.first_storage = c->machine->counts.next_storage;
}

void mr_hazard_histories_destroy(checker *c) {
    mr_vec_free(&c->histories.found);
    mr_vec_free(&c->histories.replaced);
    mr_slab_destroy(&c->histories.slab);
    mr_slab_destroy(&c->histories.small_entries);
    mr_slab_destroy(&c->histories.large_entries);
}
