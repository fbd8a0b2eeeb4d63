/* See replace.h.
 *
 * Easiest to break: a process can end at any instruction. Between the moment in which the new file has a name of its
 * own and its renaming, the signals that would end the process wait. */
#include "base/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS = 100 }; /* names to try for the temporary file */
enum { LONGEST_NAME = 64, MOST_LINKS = 40 };

typedef struct {
    const char *path;   /* as the caller calls it */
    const char *target; /* where the links lead */
    mr_file_writer write;
    void *context;
} job;

static mr_status cannot(const char *what, const char *path) {
    int error = errno;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot %s `%.300s`: %s", what, path, strerror(error));
}

static mr_status no_memory(const char *path) {
    return mr_no_memory("to write `%.300s`", path);
}

/* ---- signals */

static void add_signals(sigset_t *set, const int *list) {
    sigemptyset(set);
    for (; *list; list++) sigaddset(set, *list);
}

/* A write raises these in the thread that writes. */
static const int of_writes[] = {SIGPIPE, SIGXFSZ, 0};
static const int of_ending[] = {SIGTERM, SIGHUP, SIGINT, SIGQUIT, 0};

typedef struct {
    sigset_t before, pending;
} hold;

static void hold_signals(hold *h, const int *list) {
    sigset_t held;
    add_signals(&held, list);
    sigpending(&h->pending);
    pthread_sigmask(SIG_BLOCK, &held, &h->before);
}

static void let_signals(const hold *h) {
    pthread_sigmask(SIG_SETMASK, &h->before, NULL);
}

/* Takes back what our own writes have raised. */
static void drop_signals(const hold *h) {
    sigset_t raised;
    const struct timespec now = {0};
    for (const int *signal = of_writes; *signal; signal++) {
        if (sigismember(&h->pending, *signal)) continue;
        sigemptyset(&raised);
        sigaddset(&raised, *signal);
        while (sigtimedwait(&raised, NULL, &now) < 0 && errno == EINTR) continue;
    }
}

/* ---- places */

/* "dir" of "dir/name", "." of "name"; with `tail` after it. NULL: no memory. */
static char *in_folder_of(const char *path, const char *tail) {
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    char *out = malloc(length + strlen(tail) + 3);
    if (!out) return NULL;
    memcpy(out, path, length);
    strcpy(out + length, *tail ? tail : ".");
    return out;
}

/* Where a link leads, whether or not anything is there. NULL: errno says why. */
static char *follow(const char *path) {
    char *at = strdup(path);
    struct stat facts;
    char text[PATH_MAX];
    for (int i = 0; at && lstat(at, &facts) == 0 && S_ISLNK(facts.st_mode); i++) {
        ssize_t size = i < MOST_LINKS ? readlink(at, text, sizeof text - 1) : -1;
        if (size < 0) {
            if (i == MOST_LINKS) errno = ELOOP;
            free(at);
            return NULL;
        }
        text[size] = '\0';
        char *next = text[0] == '/' ? strdup(text) : in_folder_of(at, text);
        free(at);
        at = next;
    }
    return at;
}

/* ---- writing */

/* All bytes, as far as the file itself: not yet safe from a loss of power. */
static mr_status fill(const job *j, FILE *file) {
    errno = 0;
    mr_status status = j->write(j->context, file);
    bool is_whole = !ferror(file) && fflush(file) == 0;
    return status || is_whole ? status : cannot("write", j->path);
}

/* Takes `fd`. */
static FILE *as_file(int fd) {
    FILE *file = fdopen(fd, "wb");
    if (!file) close(fd);
    return file;
}

static void make_folder_safe(const char *path) {
    char *folder = in_folder_of(path, "");
    int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        fsync(fd); /* a folder that cannot be synchronised is as safe as it gets */
        close(fd);
    }
    free(folder);
}

/* ---- a new file beside the path */

typedef struct {
    int fd;
    char *name; /* NULL: it has none yet */
} beside;

static char *temporary_name(const char *target, int i) {
    char name[LONGEST_NAME];
    snprintf(name, sizeof name, ".millrace.%d.%d~", (int)getpid(), i);
    return in_folder_of(target, name);
}

/* Calls `take` with names until one is free. The name; NULL: errno says why not. */
static char *take_name(const char *target, int (*take)(int fd, const char *name), int *io_fd) {
    for (int i = 0; i < ATTEMPTS; i++) {
        char *name = temporary_name(target, i);
        int fd = name ? take(*io_fd, name) : -1;
        if (fd >= 0) {
            *io_fd = fd;
            return name;
        }
        int error = name ? errno : ENOMEM;
        free(name);
        errno = error;
        if (error != EEXIST) return NULL;
    }
    return NULL;
}

