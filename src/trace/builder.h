/* Makes a trace, part by part: for the tracer, and for tests that need a certain trace.
 *
 * Texts are copied once each by mr_trace_builder_text, and live as long as the trace. */
#ifndef MR_TRACE_BUILDER_H
#define MR_TRACE_BUILDER_H

#include "trace/trace.h"

typedef struct mr_trace_builder mr_trace_builder;

mr_status mr_trace_builder_create(mr_trace_builder **out_builder);
void mr_trace_builder_destroy(mr_trace_builder *builder); /* accepts NULL */

/* A copy that belongs to the trace, one for all equal texts; NULL stays NULL. When memory is out, a text that says
 * so. */
const char *mr_trace_builder_text(mr_trace_builder *builder, const char *text);

/* All of these copy the struct. Its texts must be static, or come from mr_trace_builder_text. */
mr_status mr_trace_builder_stream(mr_trace_builder *builder, const mr_trace_stream *stream,
                                  uint32_t *out_index);
mr_status mr_trace_builder_span(mr_trace_builder *builder, const mr_span *span);
/* They belong to the span that was added last. */
mr_status mr_trace_builder_access(mr_trace_builder *builder, const mr_trace_access *access);
mr_status mr_trace_builder_hazard(mr_trace_builder *builder, const mr_trace_hazard *hazard);

/* The trace; the caller owns one reference. facts->duration is worked out here. Destroys the builder, also on
 * failure. */
mr_status mr_trace_builder_finish(mr_trace_builder *builder, const mr_trace_facts *facts,
                                  mr_trace **out_trace);

#endif
