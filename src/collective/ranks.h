/* Ranks: several hosts in one process, each on a device of its own, as the processes of a distributed program are.
 *
 * A rank is a function that runs on a C stack of its own. It runs until it calls a collective whose peers have not
 * come, parks there, and goes on when the collective was submitted. So ranks meet at their collectives and nowhere
 * else, one rank runs at a time, and a program does the same each time. Each rank has its own copy of everything that a
 * host has: its clock, its current device and streams, its random numbers.
 *
 * All ranks use one machine: a failure of the device concerns every rank, and commands are numbered over all ranks. A
 * tensor belongs to the rank that made it; another rank that uses it gets an error (mr_tensor_usable).
 *
 * If no rank can continue, that is a deadlock: every parked rank gets the error. It names for each rank the line and
 * the ranks that it waits for. */
#ifndef MR_COLLECTIVE_RANKS_H
#define MR_COLLECTIVE_RANKS_H

#include "collective/comm.h"

typedef struct {
    uint32_t count;
    /* Runs the function of a rank, on a stack of its own. The error that it ended with, or NULL. */
    mr_status (*run)(void *context, uint32_t rank);
    /* Optional: called before `rank` goes on; MR_MEETING_MOST: all ranks have ended. */
    void (*enter)(void *context, uint32_t rank);
    bool each_turn; /* `enter` is also called when a rank could give way but goes on */
    void *context;
} mr_rank_functions;

typedef struct {
    uint32_t rank;
    bool is_deadlock; /* no rank could go on; `rank` is the lowest one that ended by an error */
} mr_ranks_failure;

/* Runs all ranks to their ends, rank k on device k. Returns the error of the rank that failed first, which *out_failure
 * names; by then the others have ended, too, with errors of their own. NOT_PERMITTED: a rank has called it. */
mr_status mr_ranks_run(mr_collectives *collectives, const mr_rank_functions *functions,
                       mr_ranks_failure *out_failure);

/* The rank that runs, from 0; MR_MEETING_MOST: none does. */
uint32_t mr_ranks_current(const mr_collectives *collectives);
/* The current stream of this rank's current device; the rank may be parked. Without ranks: that of the running host. */
const mr_stream *mr_ranks_stream(const mr_collectives *collectives, uint32_t rank);
uint32_t mr_ranks_count(const mr_collectives *collectives);
/* NULL, or the error that has separated the ranks: all later collectives fail with it. */
mr_status mr_ranks_separated(const mr_collectives *collectives);
/* The running rank's handle of the communicator of all ranks; borrowed. */
mr_comm *mr_ranks_world(const mr_collectives *collectives);

#endif
