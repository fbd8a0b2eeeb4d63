/* Writing a trace: to a terminal, or to a file in one of several formats. A writer reads nothing but the trace (and,
 * for HTML, the scripts that its lines are in), so any program can be written at any time. */
#ifndef MR_TRACE_WRITERS_H
#define MR_TRACE_WRITERS_H

#include <stdio.h>

#include "trace/trace.h"

typedef struct {
    int width;     /* columns of the terminal, at least 40; 0: 100 */
    bool ascii;    /* no characters beyond ASCII */
    bool color;    /* escape sequences for colours */
    bool is_brief; /* no list of the bars that are too short for a name */
} mr_trace_terminal;

/* A lane for the host and for each stream with work, a bar for each operation, and below them the waits and their
 * reasons. */
mr_status mr_trace_print(const mr_trace *trace, const mr_trace_terminal *options, FILE *out);

/* Two traces one above the other on one axis, and the difference. */
mr_status mr_trace_print_both(const mr_trace *before, const mr_trace *after,
                              const mr_trace_terminal *options, FILE *out);

/* One of several outcomes of the same program, and its title: "outcome 2: 0.0". */
typedef struct {
    const mr_trace *trace;
    const char *label;
} mr_trace_outcome;

#define MR_MOST_OUTCOMES 8

/* The text of a script, for the page: NULL: not known. Owned by the callee, valid until the next call. */
typedef const char *(*mr_trace_source)(void *context, const char *file, size_t *out_size);

/* Whether a path has one of the endings of mr_trace_save: NULL, or its error. */
mr_status mr_trace_can_save(const char *path);
/* The length of a path without that ending. */
size_t mr_trace_stem(const char *path);

/* By the ending of `path`: .html .json (Chrome and Perfetto) .svg .dot .csv .spans.json. Other endings:
 * INVALID_ARGUMENT with the list. The file appears complete or not at all. `before` NULL, or a trace to compare with
 * (HTML, SVG). */
mr_status mr_trace_save(const mr_trace *trace, const mr_trace *before, const char *path,
                        mr_trace_source source, void *context);

/* A page that shows one of 1 to MR_MOST_OUTCOMES outcomes at a time; `path` ends with .html. */
mr_status mr_trace_save_outcomes(const mr_trace_outcome *outcomes, size_t count, const char *path,
                                 mr_trace_source source, void *context);

#endif
