/* The side of millrace: see worker.h.
 *
 * The worker's program is a part of this binary. It runs from a file in memory, so it needs no place on disk, and a
 * Lua module has it, too. One idle worker is kept. A second compilation at the same time starts another one, which
 * ends with it. Easiest to break: a worker may be in an enemy's hands, so its answers are bytes, and no call here may
 * wait for it without an end. */
#include "compile/compiler/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "compile/child.h"
#include "compile/compiler/toolkit.h"

#define POLL_MS     20
#define FIRST_FREE  10 /* above the numbers under which the worker has its files */
#define LONGEST_ASK 8192

extern const unsigned char mr_compile_worker_image[], mr_compile_worker_end[];

typedef struct {
    pid_t pid; /* 0: there is none */
    int requests, files;
    bool is_confined;
    char name[48];
} worker;

/* The worker that waits for work, and the process that it belongs to: a fork of this process has no part in it. */
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static worker idle;
static pid_t idle_owner;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---------------------------------------------------------------- starting and ending */

/* Returns the signal that ended it, or 0. */
static int end_worker(worker *w, bool is_dead) {
    int status = 0;
    if (!w->pid) return 0;
    if (!is_dead) kill(w->pid, SIGKILL);
    close(w->requests);
    close(w->files);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) continue;
    w->pid = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int make_program(void) {
    size_t size = (uintptr_t)mr_compile_worker_end - (uintptr_t)mr_compile_worker_image;
    int file = memfd_create("millrace-compile", MFD_CLOEXEC);
    for (size_t at = 0; file >= 0 && at < size;) {
        ssize_t part = write(file, mr_compile_worker_image + at, size - at);
        if (part < 0 && errno == EINTR) continue;
        if (part <= 0) {
            close(file);
            return -1;
        }
        at += (size_t)part;
    }
    return file;
}

/* The same file under a number that none of the worker's own will replace; -1: there is none. Takes over `file`. */
static int raise_number(int file) {
    int raised = file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, FIRST_FREE);
    if (file >= 0) close(file);
    return raised;
}

/* Two connected sockets: ours and the worker's. */
static bool make_pair(int type, int ends[2]) {
    int pair[2];
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair) != 0) return false;
    ends[0] = pair[0];
    ends[1] = raise_number(pair[1]);
    if (ends[1] >= 0) return true;
    close(pair[0]);
    return false;
}

static int spawn_program(int program, int requests, int files, pid_t *out_pid) {
    char path[40];
    const char *const arguments[] = {"millrace-compile", NULL};
    const mr_child_file given[] = {{requests, MR_WIRE_REQUESTS}, {files, MR_WIRE_FILES}};
    snprintf(path, sizeof path, "/proc/self/fd/%d", program);
    return mr_child_spawn(path, arguments, given, 2, out_pid);
}

static bool start(worker *out) {
    int requests[2], files[2], program = raise_number(make_program()), error = 0;
    if (program < 0) return false;
    if (!make_pair(SOCK_STREAM, requests)) {
        close(program);
        return false;
    }
    if (make_pair(SOCK_SEQPACKET, files)) {
        error = spawn_program(program, requests[1], files[1], &out->pid);
        close(files[1]);
        if (error) close(files[0]);
    } else error = errno;
    close(requests[1]);
    if (error) close(requests[0]);
    close(program);
    out->requests = requests[0];
    out->files = files[0];
    errno = error;
    return !error;
}

/* ---------------------------------------------------------------- talking */

typedef struct {
    const mr_worker_job *job;
    worker *w;
    int64_t end_ms;
    const char *sent; /* the unsent rest of the request */
    size_t left;
    mr_buffer *answer;
    uint64_t expected; /* bytes of the answer, once its first 8 are there */
} talk;

