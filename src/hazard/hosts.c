/* What each host knows. Ranks (collective/ranks.h) are hosts of their own: what one has waited for, another has not.
 * One of them runs at a time, and `host` is what that one knows.
 *
 * The outer host starts the ranks, and goes on when all have ended. So each rank knows what the outer host knew, and
 * the outer host then knows what all of them did. Meanwhile only what the outer host knew is known to everybody:
 * nothing else may be forgotten for good (mr_hazard_all_know). Collectives order what streams do, not hosts (R61). */
#include "hazard/state.h"

#include <stdlib.h>
#include <string.h>

#define OUTER 0

/* A rank that has not run yet knows what the outer host does. */
static uint64_t *knowledge_of(checker *c, uint16_t host) {
    uint64_t *known = c->hosts[host];
    size_t size = c->slot_capacity * sizeof *known;
    if (known) return known;
    known = c->hosts[host] = malloc(size ? size : 1);
    if (!known) {
        c->out_of_memory = true;
        return c->hosts[OUTER];
    }
    memcpy(known, c->hosts[OUTER], size);
    return known;
}

static void join(checker *c) {
    for (uint16_t k = 1; k <= MR_MEETING_MOST; k++) {
        for (uint32_t i = 0; i < c->slots && c->hosts[k]; i++)
            if (c->hosts[k][i] > c->hosts[OUTER][i]) c->hosts[OUTER][i] = c->hosts[k][i];
        free(c->hosts[k]);
        c->hosts[k] = NULL;
    }
}

void mr_hazard_host_is(checker *c, uint16_t host) {
    if (host == c->host_number || !c->hosts[OUTER]) return;
    c->host_number = host;
    if (host == OUTER) {
        join(c);
        c->worlds++;
    }
    c->host = knowledge_of(c, host);
}

bool mr_hazard_hosts_grow(checker *c, uint32_t capacity) {
    for (uint16_t k = 0; k <= MR_MEETING_MOST; k++) {
        if (!c->hosts[k] && k != OUTER) continue;
        bool is_current = c->host == c->hosts[k];
        uint64_t *known = realloc(c->hosts[k], capacity * sizeof *known);
        if (!known) return false;
        memset(known + c->slot_capacity, 0, (capacity - c->slot_capacity) * sizeof *known);
        if (is_current) c->host = known;
        c->hosts[k] = known;
    }
    return true;
}

void mr_hazard_hosts_close(checker *c) {
    for (uint16_t k = 0; k <= MR_MEETING_MOST; k++) {
        free(c->hosts[k]);
        c->hosts[k] = NULL;
    }
    c->host = NULL;
    c->host_number = OUTER;
}

void mr_hazard_hosts_pass(checker *c, vclock **clock) {
    const uint64_t *outer = c->hosts[OUTER];
    if (c->host == outer) return;
    for (uint32_t i = 0; i < c->slots; i++)
        if (c->host[i] > outer[i]) mr_hazard_clock_raise(c, clock, i, c->host[i]);
}
