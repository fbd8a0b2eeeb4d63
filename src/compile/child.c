/* A child process: see child.h.
 *
 * The child leads a process group of its own, so that a compiler's own children are killed with it. A terminal sends
 * Ctrl-C to the group of millrace only, so the child ends when `interrupted` says so. Easiest to break: each way out
 * must wait for the child, else it stays as a zombie. */
#include "compile/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_MS 20

extern char **environ;

/* Variables that change the includes or the behaviour of a compiler; the cache would not notice. */
static bool is_dropped(const char *variable) {
    static const char *const names[] = {"CPATH=",
                                        "C_INCLUDE_PATH=",
                                        "CPLUS_INCLUDE_PATH=",
                                        "CCC_OVERRIDE_OPTIONS=",
                                        "CCC_ADD_ARGS=",
                                        "SOURCE_DATE_EPOCH=",
                                        "CLANG_CONFIG_FILE_SYSTEM_DIR="};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(variable, names[i], strlen(names[i])) == 0) return true;
    return false;
}

/* The strings stay those of this process. */
static char **child_environment(void) {
    size_t count = 0, kept = 0;
    while (environ[count]) count++;
    char **list = calloc(count + 1, sizeof *list);
    for (size_t i = 0; list && i < count; i++)
        if (!is_dropped(environ[i])) list[kept++] = environ[i];
    return list;
}

static int set_attributes(posix_spawnattr_t *attributes) {
    sigset_t none, usual;
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGINT);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGTERM);
    sigaddset(&usual, SIGHUP);
    sigaddset(&usual, SIGXFSZ);
    posix_spawnattr_setsigmask(attributes, &none);
    posix_spawnattr_setsigdefault(attributes, &usual);
    posix_spawnattr_setpgroup(attributes, 0);
    return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
}

static int set_files(posix_spawn_file_actions_t *actions, const mr_child_file *files, int count) {
    bool is_given[3] = {false};
    int error = 0;
    for (int i = 0; !error && i < count; i++) {
        error = posix_spawn_file_actions_adddup2(actions, files[i].here, files[i].there);
        if (files[i].there < 3) is_given[files[i].there] = true;
    }
    for (int i = 0; !error && i < 3; i++)
        if (!is_given[i])
            error = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
    return error;
}

int mr_child_spawn(const char *path, const char *const *arguments, const mr_child_file *files,
                   int file_count, pid_t *out_pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char **environment = child_environment();
    if (!environment) return ENOMEM;
    int error = posix_spawn_file_actions_init(&actions);
    if (error) {
        free(environment);
        return error;
    }
    error = posix_spawnattr_init(&attributes);
    if (!error) {
        error = set_attributes(&attributes);
        if (!error) error = set_files(&actions, files, file_count);
        if (!error)
            error = posix_spawn(out_pid, path, &actions, &attributes, (char *const *)arguments,
                                environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    free(environment);
    return error;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until all writers have closed the pipe. False: it is time to kill. */
static bool read_all(const mr_child *child, int pipe_end, mr_child_end *out) {
    int64_t end = now_ms() + child->time_limit_ms;
    char piece[4096];
    for (;;) {
        struct pollfd ready = {.fd = pipe_end, .events = POLLIN};
        int count = poll(&ready, 1, POLL_MS);
        if (count > 0) {
            ssize_t size = read(pipe_end, piece, sizeof piece);
            if (size == 0) return true;
            if (size < 0 && errno != EINTR && errno != EAGAIN) return false;
            size_t room = child->most_output - out->output.size;
            if (size > 0)
                mr_buffer_add(&out->output, piece, (size_t)size < room ? (size_t)size : room);
        }
        out->is_interrupted = child->interrupted && child->interrupted(child->context);
        out->is_late = !out->is_interrupted && now_ms() >= end;
        if (out->is_interrupted || out->is_late) return false;
    }
}

/* A child that closed its output may still run: the same limit holds. */
static void wait_for(const mr_child *child, pid_t pid, mr_child_end *out) {
    int64_t end = now_ms() + child->time_limit_ms;
    int status = 0;
    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid || (ended < 0 && errno != EINTR)) break;
        if (now_ms() >= end) {
            out->is_late = true;
            kill(-pid, SIGKILL);
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    out->exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

mr_status mr_child_run(const mr_child *child, mr_child_end *out) {
    int ends[2];
    pid_t pid;
    *out = (mr_child_end){.exit_status = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return mr_fail(MR_CODE_UNKNOWN, "%s cannot be started: %s", child->arguments[0],
                       strerror(errno));
    const mr_child_file output[] = {{ends[1], 1}, {ends[1], 2}};
    int error = mr_child_spawn(child->arguments[0], child->arguments, output, 2, &pid);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s cannot be started: %s", child->arguments[0],
                       strerror(error));
    }
    if (!read_all(child, ends[0], out)) kill(-pid, SIGKILL);
    close(ends[0]);
    wait_for(child, pid, out);
    return MR_OK;
}
