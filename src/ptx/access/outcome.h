/* Things that the outcome of a launch can depend on besides the values that it reads (outcome.c): where memory lies,
 * and when its threads run. */
#ifndef MR_PTX_ACCESS_OUTCOME_H
#define MR_PTX_ACCESS_OUTCOME_H

#include "ptx/access/access.h"
#include "ptx/access/graph.h"

/* By piece: whether its number decides more than the accessed memory. It does if a value made from it is stored, is an
 * index, or is compared with anything but NULL and a place relative to the same pointer. Returns the same about the
 * address of a variable of the module. */
bool access_find_numbers(access_graph *graph, const access_origins *origins, bool *out);

access_order access_find_order(access_graph *graph, const access_origins *origins);

/* Does it have atomic operations on memory of the device that are atomic inside one block only? */
bool access_has_block_atomics(const access_graph *graph);

#endif
