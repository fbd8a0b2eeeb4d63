/* Recording: a tracer is an observer that keeps a span for each command, and makes traces of them. */
#ifndef MR_TRACE_RECORD_TRACER_H
#define MR_TRACE_RECORD_TRACER_H

#include "trace/trace.h"

typedef struct mr_tracer mr_tracer;

/* Begins to trace all requests to `machine`. `most_spans`: when there are more, the oldest are forgotten; 0: no bound.
 * Does not wait: earlier commands that are still pending appear with the time at which they run, and without a call.
 * The errors are OUT_OF_MEMORY and, on CUDA, those of the profiling library. */
mr_status mr_tracer_start(mr_machine *machine, size_t most_spans, mr_tracer **out_tracer);

/* A hazard that was reported meanwhile, by the numbers of its two commands (0: not known). */
typedef struct {
    uint64_t first, second;
    const char *kind, *message, *fix;
} mr_tracer_hazard;

/* Makes a trace of everything traced so far; the tracer goes on. From span `first` (mr_tracer_count then) on, with
 * times from its call. Work that is still pending is in it, without times. Waits for nothing; a simulated device is
 * brought to the host's present. */
mr_status mr_tracer_snapshot(mr_tracer *tracer, uint64_t first, const mr_tracer_hazard *hazards,
                             size_t hazard_count, mr_trace **out_trace);
/* How places are named in later snapshots: the context must outlive the tracer. */
typedef mr_site mr_tracer_shown(const void *context, mr_site where);
void mr_tracer_set_shown(mr_tracer *tracer, mr_tracer_shown *shown, const void *context);
uint64_t mr_tracer_count(const mr_tracer *tracer); /* spans so far, forgotten ones included */

void mr_tracer_stop(mr_tracer *tracer); /* and frees it; accepts NULL */

#endif
