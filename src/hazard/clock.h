/* Clocks: for each stream, the number of its last command that is known to be ordered before the present
 * point. */
#ifndef MR_HAZARD_CLOCK_H
#define MR_HAZARD_CLOCK_H

#include "hazard/hazard.h"

typedef struct mr_hazard checker;

typedef struct {
    uint32_t slot;
    uint64_t seq;
} mark;

/* An array over slots, shared by many clocks and never changed. Slots beyond `count` are 0. */
typedef struct {
    uint32_t refs, count;
    bool in_host; /* all hosts know all of it */
    uint64_t seq[];
} clock_base;

#ifndef CLOCK_DELTA
#define CLOCK_DELTA 12
#endif

/* A base and a few differences from it; shared by reference count and copied before it changes. NULL is
 * the clock that knows nothing. */
typedef struct {
    uint32_t refs, count;
    clock_base *base;
    mark delta[CLOCK_DELTA];
} vclock;

vclock *mr_hazard_clock_retain(vclock *clock); /* accepts NULL */
void mr_hazard_clock_release(checker *c, vclock *clock);
uint64_t mr_hazard_clock_get(const vclock *clock, uint32_t slot);
/* After these *clock is exclusively the caller's. */
void mr_hazard_clock_raise(checker *c, vclock **clock, uint32_t slot, uint64_t seq);
void mr_hazard_clock_merge(checker *c, vclock **into, vclock *from);
void mr_hazard_clock_to_host(checker *c, vclock *clock); /* the host learns all of it */

#endif
