/* Things that the outcome of a launch can depend on besides the values that it reads (outcome.c): where memory lies,
 * and when its threads run. */
#ifndef MR_PTX_ACCESS_OUTCOME_H
#define MR_PTX_ACCESS_OUTCOME_H

#include "ptx/access/graph.h"

/* By piece: does the number that it holds decide more than which memory is accessed? So it is where a value made from
 * it is stored, is an index, or is compared with anything but NULL and a place behind the same pointer. Returns whether
 * that is so of the address of a variable of the module. */
bool access_find_numbers(access_graph *graph, const access_origins *origins, bool *out);

typedef struct {
    /* The order in which its threads run, or the time, decides values. Atomic operations do that but for those of one
     * kind on integers whose results nobody uses; clocks, numbers of multiprocessors and activemask do. The barrier of
     * the grid does not. */
    bool matters;
    /* Or it may do so where threads meet in volatile accesses, or in others that are not atomic operations and do not
     * race. Whether they meet, only the watch of a launch knows (watch/watch.h). */
    bool may_matter;
    /* The kind of all its atomic operations: two of a kind may change places. 0: it has none, or `matters`. */
    uint8_t updates;
} access_order;
access_order access_find_order(access_graph *graph, const access_origins *origins);

/* Does it have atomic operations on memory of the device that are atomic inside one block only? */
bool access_has_block_atomics(const access_graph *graph);

#endif
