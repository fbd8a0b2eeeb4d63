/* The commands of a trace, changed as a person would change the program to be rid of what held an operation up. Private
 * to this folder. The order of the changed program is made from them like that of the trace (order.h). */
#ifndef MR_TRACE_EDIT_H
#define MR_TRACE_EDIT_H

#include "trace/order.h"

/* The thing removed: the part of `span` that made it wait by that rule.
 *   STREAM          `span` gets a stream of its own
 *   EVENT           the wait `span` is gone; where one call made the record, too (wait_stream), the whole call
 *   DEFAULT_STREAM  the stream that is not the default stream, of `span` or of `holder`, becomes non-blocking
 *   PEER_COPY       the copy `holder` is no longer synchronous
 *   MEMORY          the memory of `span` is not that of a tensor that is freed
 *   MULTIPROCESSORS, COPY_ENGINE   `holder` does not have the engine
 *   SYNCHRONIZE     the host does not wait in the call `span`; what the call submitted (item() copies) stays
 *   PAGEABLE        the memory of the copy `span` is pinned, so the host neither copies it nor waits
 *   HOST            the call `span` comes right after the call `holder` and those that it depends on
 *   others          nothing changes */
typedef struct {
    uint32_t span;
    mr_cause rule;
    uint32_t holder; /* or MR_TRACE_NONE */
} mr_trace_removal;

typedef struct {
    mr_span *spans; /* owned; those that are gone have no stream and no device */
    size_t count;
    mr_trace_stream *streams; /* owned */
    size_t stream_count;
    uint32_t gone_first, gone_end;                /* calls that take no time any more */
    uint32_t free_first, free_end;                /* calls in which the host does not stand */
    uint32_t unstaged;                            /* a copy whose source is pinned now; or NONE */
    uint32_t early_first, early_end, early_after; /* calls that come right after early_after */
} mr_trace_edit;

mr_status mr_trace_edit_make(const mr_trace *trace, mr_trace_removal removal,
                             mr_trace_edit *out_edit);
void mr_trace_edit_free(mr_trace_edit *edit);

/* The rule by which the host stood in call i, which has waited. The copy in a call like item(), which ends with a wait
 * of the host, is part of that wait. */
mr_cause mr_trace_cause_of_wait(const mr_span *spans, size_t count, uint32_t i);

static inline bool mr_trace_edit_is_gone(const mr_trace_edit *edit, uint32_t span) {
    return span >= edit->gone_first && span < edit->gone_end;
}

static inline bool mr_trace_edit_is_free(const mr_trace_edit *edit, uint32_t span) {
    return span >= edit->free_first && span < edit->free_end;
}

#endif
