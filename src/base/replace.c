/* See replace.h. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ATTEMPTS = 100 }; /* names to try for the temporary file */

typedef struct {
    const char *path;
    mr_file_writer write;
    void *context;
} job;

static mr_status cannot(const char *what, const char *path) {
    int error = errno;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot %s `%.300s`: %s", what, path, strerror(error));
}

static mr_status no_memory(const char *path) {
    return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory to write `%.300s`", path);
}

/* Takes `fd`. */
static mr_status write_into(const job *j, int fd) {
    FILE *file = fdopen(fd, "wb");
    if (!file) {
        close(fd);
        return no_memory(j->path);
    }
    errno = 0;
    mr_status status = j->write(j->context, file);
    bool is_whole = !ferror(file) && fflush(file) == 0;
    if (!status && !is_whole) status = cannot("write", j->path);
    if (fclose(file) != 0 && !status) status = cannot("write", j->path);
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

/* `old`: the file that is there, or NULL. */
static mr_status replace(const job *j, const struct stat *old) {
    size_t size = strlen(j->path) + 40;
    char *temporary = malloc(size);
    if (!temporary) return no_memory(j->path);
    int fd = create_beside(j->path, temporary, size);
    if (fd < 0) {
        free(temporary);
        return cannot("create", j->path);
    }
    mr_status status = MR_OK;
    if (old && fchmod(fd, old->st_mode & 07777) != 0)
        status = cannot("set the permissions of", j->path);
    if (status) close(fd);
    else status = write_into(j, fd);
    if (!status && rename(temporary, j->path) != 0) status = cannot("write", j->path);
    if (status) unlink(temporary);
    free(temporary);
    return status;
}

/* A device, a pipe: nothing can be renamed over it. */
static mr_status write_through(const job *j) {
    int fd = open(j->path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot("open", j->path);
    return write_into(j, fd);
}

mr_status mr_replace_file(const char *path, mr_file_writer write, void *context) {
    job j = {path, write, context};
    struct stat facts;
    if (stat(path, &facts) != 0) return replace(&j, NULL);
    if (S_ISDIR(facts.st_mode))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot write `%.300s`: it is a folder", path);
    if (!S_ISREG(facts.st_mode)) return write_through(&j);

    char *target = realpath(path, NULL); /* a link stays one */
    if (!target) return cannot("write", path);
    j.path = target;
    mr_status status = replace(&j, &facts);
    free(target);
    return status;
}
