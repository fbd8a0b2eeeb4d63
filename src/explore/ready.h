/* The operations of a set that can be carried out next, one after the other.
 *
 * An operation is ready as soon as all operations before it are taken. Until then it is kept with one of those, and is
 * looked at again when that one is taken. So the work grows with the number of operations, not with its square. */
#ifndef MR_EXPLORE_READY_H
#define MR_EXPLORE_READY_H

#include "explore/order.h"

#define READY_NONE UINT32_MAX

typedef struct {
    uint64_t *left, *ready; /* sets: not taken yet; of these, what can be taken */
    uint32_t *first,
        *next; /* by node: the first one that is kept with it; the next one of the same */
} ready_nodes;

mr_status ready_open(ready_nodes *r, const order *o);
void ready_close(ready_nodes *r); /* also of {0} */
/* The operations of this set that are not carried out. It has all that comes before them. */
void ready_begin(ready_nodes *r, const order *o, uint32_t set);
/* Takes the first one in this lane that is ready, else the first one of all, so that plans change streams
 * rarely. READY_NONE: none is left. */
uint32_t ready_take(ready_nodes *r, const order *o, uint32_t lane);

#endif
