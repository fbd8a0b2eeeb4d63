/* The writers of files, one for each format; write/write.c chooses among them by the ending of the path. */
#ifndef MR_TRACE_FORMATS_H
#define MR_TRACE_FORMATS_H

#include "trace/draw/sink.h"
#include "trace/writers.h"

/* The input of a writer. `before` is NULL unless the format can compare. */
typedef struct {
    const mr_trace *trace, *before;
    mr_trace_source source; /* NULL: no text of any script is known */
    void *context;
    /* NULL, or the outcomes that a page shows instead of `before` and `trace`. */
    const mr_trace_outcome *outcomes;
    size_t outcome_count;
} mr_writing;

/* Errors are only those of memory: whether all of it could be written is the sink's to know. */
typedef mr_status (*mr_format_write)(const mr_writing *writing, mr_sink *sink);

mr_status mr_write_html(const mr_writing *writing, mr_sink *sink);
mr_status mr_write_chrome(const mr_writing *writing, mr_sink *sink);
mr_status mr_write_svg(const mr_writing *writing, mr_sink *sink);
mr_status mr_write_dot(const mr_writing *writing, mr_sink *sink);
mr_status mr_write_csv(const mr_writing *writing, mr_sink *sink);
mr_status mr_write_spans(const mr_writing *writing, mr_sink *sink);

#endif
