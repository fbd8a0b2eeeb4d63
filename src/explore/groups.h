/* Groups of races whose orders are free of each other, and whose effects do not meet.
 *
 * The nodes are a program's, in the order of submission. An edge leads from a node to each one that the rules put
 * behind it. Two nodes that race have edges both ways. A cycle of chosen orders lies inside one strongly connected
 * component of that graph, since the components themselves have no cycle. So the orders of one component forbid no
 * orders of another one.
 *
 * A component with a race is a group. Its orders decide what its commands write, so these bytes are tainted with the
 * group. A command that reads tainted bytes taints what it writes. Where two taints meet, in a command or in bytes, the
 * groups become one. In the end each byte depends on the orders of one group at most.
 *
 * Easiest to break: a write never takes a taint away, because a command may write less than it says. */
#ifndef MR_EXPLORE_GROUPS_H
#define MR_EXPLORE_GROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "base/vec.h"

#define NO_GROUP UINT32_MAX

/* Rows of bits, by node; both have earlier nodes only. `before` is closed transitively. */
typedef struct {
    uint32_t count, words; /* nodes; 64-bit words of a row */
    const uint64_t *before, *races;
} race_graph;

/* Bytes of one memory that a command reads, or may write. Different memories share no byte. */
typedef struct {
    uint32_t memory;
    uint64_t first, end;
    bool reads, writes;
} group_touch;

typedef struct {
    uint64_t first, end;
    uint32_t group, next; /* next: of the same memory */
} group_taint;

typedef struct {
    uint32_t nodes, memories;
    uint32_t *of;     /* by node: its group, or NO_GROUP; after groups_number a number from 0 on */
    uint32_t *joined; /* by group: the one that it has become a part of */
    uint32_t *taints; /* by memory: the newest of its taints, whose groups are numbered, too */
    MR_VEC(group_taint) all;
} groups;

/* Nothing is tainted yet. Empty after a failure, which is OUT_OF_MEMORY. */
mr_status groups_open(groups *g, const race_graph *graph, uint32_t memories);
void groups_close(groups *g); /* also of {0} */
/* The next command in the order of submission: its nodes are [first, end), perhaps none. */
mr_status groups_pass(groups *g, uint32_t first, uint32_t end, const group_touch *touches,
                      size_t count);
/* The group that taints some of these bytes, the first one of them that is met; NO_GROUP: none. */
uint32_t groups_taint_of(const groups *g, const group_touch *touch);
/* No more commands. Numbers the groups in the order of their first nodes, and returns how many there are. */
uint32_t groups_number(groups *g);

#endif
