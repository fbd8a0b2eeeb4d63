/* What the files of this folder share: a job, which a compiler carries out, and what it made. */
#ifndef MR_COMPILE_INTERNAL_H
#define MR_COMPILE_INTERNAL_H

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "compile/compile.h"

#define MR_LIMIT_DEFAULT_MS   60000
#define MR_LONGEST_SOURCE     ((size_t)16 << 20)
#define MR_FIRST_ARCHITECTURE 75

/* Our headers among the embedded files: those for clang, and those for both compilers. */
#define MR_COMPILE_HEADERS       "device/"
#define MR_COMPILE_HEADERS_CLANG MR_COMPILE_HEADERS "clang/"
#define MR_COMPILE_HEADERS_STD   MR_COMPILE_HEADERS "std/"

/* The folder in which clang finds our headers. It exists only for clang, so it must not be the name of a real one. */
#define MR_COMPILE_ROOT "/millrace-device"
/* The name of the "file" that has a line for each of the names. */
#define MR_COMPILE_NAMES "millrace-names"

typedef struct {
    const mr_compile_source *source;
    const char *file;   /* of the source, or a name for one that has none */
    const char *beside; /* the source's, or `file` */
    int line;           /* at least 1 */
    int architecture;   /* of the device: 90 */
} mr_compile_job;

/* Zeroed at first, except `entries`, which has room for the source's names. */
typedef struct {
    bool is_rejected;   /* by the compiler; `log` says why, and there is no PTX */
    mr_buffer ptx, log; /* as the compiler wrote them */
    char **entries;     /* the symbol of each name; NULL: not found */
    char compiler[48];
} mr_compile_result;

static inline void mr_compile_set_name(char *out, size_t size, const char *name) {
    snprintf(out, size, "%s", name);
}

static inline int mr_compile_limit(const mr_compile_source *source) {
    return source->time_limit_ms > 0 ? source->time_limit_ms : MR_LIMIT_DEFAULT_MS;
}

/* The option for the folder of the user's file, where the text may include files. False: the text may include none, or
 * there is no room. */
static inline bool mr_compile_put_folder(const mr_compile_job *job, char *out, size_t size) {
    const char *slash = strrchr(job->beside, '/');
    int length = slash ? (int)(slash - job->beside) + (slash == job->beside) : 1;
    return !job->source->is_confined &&
           snprintf(out, size, "-I%.*s", length, slash ? job->beside : ".") < (int)size;
}

/* Appends a #line directive: the next line is line `line` of `file`. */
static inline void mr_compile_put_line(mr_buffer *out, int line, const char *file) {
    mr_buffer_printf(out, "#line %d \"", line);
    for (const char *c = file; *c; c++)
        mr_buffer_printf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c == '\n' ? ' ' : *c);
    mr_buffer_puts(out, "\"\n");
}

#endif
