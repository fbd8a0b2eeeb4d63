/* The knowledge of each host. Ranks (collective/ranks.h) are hosts of their own: a wait of one does not count for
 * another. One of them runs at a time, and `now` is its knowledge.
 *
 * The outer host starts the ranks, and goes on when all have ended. So each rank knows what the outer host knew, and
 * the outer host then knows what all of them did. Meanwhile only the outer host's knowledge is common to all, and only
 * that may be forgotten for good (mr_hazard_all_know). Collectives order work of streams, not hosts (R61). */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

#define OUTER 0

/* A rank that has not run yet knows what the outer host does. */
static uint64_t *knowledge_of(checker *c, uint16_t host) {
    uint64_t *known = c->hosts.of[host];
    size_t size = c->order.slot_capacity * sizeof *known;
    if (known) return known;
    known = c->hosts.of[host] = malloc(size ? size : 1);
    if (!known) {
        c->out_of_memory = true;
        return c->hosts.of[OUTER];
    }
    memcpy(known, c->hosts.of[OUTER], size);
    return known;
}

static void join(checker *c) {
    for (uint16_t k = 1; k <= MR_MEETING_MOST; k++) {
        for (uint32_t i = 0; i < c->order.slots && c->hosts.of[k]; i++)
            if (c->hosts.of[k][i] > c->hosts.of[OUTER][i])
                c->hosts.of[OUTER][i] = c->hosts.of[k][i];
        free(c->hosts.of[k]);
        c->hosts.of[k] = NULL;
    }
}

void mr_hazard_host_is(checker *c, uint16_t host) {
    if (host == c->hosts.number || !c->hosts.of[OUTER]) return;
    c->hosts.number = host;
    if (host == OUTER) {
        join(c);
        c->hosts.worlds++;
    }
    c->hosts.now = knowledge_of(c, host);
}

bool mr_hazard_hosts_grow(checker *c, uint32_t capacity) {
    for (uint16_t k = 0; k <= MR_MEETING_MOST; k++) {
        if (!c->hosts.of[k] && k != OUTER) continue;
        bool is_current = c->hosts.now == c->hosts.of[k];
        uint64_t *known = realloc(c->hosts.of[k], capacity * sizeof *known);
        if (!known) return false;
        memset(known + c->order.slot_capacity, 0,
               (capacity - c->order.slot_capacity) * sizeof *known);
        if (is_current) c->hosts.now = known;
        c->hosts.of[k] = known;
    }
    return true;
}

void mr_hazard_hosts_close(checker *c) {
    for (uint16_t k = 0; k <= MR_MEETING_MOST; k++) {
        free(c->hosts.of[k]);
        c->hosts.of[k] = NULL;
    }
    c->hosts.now = NULL;
    c->hosts.number = OUTER;
}

void mr_hazard_hosts_pass(checker *c, vclock **clock) {
    const uint64_t *outer = c->hosts.of[OUTER];
    if (c->hosts.now == outer) return;
    for (uint32_t i = 0; i < c->order.slots; i++)
        if (c->hosts.now[i] > outer[i]) mr_hazard_clock_raise(c, clock, i, c->hosts.now[i]);
}
