/* The knowledge of each host: the one that runs the script, and the ranks. */
#ifndef MR_HAZARD_HOSTS_H
#define MR_HAZARD_HOSTS_H

#include "hazard/clock.h"
#include "model/meeting.h"

typedef struct {
    uint64_t *now;                     /* by slot: what the running host knows; one of `of` */
    uint64_t *of[1 + MR_MEETING_MOST]; /* the outer host's, and by rank from 1 */
    uint16_t number;                   /* of the host that runs */
    /* how often the outer host continued after its ranks had ended */
    uint32_t worlds;
} hosts_part;

/* The host that runs: 0, or a rank from 1. The knowledge of ranks goes to the outer host when that goes on. */
void mr_hazard_host_is(checker *c, uint16_t host);
void mr_hazard_hosts_pass(checker *c, vclock **clock); /* adds what the host knows more than all */
bool mr_hazard_hosts_grow(checker *c, uint32_t capacity);
void mr_hazard_hosts_close(checker *c);

#endif
