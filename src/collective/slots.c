#include "collective/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/number.h"

/* As long as the process runs. */
static struct {
    int socket; /* to the slot */
    pid_t mpirun;
} own = {.socket = -1};

typedef struct {
    const mr_started *launch;
    const char *program;
    char *why;
    size_t size;
    double timeout, deadline; /* 0: none */
    char name[100];           /* a name for this run, with which the names of its sockets begin */
} taking;

static bool refuse(const taking *t, const char *text) {
    snprintf(t->why, t->size, "%s", text);
    return false;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *variable(const char *name) {
    const char *text = getenv(name);
    return text ? text : "";
}

/* ---- sockets */

/* Names that begin with a zero byte are not in the file system. */
static socklen_t find_address(const taking *t, uint32_t rank, struct sockaddr_un *out) {
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "%s%u", t->name, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static int make_socket(void) {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static bool is_of_this_user(int socket) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

static int listen_here(const taking *t) {
    struct sockaddr_un address;
    socklen_t length = find_address(t, t->launch->rank, &address);
    int socket = make_socket();
    if (socket < 0) refuse(t, strerror(errno));
    else if (bind(socket, (struct sockaddr *)&address, length) == 0 && listen(socket, 8) == 0)
        return socket;
    else if (errno == EADDRINUSE)
        refuse(t,
               "another process has the same RANK and MASTER_PORT: start the ranks with torchrun");
    else refuse(t, strerror(errno));
    if (socket >= 0) close(socket);
    return -1;
}

/* Pauses between two checks of another process. */
static bool pause_before_next(const taking *t, const char *missing) {
    if (t->deadline > 0 && seconds() > t->deadline) return refuse(t, missing);
    if (nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL) == 0) return true;
    return refuse(t, "the wait for the other ranks was interrupted");
}

/* Until rank k listens. */
static bool wait_for(const taking *t, uint32_t k) {
    struct sockaddr_un address;
    socklen_t length = find_address(t, k, &address);
    char missing[100];
    mr_number_format(missing, sizeof missing,
                     "rank %u has not come to mr.dist on this computer within %g s", k, t->timeout);
    for (;;) {
        int probe = make_socket();
        if (probe < 0) return refuse(t, strerror(errno));
        bool is_there = connect(probe, (struct sockaddr *)&address, length) == 0;
        close(probe);
        if (is_there) return true;
        if (!pause_before_next(t, missing)) return false;
    }
}

/* ---- mpirun */

/* mpirun ends with this process, as slot 0 does. It ignores Ctrl-C, which is for the ranks. It asks no resource manager
 * for other computers, because torchrun's ranks are on this one. */
static bool start_mpirun(const taking *t) {
    char count[16], host[40];
    snprintf(count, sizeof count, "%u", t->launch->size);
    snprintf(host, sizeof host, "localhost:%u", t->launch->size);
    /* torchrun allows root, too. */
    const char *words[] = {"mpirun",
                           geteuid() == 0 ? "--allow-run-as-root" : "--quiet",
                           "--quiet",
                           "-n",
                           count,
                           "--host",
                           host,
                           "--bind-to",
                           "none",
                           "--mca",
                           "ras",
                           "^slurm,tm,lsf,gridengine,alps",
                           "--mca",
                           "plm",
                           "^slurm,tm,lsf,alps",
                           t->program,
                           t->name,
                           NULL};
    own.mpirun = fork();
    if (own.mpirun < 0) return refuse(t, strerror(errno));
    if (own.mpirun) return true;
    int nothing = open("/dev/null", O_RDONLY);
    setsid();
    dup2(nothing, STDIN_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    execvp(words[0], (char *const *)words);
    _exit(127);
}

static bool mpirun_runs(const taking *t) {
    int status;
    if (!own.mpirun || waitpid(own.mpirun, &status, WNOHANG) != own.mpirun) return true;
    own.mpirun = 0;
    return refuse(t, WIFEXITED(status) && WEXITSTATUS(status) == 127
                         ? "MPI needs mpirun, which is not there: install openmpi-bin"
                         : "mpirun could not start MPI for the ranks");
}

/* ---- the slot */

/* Reads NAME=VALUE strings, each with its zero byte, up to an empty one. False: they did not arrive. */
static bool read_environment(int socket) {
    mr_buffer text = {0};
    char part[4096];
    ssize_t got = 1;
    while (got > 0 && !(text.size > 1 && !text.data[text.size - 1] && !text.data[text.size - 2])) {
        got = read(socket, part, sizeof part);
        if (got > 0) mr_buffer_add(&text, part, (size_t)got);
    }
    bool fine = got > 0 && !text.failed;
    for (char *at = text.data; fine && *at;) {
        char *next = at + strlen(at) + 1, *equals = strchr(at, '=');
        if (equals) {
            *equals = 0;
            setenv(at, equals + 1, 1);
        }
        at = next;
    }
    mr_buffer_free(&text);
    return fine;
}

/* Registered before MPI's exit handler, so it runs after that one. mpirun ends when all ranks have ended; by then its
 * files are removed. */
static void leave(void) {
    fcntl(own.socket, F_SETFL, 0);
    send(own.socket, "", 1, MSG_NOSIGNAL);
    close(own.socket);
    while (own.mpirun && waitpid(own.mpirun, NULL, 0) < 0 && errno == EINTR) continue;
}

static void keep(int socket) {
    own.socket = socket;
    fcntl(socket, F_SETOWN, getpid());
    fcntl(socket, F_SETSIG, SIGTERM);
    fcntl(socket, F_SETFL, O_ASYNC);
    atexit(leave);
}

static bool accept_slot(const taking *t, int listening) {
    struct pollfd poll_one = {.fd = listening, .events = POLLIN};
    char missing[100];
    mr_number_format(missing, sizeof missing,
                     "the others have not all come to mr.dist on this computer within %g s",
                     t->timeout);
    for (;;) {
        int came = poll(&poll_one, 1, 0);
        int socket = came > 0 ? accept4(listening, NULL, NULL, SOCK_CLOEXEC) : -1;
        if (socket >= 0 && is_of_this_user(socket) && read_environment(socket)) {
            keep(socket);
            return true;
        }
        if (socket >= 0) close(socket);
        else if (!mpirun_runs(t) || !pause_before_next(t, missing)) return false;
    }
}

bool mr_slots_take(const mr_started *launch, const char *program, double timeout, char *why,
                   size_t size) {
    taking t = {.launch = launch, .program = program, .why = why, .size = size, .timeout = timeout};
    const char *here = variable("LOCAL_WORLD_SIZE");
    if (*here && strtoul(here, NULL, 10) != launch->size)
        return refuse(&t, "MPI connects its ranks on one computer only: use mpirun -n N millrace "
                          "script.lua for several");
    if (timeout > 0) t.deadline = seconds() + timeout;
    snprintf(t.name, sizeof t.name, "millrace-%u-%.8s-%.8s-%.40s-", (unsigned)geteuid(),
             variable("MASTER_PORT"), variable("TORCHELASTIC_RESTART_COUNT"),
             variable("TORCHELASTIC_RUN_ID"));
    int listening = listen_here(&t);
    if (listening < 0) return false;
    bool fine = true;
    for (uint32_t k = 1; k < launch->size && launch->rank == 0 && fine; k++) fine = wait_for(&t, k);
    if (fine && launch->rank == 0) fine = start_mpirun(&t);
    fine = fine && accept_slot(&t, listening);
    close(listening);
    return fine;
}