static int create_named(int fd, const char *name) {
    (void)fd;
    return open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int give_name(int fd, const char *name) {
    char self[LONGEST_NAME];
    snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0 ? fd : -1;
}

/* A file that /proc can give a name later; -1: there is none here. */
static int create_nameless(const char *target) {
    char *folder = in_folder_of(target, "");
    int fd = -1;
    if (folder && access("/proc/self/fd", X_OK) == 0)
        fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    free(folder);
    return fd;
}

/* False: errno says why no file can be made there. */
static bool create_beside(const char *target, beside *out) {
    *out = (beside){.fd = create_nameless(target)};
    if (out->fd >= 0) return true;
    out->name = take_name(target, create_named, &out->fd);
    return out->name != NULL;
}

static bool has_owner_of(int fd, const struct stat *old) {
    struct stat facts;
    if (fstat(fd, &facts) != 0) return false;
    if (facts.st_uid == old->st_uid && facts.st_gid == old->st_gid) return true;
    return fchown(fd, old->st_uid, old->st_gid) == 0;
}

static mr_status publish(const job *j, beside *b) {
    hold h;
    hold_signals(&h, of_ending);
    if (!b->name) b->name = take_name(j->target, give_name, &b->fd);
    mr_status status = MR_OK;
    if (!b->name || rename(b->name, j->target) != 0) status = cannot("write", j->path);
    else {
        free(b->name);
        b->name = NULL;
    }
    if (b->name) unlink(b->name);
    let_signals(&h);
    return status;
}

static void give_up(beside *b) {
    if (b->name) unlink(b->name);
    free(b->name);
}

/* Takes `b`. */
static mr_status write_beside(const job *j, beside *b) {
    hold h;
    FILE *file = as_file(b->fd);
    if (!file) {
        give_up(b);
        return no_memory(j->path);
    }
    bool has_name = b->name != NULL;
    if (has_name) hold_signals(&h, of_ending);
    mr_status status = fill(j, file);
    if (!status && fsync(b->fd) != 0) status = cannot("write", j->path);
    if (!status) {
        status = publish(j, b);
        if (!status) make_folder_safe(j->target);
    }
    fclose(file);
    give_up(b);
    if (has_name) let_signals(&h);
    return status;
}

/* ---- in the place of the old bytes */

static mr_status copy_over(const job *j, FILE *from, int to) {
    char piece[1 << 16];
    off_t size = 0;
    struct stat facts;
    if (fstat(fileno(from), &facts) != 0) return cannot("write", j->path);
    int error = facts.st_size ? posix_fallocate(to, 0, facts.st_size) : 0;
    if (error == ENOSPC || error == EFBIG || error == EDQUOT) {
        errno = error;
        return cannot("write", j->path);
    }
    rewind(from);
    for (size_t got; (got = fread(piece, 1, sizeof piece, from)) > 0; size += (off_t)got)
        for (size_t done = 0; done < got;) {
            ssize_t written = write(to, piece + done, got - done);
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) return cannot("write", j->path);
            done += (size_t)written;
        }
    if (ferror(from) || ftruncate(to, size) != 0 || fsync(to) != 0) return cannot("write", j->path);
    return MR_OK;
}

static mr_status overwrite(const job *j) {
    int to = open(j->target, O_WRONLY | O_CLOEXEC);
    if (to < 0) return cannot("write", j->path);
    FILE *whole = tmpfile();
    mr_status status = whole ? fill(j, whole) : cannot("write", j->path);
    if (!status) status = copy_over(j, whole, to);
    if (whole) fclose(whole);
    close(to);
    return status;
}

/* ---- which of them */

static mr_status make(const job *j) {
    beside b;
    if (!create_beside(j->target, &b)) return cannot("create", j->path);
    return write_beside(j, &b);
}

static mr_status replace(const job *j, const struct stat *old) {
    beside b;
    if (!(old->st_mode & 0222))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "cannot write `%.300s`: the file is read-only (mode %03o)", j->path,
                       (unsigned)old->st_mode & 0777);
    if (access(j->target, W_OK) != 0) return cannot("write", j->path);
    if (old->st_nlink > 1) return overwrite(j);
    if (!create_beside(j->target, &b)) return errno == ENOMEM ? no_memory(j->path) : overwrite(j);
    if (has_owner_of(b.fd, old) && fchmod(b.fd, old->st_mode & 07777) == 0)
        return write_beside(j, &b);
    close(b.fd);
    give_up(&b);
    return overwrite(j);
}

/* A device, a pipe: nothing can be renamed over it. */
static mr_status write_through(const job *j) {
    int fd = open(j->target, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return cannot("open", j->path);
    FILE *file = as_file(fd);
    if (!file) return no_memory(j->path);
    mr_status status = fill(j, file);
    if (fclose(file) != 0 && !status) status = cannot("write", j->path);
    return status;
}

static mr_status write_target(const job *j) {
    struct stat facts;
    if (stat(j->target, &facts) != 0) return errno == ENOENT ? make(j) : cannot("write", j->path);
    if (S_ISDIR(facts.st_mode))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "cannot write `%.300s`: it is a folder", j->path);
    return S_ISREG(facts.st_mode) ? replace(j, &facts) : write_through(j);
}

mr_status mr_replace_has_folder(const char *path) {
    struct stat facts;
    errno = ENOMEM;
    char *target = follow(path), *folder = target ? in_folder_of(target, "") : NULL;
    mr_status status = MR_OK;
    if (!folder) status = errno == ENOMEM ? no_memory(path) : cannot("write", path);
    else if (stat(folder, &facts) != 0) status = cannot("create", path);
    free(folder);
    free(target);
    return status;
}

mr_status mr_replace_file(const char *path, mr_file_writer write, void *context) {
    hold h;
    errno = ENOMEM;
    char *target = follow(path);
    if (!target) return errno == ENOMEM ? no_memory(path) : cannot("write", path);
    const job j = {path, target, write, context};
    hold_signals(&h, of_writes);
    mr_status status = write_target(&j);
    drop_signals(&h);
    let_signals(&h);
    free(target);
    return status;
}
