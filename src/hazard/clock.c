/* Clocks: maps from slots to seqs.
 *
 * A clock is a base, which many clocks share, and a short list of differences. A wait between two streams
 * changes one difference; a record shares the whole clock. A new base is written only when the list is
 * full, once in CLOCK_DELTA waits. So the cost of a wait does not depend on the number of streams. Entries
 * that all hosts already know are dropped first, so programs that synchronise from time to time need no
 * base at all.
 *
 * The invariant easiest to break: a clock or base with more than one reference is never written. */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

static void base_release(clock_base *base) {
    if (base && --base->refs == 0) free(base);
}

vclock *mr_hazard_clock_retain(vclock *clock) {
    if (clock) clock->refs++;
    return clock;
}

void mr_hazard_clock_release(checker *c, vclock *clock) {
    if (!clock || --clock->refs) return;
    base_release(clock->base);
    mr_slab_free(&c->clocks, clock);
}

static inline uint64_t base_get(const clock_base *base, uint32_t slot) {
    return base && slot < base->count ? base->seq[slot] : 0;
}

/* A slot is in `delta` at most once, and there it is the newer value. */
uint64_t mr_hazard_clock_get(const vclock *clock, uint32_t slot) {
    if (!clock) return 0;
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->delta[i].slot == slot) return clock->delta[i].seq;
    return base_get(clock->base, slot);
}

/* Makes *clock writable. NULL, with the checker marked, when memory is out. */
static vclock *own(checker *c, vclock **clock) {
    vclock *old = *clock;
    if (old && old->refs == 1) return old;
    vclock *copy = mr_slab_alloc(&c->clocks);
    if (!copy) {
        c->out_of_memory = true;
        return NULL;
    }
    copy->refs = 1;
    copy->count = 0;
    copy->base = NULL;
    if (old) {
        copy->count = old->count;
        copy->base = old->base;
        if (copy->base) copy->base->refs++;
        memcpy(copy->delta, old->delta, old->count * sizeof *old->delta);
        old->refs--;
    }
    return *clock = copy;
}

/* Writes the differences into a base of its own. */
static bool fold(checker *c, vclock *clock) {
    uint32_t count = c->order.slots;
    clock_base *base = malloc(sizeof *base + count * sizeof *base->seq);
    if (!base) {
        c->out_of_memory = true;
        return false;
    }
    uint32_t known = clock->base ? clock->base->count : 0;
    base->refs = 1;
    base->count = count;
    base->in_host = false;
    if (known) memcpy(base->seq, clock->base->seq, known * sizeof *base->seq);
    memset(base->seq + known, 0, (count - known) * sizeof *base->seq);
    for (uint32_t i = 0; i < clock->count; i++)
        base->seq[clock->delta[i].slot] = clock->delta[i].seq;
    base_release(clock->base);
    clock->base = base;
    clock->count = 0;
    return true;
}

/* Makes room for one more difference: drops those that the host knows, or else writes a new base. */
static bool make_delta_room(checker *c, vclock *clock) {
    uint32_t kept = 0;
    if (clock->base && clock->base->in_host) {
        base_release(clock->base);
        clock->base = NULL;
    }
    for (uint32_t i = 0; i < clock->count; i++) {
        mark m = clock->delta[i];
        if ((m.seq > c->hosts.of[0][m.slot] && m.seq > c->order.floor) ||
            base_get(clock->base, m.slot))
            clock->delta[kept++] = m;
    }
    clock->count = kept;
    return kept <= CLOCK_DELTA / 2 || fold(c, clock);
}

void mr_hazard_clock_raise(checker *c, vclock **clock, uint32_t slot, uint64_t seq) {
    if (mr_hazard_clock_get(*clock, slot) >= seq) return;
    vclock *mine = own(c, clock);
    if (!mine) return;
    for (uint32_t i = 0; i < mine->count; i++) {
        if (mine->delta[i].slot == slot) {
            mine->delta[i].seq = seq;
            return;
        }
    }
    if (mine->count == CLOCK_DELTA && !make_delta_room(c, mine)) return;
    mine->delta[mine->count++] = (mark){slot, seq};
}

/* The bases differ and both are needed: makes a new one with the greater value of each slot. */
static void merge_base(checker *c, vclock *mine, const clock_base *other) {
    if (!fold(c, mine)) return;
    uint64_t *into = mine->base->seq;
    for (uint32_t i = 0; i < other->count; i++)
        if (other->seq[i] > into[i]) into[i] = other->seq[i];
}

void mr_hazard_clock_merge(checker *c, vclock **into, vclock *from) {
    if (!from || *into == from) return;
    if (!*into) {
        *into = mr_hazard_clock_retain(from);
        return;
    }
    clock_base *theirs = from->base;
    if (theirs && !theirs->in_host && theirs != (*into)->base) {
        vclock *mine = own(c, into);
        if (!mine) return;
        if (mine->base && !mine->base->in_host) {
            merge_base(c, mine, theirs);
        } else {
            /* The host knows all of our base: take their base under our differences. */
            base_release(mine->base);
            mine->base = theirs;
            theirs->refs++;
            for (uint32_t i = 0; i < mine->count; i++) {
                uint64_t below = base_get(theirs, mine->delta[i].slot);
                if (below > mine->delta[i].seq) mine->delta[i].seq = below;
            }
        }
    }
    for (uint32_t i = 0; i < from->count; i++)
        mr_hazard_clock_raise(c, into, from->delta[i].slot, from->delta[i].seq);
}

void mr_hazard_clock_to_host(checker *c, vclock *clock) {
    if (!clock) return;
    for (uint32_t i = 0; i < clock->count; i++) {
        mark m = clock->delta[i];
        if (m.seq > c->hosts.now[m.slot]) c->hosts.now[m.slot] = m.seq;
    }
    clock_base *base = clock->base;
    if (!base || base->in_host) return;
    for (uint32_t i = 0; i < base->count; i++)
        if (base->seq[i] > c->hosts.now[i]) c->hosts.now[i] = base->seq[i];
    /* it stays true: the knowledge of hosts only grows */
    base->in_host = c->hosts.now == c->hosts.of[0];
}
