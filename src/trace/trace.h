/* Traces: the host's requests, and the times at which the devices carried them out.
 *
 * A tracer (record/tracer.h) keeps one span for each command: the calling line, the time of the host's call, and the
 * time and engine of its run on the device. A trace is a complete copy of these spans, without a pointer to the
 * machine: it can be read, compared and written to a file after everything else is gone. It does not change after it
 * was made.
 *
 * Times are nanoseconds since the trace began, on one axis for the host and all devices. On the virtual GPU they are
 * exact and the same in every run. On CUDA they are what the driver measured (mr_trace_facts.how says by which means).
 *
 * Reading a trace (order, overlap, causes) is in analysis.h; writing it to a file or a terminal in writers.h. */
#ifndef MR_TRACE_TRACE_H
#define MR_TRACE_TRACE_H

#include "model/observer.h"
#include "model/simulator.h"

typedef struct mr_trace mr_trace;

void mr_trace_release(const mr_trace *trace); /* accepts NULL */

#define MR_TRACE_NONE UINT32_MAX /* no span, no stream */

/* One command. Interned texts live as long as the trace. */
typedef struct {
    mr_command_id kind;
    mr_engine engine; /* NONE: nothing of the device; a kernel or copy otherwise */
    const char *name; /* "add_" */
    /* for records, waits and host calls about an event: the event's name; or NULL */
    const char *object;
    mr_site where;   /* the script's line; where.file NULL: none */
    uint64_t seq;    /* the command's number, as in hazard reports */
    uint32_t stream; /* index, see mr_trace_stream_at; MR_TRACE_NONE: the host itself */
    int device;      /* the device of its stream, or the one that the host waited for; -1: none */
    bool called;     /* `call` and `returned` are known */
    /* `ready`, `begin` and `end` are known. The device had carried it out when the trace was
     * made */
    bool ran;
    bool host_waited; /* the host stood in the call until a device had done something */
    bool synchronous; /* a copy that the script asked to wait for (R20) */
    uint64_t walls;   /* with it, between devices: mr_order_walls; else 0 */
    /* the seq of the first member of the collective that it is part of; 0: none */
    uint64_t meeting;
    uint16_t host;           /* whose call it is: a rank from 1 (collective/ranks.h), or 0 */
    uint64_t call, returned; /* that host's clock around the call */
    uint64_t waited;         /* how much of it the host stood waiting for a device */
    /* how much of it the host copied, filled or pinned memory, where that is known */
    uint64_t worked;
    uint64_t ready, begin, end; /* the device's; equal for records and waits */
    uint64_t bytes;             /* of a copy; for an operation: the range of its operands */
    uint32_t blocks;            /* thread blocks, or 0: not known */
    uint32_t record;  /* WAIT, EVENT_SYNC: the span of the record that it waits for, or NONE */
    mr_cause held_by; /* the last thing that it waited for before `begin`; NONE: unknown */
    uint32_t holder;  /* the span that it was, or NONE */
    uint32_t access_count;
    size_t first_access; /* see mr_trace_accesses */
} mr_span;

/* Bytes that a command reads or writes: the extent of a view. Allocations and frees have none. */
typedef struct {
    uint64_t memory; /* the storage's number */
    uint64_t first, end;
    const char *name; /* of the tensor, or NULL */
    mr_site made;     /* the line that allocated it; where.file NULL: none */
    bool writes;
    bool is_dense; /* all bytes of the extent */
    bool by_host;  /* during the call: the source of a copy in pageable memory */
} mr_trace_access;

size_t mr_trace_count(const mr_trace *trace);
const mr_span *mr_trace_spans(const mr_trace *trace); /* in the order of submission */
/* span->access_count of them. */
const mr_trace_access *mr_trace_accesses(const mr_trace *trace, const mr_span *span);

typedef struct {
    const char *name; /* as a person knows it: "producer", "default stream" */
    uint32_t id;      /* s.id */
    int device;
    int priority;
    bool is_legacy_default, is_blocking;
} mr_trace_stream;

size_t mr_trace_stream_count(const mr_trace *trace);
const mr_trace_stream *mr_trace_stream_at(const mr_trace *trace, uint32_t i);

/* A hazard that was reported while the trace was made: two spans, or MR_TRACE_NONE where one is not in it. */
typedef struct {
    uint32_t first, second;
    const char *kind, *message, *fix;
} mr_trace_hazard;

size_t mr_trace_hazard_count(const mr_trace *trace);
const mr_trace_hazard *mr_trace_hazard_at(const mr_trace *trace, size_t i);
/* Keeps this hazard instead of all reported ones; its texts are copied. For the maker of the trace, before it is
 * used. */
mr_status mr_trace_keep_hazard(mr_trace *trace, const mr_trace_hazard *hazard);

typedef struct {
    const char *backend, *device, *model,
        *chooser;       /* "virtual", "NVIDIA H200", ...; NULL: has none */
    const char *how;    /* a sentence: how times were found, for the reader of a timeline */
    const char *script; /* the file that most spans come from, or NULL */
    uint64_t began;     /* the host's clock at 0 */
    uint64_t duration;  /* the latest time of any span */
    uint64_t forgotten; /* spans that are no longer there */
    int ranks;          /* how many ranks made calls in it; 0: all calls are one host's */
    int device_count;
    int sm_count, copy_engines; /* of each device; 0: not known */
    bool exact;                 /* times follow from the program alone, by these: */
    mr_lags lags;
} mr_trace_facts;
const mr_trace_facts *mr_trace_facts_of(const mr_trace *trace);

/* The rank whose call a span is, from 0. -1: no rank's, or the trace has calls of fewer than two ranks, whose host is
 * simply the host. */
int mr_trace_rank_of(const mr_trace *trace, const mr_span *span);

#endif
