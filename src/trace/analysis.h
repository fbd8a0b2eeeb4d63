/* The answers of a trace: overlap, idle time, the critical path, and why two operations did not run at once. */
#ifndef MR_TRACE_ANALYSIS_H
#define MR_TRACE_ANALYSIS_H

#include "base/vec.h"
#include "trace/trace.h"

/* Time during which both streams carried out work (kernels and copies), in nanoseconds. */
mr_status mr_trace_overlap(const mr_trace *trace, uint32_t stream, uint32_t other,
                           uint64_t *out_time);

/* A time in which a stream with work still to come carried nothing out. */
typedef struct {
    uint64_t begin, end;
    uint32_t next;  /* the span that ended it */
    mr_cause cause; /* the reason why that span waited */
    uint32_t holder;
} mr_trace_gap;
typedef MR_VEC(mr_trace_gap) mr_trace_gaps;
mr_status mr_trace_idle(const mr_trace *trace, uint32_t stream, mr_trace_gaps *out_gaps);

/* The chain of spans and calls of the host that decided the end of the trace, the first one first. None of them could
 * have been shorter without the whole being shorter. */
typedef struct {
    uint32_t span;
    bool is_host; /* the time that the host took for its call, not the device */
    uint64_t begin, end;
    mr_cause cause; /* why it began no sooner: what links it to the one before */
} mr_trace_link;
typedef MR_VEC(mr_trace_link) mr_trace_path;
mr_status mr_trace_critical_path(const mr_trace *trace, mr_trace_path *out_path);

/* Why `a` and `b` (spans that ran) did not overlap, or only a little, or that they did. */
typedef struct {
    bool overlapped;
    uint64_t overlap; /* for how long */
    /* the overlapping part of the shorter one, 0 to 1. The fields below are set if it is less than 0.9 */
    double share;
    mr_cause cause; /* the cause that would have to go first */
    /* the span of the cause: the wait, the synchronise, the work on the multiprocessors, the late call; or NONE */
    uint32_t holder;
    uint64_t saved; /* how much earlier the later one could have begun without it */
    bool exact;     /* a run without the cause shows just that; else it is a guess */
    /* Two spans whose data need the order: then the cause must stay, and nothing is saved. NONE: there are none. */
    uint32_t needed_first, needed_second;
    char text[2048]; /* a few sentences with names and lines */
} mr_trace_why;
mr_status mr_trace_explain(const mr_trace *trace, uint32_t a, uint32_t b, mr_trace_why *out_why);

/* The operations of one place of the script, in two traces: [0] before, [1] after. Where a place is in one trace only,
 * the first such place of the same name in the other one counts as the same, moved by an edit. Texts are those of a
 * trace. */
typedef struct {
    mr_site where[2]; /* equal, if it has not moved */
    const char *name;
    uint32_t count[2];
    uint64_t time[2];  /* of all of them */
    uint64_t begin[2]; /* of the first one */
} mr_trace_row;
typedef MR_VEC(mr_trace_row) mr_trace_rows;
mr_status mr_trace_compare(const mr_trace *before, const mr_trace *after, mr_trace_rows *out_rows);

#endif
