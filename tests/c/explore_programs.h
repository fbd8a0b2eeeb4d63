/* Small random stream programs for the exploration: run by the model's functions, and judged by going through every
 * interleaving of their steps. The judge knows neither the search nor its order: who comes before whom is what the
 * simple checker of naive_hazard.c says. */
#ifndef EXPLORE_PROGRAMS_H
#define EXPLORE_PROGRAMS_H

#include "explore/explore.h"
#include "naive_hazard.h"

/* What every interleaving gives. */
typedef struct {
    uint64_t interleavings; /* UINT64_MAX: too many, and nothing else is known */
    uint64_t classes;       /* different orders of the pairs that conflict */
    uint64_t outcomes;      /* different final values */
    uint64_t most_common;   /* classes of the outcome that has most */
    /* classes in which at most BOUND pairs run against the order of submission */
    uint64_t within_bound;
    bool has_race, has_query;
    bool has_pair; /* a race, or two host functions that nothing orders */
} judgement;

void explore_random_program(uint64_t seed, sample_program *out);
void explore_judge(const sample_program *p, judgement *out);
/* NULL: the exploration says the same; else what differs, valid until the next call. */
const char *explore_differs(const sample_program *p);
void explore_print(const sample_program *p);

#endif