static void hand_out(const talk *t) {
    char path[LONGEST_ASK + 1], byte = 0;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {.iov_base = &byte, .iov_len = 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    ssize_t size = recv(t->w->files, path, LONGEST_ASK, MSG_DONTWAIT);
    if (size <= 0) return;
    path[size] = '\0';
    int file = mr_toolkit_open(t->job->headers, path);
    if (file >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(&control.head), &file, sizeof file);
    }
    sendmsg(t->w->files, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (file >= 0) close(file);
}

/* False: the worker has gone. */
static bool send_more(talk *t) {
    ssize_t size = send(t->w->requests, t->sent, t->left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    t->sent += size;
    t->left -= (size_t)size;
    return true;
}

/* False: the worker has gone, or it sends nonsense. */
static bool receive_more(talk *t) {
    char piece[65536];
    ssize_t size = recv(t->w->requests, piece, sizeof piece, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    if (size > 0) mr_buffer_add(t->answer, piece, (size_t)size);
    if (t->answer->size >= sizeof t->expected)
        memcpy(&t->expected, t->answer->data, sizeof t->expected);
    return size > 0 && !t->answer->failed && t->expected <= MR_WIRE_MOST;
}

static bool is_complete(const talk *t) {
    return t->answer->size >= sizeof t->expected &&
           t->answer->size >= sizeof t->expected + t->expected;
}

/* Sends the rest of the request, and reads until the answer is complete. */
static mr_worker_end converse(talk *t) {
    const mr_worker_job *job = t->job;
    for (;;) {
        struct pollfd ends[] = {
            {.fd = t->w->requests, .events = (short)(POLLIN | (t->left ? POLLOUT : 0))},
            {.fd = t->w->files, .events = POLLIN}};
        if (poll(ends, 2, POLL_MS) > 0) {
            if (ends[1].revents & POLLIN) hand_out(t);
            if ((ends[0].revents & POLLOUT) && !send_more(t)) return MR_WORKER_CRASHED;
            if ((ends[0].revents & (POLLIN | POLLHUP | POLLERR)) && !receive_more(t))
                return MR_WORKER_CRASHED;
            if (is_complete(t)) return MR_WORKER_ANSWERED;
        }
        if (job->interrupted && job->interrupted(job->context)) return MR_WORKER_INTERRUPTED;
        if (now_ms() >= t->end_ms) return MR_WORKER_LATE;
    }
}

/* `message` has room for its size in front. */
static mr_worker_end ask(const mr_worker_job *job, worker *w, int64_t end_ms,
                         const mr_buffer *message, mr_buffer *answer) {
    mr_buffer whole = {0};
    uint64_t size = message->size;
    mr_buffer_add(&whole, (const char *)&size, sizeof size);
    mr_buffer_add(&whole, message->data, message->size);
    talk t = {.job = job,
              .w = w,
              .end_ms = end_ms,
              .sent = whole.data,
              .left = whole.size,
              .answer = answer};
    mr_worker_end end = whole.failed ? MR_WORKER_CRASHED : converse(&t);
    mr_buffer_free(&whole);
    return end;
}

/* ---------------------------------------------------------------- one job */

static mr_wire fields_of(const mr_buffer *answer) {
    return (mr_wire){.at = answer->data + sizeof(uint64_t), .end = answer->data + answer->size};
}

static void set_up(const mr_worker_job *job, worker *w, int64_t end_ms, mr_worker_result *out) {
    mr_buffer message = {0}, answer = {0};
    mr_wire_put_text(&message, job->library);
    mr_wire_put_number(&message, job->is_confined);
    if (!start(w)) {
        out->end = MR_WORKER_MISSING;
        snprintf(out->problem, sizeof out->problem, "the compiler's process cannot be started: %s",
                 strerror(errno));
    } else out->end = ask(job, w, end_ms, &message, &answer);
    if (out->end == MR_WORKER_ANSWERED) {
        mr_wire fields = fields_of(&answer);
        snprintf(w->name, sizeof w->name, "%s", mr_wire_take(&fields, NULL));
        snprintf(out->problem, sizeof out->problem, "%s", mr_wire_take(&fields, NULL));
        w->is_confined = job->is_confined;
        if (!*w->name || fields.failed) out->end = MR_WORKER_MISSING;
    }
    mr_buffer_free(&message);
    mr_buffer_free(&answer);
}

/* The idle worker, if it is of the right kind and still alive. */
static worker take_idle(bool is_confined) {
    pthread_mutex_lock(&idle_lock);
    worker w = idle;
    bool is_ours = idle_owner == getpid();
    idle.pid = 0;
    pthread_mutex_unlock(&idle_lock);
    struct pollfd gone = {.fd = w.requests, .events = POLLIN};
    if (w.pid && !is_ours) {
        close(w.requests);
        close(w.files);
        w.pid = 0;
    } else if (w.pid && (w.is_confined != is_confined || poll(&gone, 1, 0) != 0))
        end_worker(&w, false);
    return w;
}

static void give_back(worker *w) {
    pthread_mutex_lock(&idle_lock);
    bool is_taken = idle.pid != 0 && idle_owner == getpid();
    if (!is_taken) {
        idle = *w;
        idle_owner = getpid();
    }
    pthread_mutex_unlock(&idle_lock);
    if (is_taken) end_worker(w, false);
}

static void run_in(const mr_worker_job *job, worker *w, const mr_buffer *request, int64_t end_ms,
                   mr_worker_result *out) {
    *out = (mr_worker_result){.end = MR_WORKER_ANSWERED};
    if (!w->pid) set_up(job, w, end_ms, out);
    if (out->end == MR_WORKER_ANSWERED && request)
        out->end = ask(job, w, end_ms, request, &out->answer);
    snprintf(out->name, sizeof out->name, "%s", w->name);
    if (out->end == MR_WORKER_ANSWERED) give_back(w);
    else out->signal = end_worker(w, out->end == MR_WORKER_CRASHED);
}

/* A worker that has served before may have ended for another reason than this request, so a new one decides. */
void mr_worker_run(const mr_worker_job *job, const mr_buffer *request, mr_worker_result *out) {
    int64_t end_ms = now_ms() + job->time_limit_ms;
    worker w = take_idle(job->is_confined);
    bool has_served = w.pid != 0;
    run_in(job, &w, request, end_ms, out);
    if (out->end != MR_WORKER_CRASHED || !has_served) return;
    mr_buffer_free(&out->answer);
    run_in(job, &w, request, end_ms, out);
}
