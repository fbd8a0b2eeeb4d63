/* Traces of ranks in several processes, as one trace: that of all ranks, as ranks of one process have it. */
#ifndef MR_TRACE_JOIN_H
#define MR_TRACE_JOIN_H

#include "base/buffer.h"
#include "trace/trace.h"

/* The trace as bytes that the same program can read in another process. `rank`: whose it is, from 0. */
mr_status mr_trace_to_bytes(const mr_trace *trace, uint32_t rank, mr_buffer *out);

typedef struct {
    const char
        *bytes; /* of mr_trace_to_bytes; aligned as malloc does. NULL: that rank's are missing */
    size_t size;
} mr_trace_bytes;

/* Of each rank the calls of its own host, with the times that its clock has given them. The caller owns one reference.
 * UNKNOWN: bytes that are no trace. */
mr_status mr_trace_join(const mr_trace_bytes *parts, size_t count, mr_trace **out_trace);

#endif
