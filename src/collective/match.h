/* The calls that belong together: match.c finds them, meet.c submits them. Private to these two. */
#ifndef MR_COLLECTIVE_MATCH_H
#define MR_COLLECTIVE_MATCH_H

#include "collective/calls.h"

#define NOBODY UINT32_MAX

/* The calls of one meeting, as indices into the list: by rank of the clique; NOBODY: none. A settlement has a list of
 * these. */
typedef struct {
    mr_clique *clique;
    bool exchange;
    uint32_t calls[MR_MEETING_MOST]; /* for an exchange: the first call of each connected rank */
    size_t first;                    /* the call that came first */
} round_of_calls;

typedef MR_VEC(round_of_calls) round_list;

typedef struct {
    mr_collectives *c;
    round_list rounds;
    uint32_t *peer; /* by call: for a send or recv, the matching call */
    uint64_t *late; /* by call: ranks that may still come, as bits */
} matching;

static inline pending_call *call_at(const matching *m, size_t i) {
    return &m->c->calls.items[i];
}

static inline bool is_message(const pending_call *call) {
    return call->ask.way && call->is_ready;
}

/* meet.c */
/* Makes the meeting of these calls, and submits this process's members of it. *out_submitted: they were, also where an
 * error is returned. */
mr_status mr_collective_meet(const matching *m, const round_of_calls *round, bool *out_submitted);
/* Sets the host whose clock runs for the next submissions (mr_hosts). */
void mr_collective_take_turn(mr_collectives *c, uint32_t host);

#endif
