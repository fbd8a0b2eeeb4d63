/* See signals.h. A thread looks again and again, since nobody says when the library changes the handler. Easiest to break:
 * the thread must not take signals itself. */
#include "compile/signals.h"

#include <string.h>
#include <time.h>

static bool same_handler(const struct sigaction *a, const struct sigaction *b) {
    return (a->sa_flags & SA_SIGINFO) == (b->sa_flags & SA_SIGINFO) &&
           a->sa_handler == b->sa_handler;
}

static void put_back(const mr_signal_guard *guard) {
    struct sigaction now;
    if (sigaction(SIGINT, NULL, &now) == 0 && !same_handler(&now, &guard->handler))
        sigaction(SIGINT, &guard->handler, NULL);
}

static void *watch(void *context) {
    mr_signal_guard *guard = context;
    while (!atomic_load(&guard->is_over)) {
        put_back(guard);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

void mr_signal_guard_begin(mr_signal_guard *guard) {
    sigset_t all, before;
    memset(guard, 0, sizeof *guard);
    atomic_init(&guard->is_over, false);
    if (sigaction(SIGINT, NULL, &guard->handler) != 0) return;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    guard->is_running = pthread_create(&guard->thread, NULL, watch, guard) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void mr_signal_guard_end(mr_signal_guard *guard) {
    if (!guard->is_running) return;
    atomic_store(&guard->is_over, true);
    pthread_join(guard->thread, NULL);
    put_back(guard);
}
