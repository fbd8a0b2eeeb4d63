/* Functions that become graphs by themselves (mr.graph.auto). The function runs at each call, since only a run shows
 * its submissions. These are compared with the submissions of its last call.
 *
 *   recorded  The call is carried out as always, and an observer notes its submissions. The first call is recorded.
 *   held      What the call submits is held back and compared, one submission after the other. If all of it is the
 *             same, the end of the call launches a graph of it: of the first such call, instantiated once.
 *             At the first difference, or where the host needs the device, everything held so far is submitted, and the
 *             rest of the call is recorded. So values never depend on whether a call was held or recorded.
 *
 * Compared are kinds, streams, operands (storage, view, access), numbers, and waits.
 * Memory that the call allocates counts as the same if it is the same allocation in the same
 * order.
 *
 * A launch comes after the earlier work of each stream that the function uses and before its later work, and events
 * that it records can be waited for afterwards.
 *
 * Memory: allocations of a held call get the memory that the same allocations of the graph have. So the results of a
 * call are valid until the next call. Later uses of the older tensors are errors (mr_storage.generation), never wrong
 * values.
 *
 * Only the outermost function becomes a graph: calls inside others, and inside captures, run normally. */
#ifndef MR_GRAPH_AUTO_H
#define MR_GRAPH_AUTO_H

#include "graph/graph.h"

typedef struct mr_auto mr_auto;

mr_status mr_auto_new(const mr_caller *caller, mr_auto **out_auto);
/* Accepts NULL. Drops the held commands of a running call, without a wait. */
void mr_auto_free(mr_auto *a);

mr_machine *mr_auto_machine(const mr_auto *a);

/* Around a call of the function, `stream` being the current one. After a begin that fails there is no end. `failed`:
 * the function raised an error. The end submits the held commands in that case, too. */
mr_status mr_auto_begin(const mr_caller *caller, mr_auto *a, mr_stream *stream);
mr_status mr_auto_end(const mr_caller *caller, mr_auto *a, bool failed);

typedef struct {
    uint64_t calls;
    uint64_t launches; /* of them were launches of a graph */
    uint64_t captures; /* graphs that were made */
    uint32_t nodes;    /* of the present graph; 0: there is none */
    /* why the last call was not a launch; "": it was one. Valid until the next call */
    const char *why;
} mr_auto_facts;
mr_auto_facts mr_auto_facts_of(const mr_auto *a);

#endif
