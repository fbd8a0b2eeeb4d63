/* The call that a graph's node stores: captured.c stores it, launch.c makes it again. Private to these two. */
#ifndef MR_COLLECTIVE_CAPTURED_H
#define MR_COLLECTIVE_CAPTURED_H

#include "collective/calls.h"

typedef struct {
    mr_captured_call base; /* first */
    mr_comm *comm;         /* one reference */
    mr_peer_way way;
} captured_call;

static inline const captured_call *captured_of(const mr_command *node) {
    return (const captured_call *)node->meeting->captured;
}

#endif
