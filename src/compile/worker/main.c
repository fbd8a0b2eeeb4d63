/* The loop of the compile worker: see worker.h.
 *
 * One thread with a large stack serves: texts that are nested deeply need one. The first thread only waits until
 * millrace has gone, and then ends the process, whatever the other one does. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compile/worker/worker.h"

#define STACK         ((size_t)256 << 20)
#define CONFINED_DATA ((rlim_t)1 << 30) /* bytes, besides the stack */

static bool read_all(void *out, size_t size) {
    for (char *at = out; size > 0;) {
        ssize_t part = read(MR_WIRE_REQUESTS, at, size);
        if (part == 0 || (part < 0 && errno != EINTR)) return false;
        if (part < 0) continue;
        at += part;
        size -= (size_t)part;
    }
    return true;
}

static bool write_all(const void *data, size_t size) {
    for (const char *at = data; size > 0;) {
        ssize_t part = write(MR_WIRE_REQUESTS, at, size);
        if (part < 0 && errno != EINTR) return false;
        if (part < 0) continue;
        at += part;
        size -= (size_t)part;
    }
    return true;
}

/* NULL: millrace has gone, or there is no memory. */
static char *receive(size_t *out_size) {
    uint64_t size;
    if (!read_all(&size, sizeof size) || size > MR_WIRE_MOST) return NULL;
    char *message = malloc((size_t)size + 1);
    if (message && read_all(message, (size_t)size)) {
        *out_size = (size_t)size;
        return message;
    }
    free(message);
    return NULL;
}

static bool send_message(mr_buffer *message) {
    uint64_t size = message->size;
    bool is_sent =
        !message->failed && write_all(&size, sizeof size) && write_all(message->data, (size_t)size);
    mr_buffer_free(message);
    return is_sent;
}

static void limit_memory(void) {
    const struct rlimit data = {CONFINED_DATA + STACK, CONFINED_DATA + STACK}, core = {0, 0};
    setrlimit(RLIMIT_DATA, &data);
    setrlimit(RLIMIT_CORE, &core);
}

/* The first message: the library's path, and whether to confine. The answer: its name, and the error. */
static bool set_up(void) {
    size_t size;
    char name[48] = "", missing[256] = "";
    mr_buffer answer = {0};
    char *message = receive(&size);
    if (!message) return false;
    mr_wire request = {.at = message, .end = message + size};
    const char *path = mr_wire_take(&request, NULL), *problem = NULL;
    bool is_confined = mr_wire_take_number(&request) != 0, is_open = false;
    if (request.failed) return false;
    if (is_confined) limit_memory();
    is_open = worker_open(path, name, sizeof name, missing, sizeof missing);
    if (is_open && is_confined) {
        worker_warm_up();
        problem = worker_confine();
    }
    free(message);
    mr_wire_put_text(&answer, problem ? "" : name);
    mr_wire_put_text(&answer, problem ? problem : missing);
    return send_message(&answer) && is_open && !problem;
}

static void *serve(void *unused) {
    (void)unused;
    bool goes_on = set_up();
    while (goes_on) {
        size_t size;
        mr_buffer answer = {0};
        char *message = receive(&size);
        if (!message) break;
        mr_wire request = {.at = message, .end = message + size};
        goes_on = worker_compile(&request, &answer) && send_message(&answer);
        mr_buffer_free(&answer);
        free(message);
    }
    _exit(0);
}

int main(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    struct pollfd gone = {.fd = MR_WIRE_REQUESTS, .events = POLLRDHUP};
    prctl(PR_SET_NAME,
          "millrace-compil"); /* for ps: the file in memory has no name that says anything */
    signal(SIGPIPE, SIG_IGN);
    /* files that millrace has open are not for this process */
    syscall(SYS_close_range, MR_WIRE_FILES + 1, ~0U, 0);
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstacksize(&attributes, STACK) != 0 ||
        pthread_create(&thread, &attributes, serve, NULL) != 0)
        return 1;
    while (poll(&gone, 1, -1) <= 0) continue;
    _exit(0);
}
