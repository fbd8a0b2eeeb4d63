/* Saving a trace to a file: which format. */
#include "trace/writers.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/replace.h"
#include "base/text.h"
#include "trace/draw/formats.h"

static const struct {
    const char *ending;
    mr_format_write write;
    bool compares; /* it can show two traces */
} formats[] = {
    {".html", mr_write_html, true},
    {".spans.json", mr_write_spans, false}, /* before .json, with which it ends too */
    {".json", mr_write_chrome, false},      /* for Chrome and Perfetto */
    {".svg", mr_write_svg, true},
    {".dot", mr_write_dot, false},
    {".csv", mr_write_csv, false},
};
#define FORMAT_COUNT (int)(sizeof formats / sizeof *formats)

static int find_format(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < FORMAT_COUNT; i++) {
        size_t part = strlen(formats[i].ending);
        if (length > part && strcasecmp(path + length - part, formats[i].ending) == 0) return i;
    }
    return -1;
}

typedef struct {
    mr_writing writing;
    int format;
} job;

static mr_status write_format(void *context, FILE *file) {
    const job *j = context;
    mr_sink *sink = malloc(sizeof *sink);
    if (!sink) return mr_no_memory("to write a trace");
    sink->file = file;
    sink->used = 0;
    sink->failed = false;
    mr_status status = formats[j->format].write(&j->writing, sink);
    mr_sink_flush(sink); /* a failure stays with the file */
    free(sink);
    return status;
}

/* `problem`, and the endings that would do. */
static mr_status wrong_ending(const char *path, const char *problem, bool must_compare) {
    char list[96] = "";
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].compares || !must_compare)
            mr_text_format(list + strlen(list), sizeof list - strlen(list), "%s%s",
                           *list ? ", " : "", formats[i].ending);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s cannot be saved as `%.300s`: expected a name that ends with one of %s, .png",
                   problem, path, list);
}

size_t mr_trace_stem(const char *path) {
    int format = find_format(path);
    return strlen(path) - (format < 0 ? 0 : strlen(formats[format].ending));
}

mr_status mr_trace_can_save(const char *path) {
    return find_format(path) < 0 ? wrong_ending(path, "a trace", false) : MR_OK;
}

mr_status mr_trace_save(const mr_trace *trace, const mr_trace *before, const char *path,
                        mr_trace_source source, void *context) {
    job j = {{.trace = trace, .before = before, .source = source, .context = context},
             find_format(path)};
    if (j.format < 0) return wrong_ending(path, "a trace", false);
    if (before && !formats[j.format].compares) return wrong_ending(path, "two traces", true);
    return mr_replace_file(path, write_format, &j);
}

mr_status mr_trace_save_outcomes(const mr_trace_outcome *outcomes, size_t count, const char *path,
                                 mr_trace_source source, void *context) {
    job j = {{.trace = outcomes[0].trace,
              .source = source,
              .context = context,
              .outcomes = outcomes,
              .outcome_count = count},
             find_format(path)};
    if (j.format < 0 || formats[j.format].write != mr_write_html)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "outcomes cannot be saved as `%.300s`: expected a name that ends with .html",
                       path);
    return mr_replace_file(path, write_format, &j);
}
