/* A C stack that is large enough: see stack.h. The limit itself cannot be raised here, since a shell sets the hard one,
 * too; but it does not hold for the stacks of threads. */
#include "host/stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>

/* The deepest script that Lua allows takes about 0.6 MiB, the sanitizers' frames included several times that. */
#define ENOUGH ((size_t)8 << 20)

typedef struct {
    int (*body)(void *context);
    void *context;
    int result;
} work;

static void *run(void *context) {
    work *w = context;
    w->result = w->body(w->context);
    return NULL;
}

static size_t limit_of_stack(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur > SIZE_MAX) return ENOUGH;
    return (size_t)limit.rlim_cur;
}

/* The calling thread only waits and blocks all signals, so they reach the other one. */
static int run_on_a_thread(work *w) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return w->body(w->context);
    pthread_attr_setstacksize(&attributes, ENOUGH);
    int failed = pthread_create(&thread, &attributes, run, w);
    pthread_attr_destroy(&attributes);
    if (failed) return w->body(w->context);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return w->result;
}

int mr_stack_run(int (*body)(void *context), void *context) {
    work w = {body, context, 0};
    return limit_of_stack() < ENOUGH ? run_on_a_thread(&w) : body(context);
}

size_t mr_stack_size(void) {
    pthread_attr_t attributes;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return limit_of_stack();
    pthread_attr_getstacksize(&attributes, &size);
    pthread_attr_destroy(&attributes);
    return size;
}
