/* NVRTC replaces the handler of SIGINT while it reads a source, by one that ends the process with status 4. A guard puts
 * the handler back that the program has, so that Ctrl-C means during a compilation what it means elsewhere. */
#ifndef MR_COMPILE_SIGNALS_H
#define MR_COMPILE_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct {
    struct sigaction handler; /* the program's */
    atomic_bool is_over;
    bool is_running;
    pthread_t thread;
} mr_signal_guard;

/* `guard` must stay where it is until the end. Without a thread there is no guard, and nothing else fails. */
void mr_signal_guard_begin(mr_signal_guard *guard);
void mr_signal_guard_end(mr_signal_guard *guard);

#endif
