/* Collectives (model/meeting.h) as an operation: the row of all their commands. It is in no table, as no function of
 * tensors comes from it.
 *
 * The bytes of all members move when the command of the member that was submitted last runs; the others do nothing.
 * Tensors are contiguous. A reduction adds the members' elements in the order of the members, and rounds each partial
 * result to the dtype, as a ring of GPUs does that passes them on. For bools, sum and max are `or`, prod and min `and`.
 *
 * Sizes, in elements: all_reduce, broadcast, reduce: in = out = n. all_gather: out = members * in. reduce_scatter:
 * in = members * out. all_to_all: in = out = members * n. */
#ifndef MR_OPS_COLLECTIVE_H
#define MR_OPS_COLLECTIVE_H

#include "ops/op.h"

extern const mr_op mr_collective_op;

/* The bytes that the slowest member sends or receives through its link, and the number of steps, one after the
 * other. */
typedef struct {
    double bytes;
    uint32_t steps;
} mr_collective_traffic;
mr_collective_traffic mr_collective_traffic_of(const mr_meeting *meeting); /* in a ring */
/* The same in a tree, in which an all_reduce goes up and down. False: the others have none, as in NCCL. */
bool mr_collective_tree_of(const mr_meeting *meeting, mr_collective_traffic *out_traffic);

#endif
