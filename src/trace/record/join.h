/* Traces of ranks in several processes, as one trace: that of all ranks, as ranks of one process have it. */
#ifndef MR_TRACE_JOIN_H
#define MR_TRACE_JOIN_H

#include "base/buffer.h"
#include "trace/trace.h"

/* The trace as bytes that the same program can read in another process. `rank`: whose it is, from 0. */
mr_status mr_trace_to_bytes(const mr_trace *trace, uint32_t rank, mr_buffer *out);

/* The bytes of mr_trace_to_bytes, aligned as malloc does. NULL: that rank's are missing. */
typedef struct {
    const char *bytes;
    size_t size;
} mr_trace_bytes;

/* It has the calls of each rank's own host, with the times of its clock. The caller owns one reference. UNKNOWN: bytes
 * that are not a trace. */
mr_status mr_trace_join(const mr_trace_bytes *parts, size_t count, mr_trace **out_trace);

#endif
