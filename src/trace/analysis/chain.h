/* The chain of holders, private to this folder: steps along mr_span.holder. */
#ifndef MR_TRACE_CHAIN_H
#define MR_TRACE_CHAIN_H

#include "trace/order.h"

/* The work whose end let span `i` begin: after records and waits, which only hand on. NONE: the host was late, with
 * the call of *out_marker: `i` itself, or a record or wait that it depends on. */
uint32_t mr_trace_work_behind(const mr_span *spans, uint32_t i, uint32_t *out_marker);

/* The last work to end among that for which the host waited in call `i`; NONE: none in the trace. */
uint32_t mr_trace_waited_for(const mr_span *spans, const mr_trace_order *order, uint32_t i);

static inline bool mr_cause_is_host(mr_cause cause) {
    return cause == MR_CAUSE_HOST || cause == MR_CAUSE_SYNCHRONIZE || cause == MR_CAUSE_PAGEABLE;
}
static inline bool mr_cause_is_engine(mr_cause cause) {
    return cause == MR_CAUSE_MULTIPROCESSORS || cause == MR_CAUSE_COPY_ENGINE;
}

#endif
