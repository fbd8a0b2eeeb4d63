/* The times of a trace without one of its causes of delay. Private to this folder.
 *
 * Lengths are those of the trace: of each span on the device, of each call of the host without its waits. Times that
 * follow from the order are computed anew. A span begins when all its predecessors are done, and not before its call. A
 * call that waits returns when the work that it waits for is done. So after the removal of one wait, another one may
 * decide. Two things do not change: the order of spans on an engine, and unexplained delays.
 *
 * With nothing removed the times are exactly those of the trace.
 *
 * Order. `order.c` works out by the rules alone what each span comes after. `replan.c` computes a trace without one
 * of its waits. `edit.c` changes the commands as a user would change the program, and `order.c` makes the order of the
 * rest. Lengths stay, and all begins, ends and returns are worked out anew in the order in which they happened. The
 * time between an end and the begin that waited for it comes from the device model (`mr_lags`), on hardware from the
 * trace. `room.c` says whether the engines had room for what moved; if not, the answer is a guess and is told as one.
 * `data.c` compares both orders: a pair of operations that access the same bytes must not lose its order. With nothing
 * removed, exactly the times of the trace come out. `why.c` and `critical.c` use both. The tests compare with a naive
 * simulation, and with runs of the changed programs. */
#ifndef MR_TRACE_REPLAN_H
#define MR_TRACE_REPLAN_H

#include "trace/edit.h"

typedef struct mr_trace_replan mr_trace_replan;

mr_status mr_trace_replan_open(const mr_trace *trace, mr_trace_replan **out_replan);
void mr_trace_replan_close(mr_trace_replan *replan); /* accepts NULL */
const mr_trace *mr_trace_replan_trace(const mr_trace_replan *replan);
const mr_trace_order *mr_trace_replan_order(const mr_trace_replan *replan); /* of the trace */

/* Computes the times of all spans without that cause; NONE: of the unchanged trace. */
mr_status mr_trace_replan_without(mr_trace_replan *replan, mr_trace_removal removal);

/* As of the last call of replan_without. */
const mr_trace_edit *mr_trace_replan_edit(const mr_trace_replan *replan);
int64_t mr_trace_replan_begin(const mr_trace_replan *replan, uint32_t span);
int64_t mr_trace_replan_ready(const mr_trace_replan *replan, uint32_t span);
bool mr_trace_replan_is_gone(const mr_trace_replan *replan, uint32_t span);
/* room.c: whether the engines had room for the moved work, up to the begin of `span`; where they had no room, a begin
 * is a guess. */
mr_status mr_trace_replan_fits(const mr_trace_replan *replan, uint32_t span, bool *out_fits);

#endif
