/* Bytes that nothing had written before a launch of a user's kernel. Which of its possible bytes a kernel reads is
 * known only when it runs. So the bytes that were unwritten at its submission are kept until then for the virtual GPU.
 * Bounded: beyond MOST_BYTES no more is kept, and such reads are not found. */
#include "hazard/explain.h"

#include <stdlib.h>

#include "model/backend.h"

#define MOST_BYTES ((size_t)64 << 20)

static void remove_at(checker *c, size_t i) {
    c->unset.before_bytes -= c->unset.before.items[i].size;
    c->unset.before.items[i] = c->unset.before.items[--c->unset.before.count];
}

static size_t find(const checker *c, uint64_t seq, const mr_storage *storage) {
    size_t i = 0;
    while (i < c->unset.before.count &&
           (c->unset.before.items[i].seq != seq || c->unset.before.items[i].storage != storage))
        i++;
    return i;
}

bool mr_hazard_before_wanted(const checker *c, uint64_t seq, const mr_storage *storage) {
    return c->machine->backend->simulator && storage->host &&
           c->unset.before_bytes + storage->bytes / 8 < MOST_BYTES &&
           find(c, seq, storage) == c->unset.before.count;
}

void mr_hazard_before_keep(checker *c, uint64_t seq, const mr_storage *storage, uint8_t *bits) {
    unset_before kept = {seq, storage, bits, (size_t)(storage->bytes / 8)};
    if (!bits || !mr_vec_push(&c->unset.before, kept)) {
        c->out_of_memory = true;
        free(bits);
        return;
    }
    c->unset.before_bytes += kept.size;
}

void mr_hazard_before_drop(checker *c, uint64_t seq) {
    for (size_t i = c->unset.before.count; i-- > 0;) {
        if (c->unset.before.items[i].seq != seq) continue;
        free(c->unset.before.items[i].bits);
        remove_at(c, i);
    }
}

void mr_hazard_before_forget(checker *c) {
    for (size_t i = 0; i < c->unset.before.count; i++) free(c->unset.before.items[i].bits);
    mr_vec_free(&c->unset.before);
    c->unset.before_bytes = 0;
}

uint8_t *mr_hazard_unset_before(mr_observer *observer, const mr_command *command,
                                const mr_storage *storage) {
    checker *c = (checker *)((char *)observer - offsetof(checker, observer));
    size_t i = find(c, command->seq, storage);
    if (i == c->unset.before.count) return NULL;
    uint8_t *bits = c->unset.before.items[i].bits;
    remove_at(c, i);
    return bits;
}

void mr_hazard_unset_destroy(checker *c) {
    mr_hazard_before_forget(c);
    mr_vec_free(&c->unset.events);
}
