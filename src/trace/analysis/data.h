/* The accesses of a trace's operations, and whether a changed order keeps the order that their data need. Private to
 * this folder.
 *
 * Two spans conflict if both access the same bytes and one of them writes. Views are compared by their extents, so two
 * interleaved ones count as a conflict, too: an order is kept that may not be needed, and never the reverse. Memory
 * that a kernel reaches through a pointer in its data is not known here. */
#ifndef MR_TRACE_DATA_H
#define MR_TRACE_DATA_H

#include "trace/edit.h"

/* Both access the memory, and one of them writes it. NULL: they do not conflict. The access is that of `first`. */
const mr_trace_access *mr_trace_conflict(const mr_trace *trace, uint32_t first, uint32_t second);

typedef enum {
    MR_TRACE_ORDER_KEPT,
    MR_TRACE_ORDER_BROKEN,
    MR_TRACE_ORDER_UNKNOWN, /* too much to look through */
} mr_trace_order_state;

/* Two spans in this order, which their data need. */
typedef struct {
    uint32_t first, second;
    const mr_trace_access *access; /* of the first; NULL: there is none */
} mr_trace_need;

/* Whether all pairs that conflict and are ordered in the trace are so after the edit. *out_need: one that is not, if
 * possible that of `early` and `late`. */
mr_status mr_trace_order_keeps(const mr_trace *trace, const mr_trace_order *whole,
                               const mr_trace_edit *edit, mr_trace_need asked,
                               mr_trace_order_state *out_state, mr_trace_need *out_need);

#endif
