/* The same trace without one of the things that held it up: when would its spans have begun? Private to this folder.
 *
 * Lengths are those of the trace: of each span on the device, of each call of the host without its waits. What follows
 * from the order is worked out anew: a span begins when all that it comes after is done, and not before its call; a call
 * that waits returns when what it waits for is done. So removing one wait may show the next one. Two things are taken over as
 * they were: which span had an engine before which, and delays that nothing explains.
 *
 * With nothing removed the times are exactly those of the trace. */
#ifndef MR_TRACE_REPLAN_H
#define MR_TRACE_REPLAN_H

#include "trace/order.h"

typedef struct mr_trace_replan mr_trace_replan;

mr_status mr_trace_replan_open(const mr_trace *trace, mr_trace_replan **out_replan);
void mr_trace_replan_close(mr_trace_replan *replan); /* accepts NULL */
const mr_trace_order *mr_trace_replan_order(const mr_trace_replan *replan);

/* What is removed: of `span`, what made it wait by that rule. STREAM: `span` itself, from its stream, whose later
 * operations then come after what is before `span`. EVENT, DEFAULT_STREAM, PEER_COPY, MEMORY: all edges
 * of the rule that lead to it; MULTIPROCESSORS, COPY_ENGINE: whoever had the engine; HOST: that it was submitted so
 * late; SYNCHRONIZE, PAGEABLE: that the host waits in its call; NONE: nothing. */
typedef struct {
    uint32_t span;
    mr_cause rule;
} mr_trace_removal;

/* When things happen then. Both may be earlier than the trace's begin. */
int64_t mr_trace_replan_begin(mr_trace_replan *replan, mr_trace_removal removal, uint32_t span);
int64_t
mr_trace_replan_end(mr_trace_replan *replan); /* of all, as the last call of replan_begin had it */

#endif
