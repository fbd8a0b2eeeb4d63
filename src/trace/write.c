/* Saving a trace to a file: which format, and that the file appears complete or not at all.
 *
 * Easiest to break: the file is written under another name in the same folder, and renamed when every byte of it is on its
 * way to the disk. What fails before that leaves the old file as it was, and no temporary one. */
#include "trace/writers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "trace/formats.h"

#define ATTEMPTS 100 /* names to try for the temporary file */

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

static mr_status cannot(const char *what, const char *path) {
    int error = errno;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot %s `%.300s`: %s", what, path, strerror(error));
}

static mr_status write_into(const mr_writing *writing, int format, int fd, const char *path) {
    FILE *file = fdopen(fd, "wb");
    mr_sink *sink = malloc(sizeof *sink);
    if (!file || !sink) {
        if (file) fclose(file);
        else close(fd);
        free(sink);
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to write `%.300s`", path);
    }
    sink->file = file;
    sink->used = 0;
    sink->failed = false;
    errno = 0;
    mr_status status = formats[format].write(writing, sink);
    bool is_whole = mr_sink_flush(sink);
    if (!status && !is_whole) status = cannot("write", path);
    if (fclose(file) != 0 && !status) status = cannot("write", path);
    free(sink);
    return status;
}

/* A new file beside `path`, with the permissions that any new file would have. */
static int create_beside(const char *path, char *out_name, size_t size) {
    int fd = -1;
    errno = EEXIST;
    for (int i = 0; fd < 0 && errno == EEXIST && i < ATTEMPTS; i++) {
        snprintf(out_name, size, "%s.%d.%d~", path, (int)getpid(), i);
        fd = open(out_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    return fd;
}

static mr_status replace(const mr_writing *writing, int format, const char *path,
                         const struct stat *old) {
    size_t size = strlen(path) + 40;
    char *temporary = malloc(size);
    if (!temporary) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to write `%.300s`", path);
    int fd = create_beside(path, temporary, size);
    if (fd < 0) {
        free(temporary);
        return cannot("create", path);
    }
    mr_status status = MR_OK;
    if (old && fchmod(fd, old->st_mode & 07777) != 0)
        status = cannot("set the permissions of", path);
    if (status) close(fd);
    else status = write_into(writing, format, fd, path);
    if (!status && rename(temporary, path) != 0) status = cannot("write", path);
    if (status) unlink(temporary);
    free(temporary);
    return status;
}

/* A device, a pipe: nothing can be renamed over it. */
static mr_status write_through(const mr_writing *writing, int format, const char *path) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot("open", path);
    return write_into(writing, format, fd, path);
}

/* `problem`, and the endings that would do. */
static mr_status wrong_ending(const char *path, const char *problem, bool must_compare) {
    char list[80] = "";
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].compares || !must_compare)
            mr_text_format(list + strlen(list), sizeof list - strlen(list), "%s%s",
                           *list ? ", " : "", formats[i].ending);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s cannot be saved as `%.300s`: expected a name that ends with one of %s",
                   problem, path, list);
}

mr_status mr_trace_can_save(const char *path) {
    return find_format(path) < 0 ? wrong_ending(path, "a trace", false) : MR_OK;
}

mr_status mr_trace_save(const mr_trace *trace, const mr_trace *before, const char *path,
                        mr_trace_source source, void *context) {
    mr_writing writing = {trace, before, source, context};
    struct stat facts;
    int format = find_format(path);
    if (format < 0) return wrong_ending(path, "a trace", false);
    if (before && !formats[format].compares) return wrong_ending(path, "two traces", true);
    if (stat(path, &facts) != 0) return replace(&writing, format, path, NULL);
    if (S_ISDIR(facts.st_mode))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot write `%.300s`: it is a folder", path);
    if (!S_ISREG(facts.st_mode)) return write_through(&writing, format, path);

    char *target = realpath(path, NULL); /* a link stays one */
    if (!target) return cannot("write", path);
    mr_status status = replace(&writing, format, target, &facts);
    free(target);
    return status;
}
