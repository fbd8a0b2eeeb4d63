/* The pool behind parallel.h: helpers sleep on a condition, wake for one loop, and take pieces from a
 * shared counter until the range is used up. They live until the process ends.
 *
 * Easiest to break: fork. A child has no helpers, and its locks are in the state in which the parent's
 * threads left them. So it starts with an empty pool. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { MAX_THREADS = 64, PIECES_PER_THREAD = 4 };

static struct {
    pthread_mutex_t user; /* held by the caller that the pool serves */
    pthread_mutex_t lock; /* guards the fields below but for `next` */
    pthread_cond_t work, done;
    int helpers; /* started */
    int busy;    /* of them, in the current loop */
    bool started;
    bool open;     /* the current loop takes helpers: it may have pieces left */
    uint64_t loop; /* number of the current loop: tells a helper that there is a new one */
    mr_parallel_body body;
    void *context;
    int64_t count, piece;
    atomic_llong next; /* where the next piece begins */
} pool = {
    .user = PTHREAD_MUTEX_INITIALIZER,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .done = PTHREAD_COND_INITIALIZER,
};

/* Runs in the child of a fork. Its only thread is in no loop, because a body does not fork. The parent's helpers do not
 * exist here, so all that start_helpers and the first loop set is reset. */
static void forget_helpers(void) {
    pthread_mutex_init(&pool.user, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.done, NULL);
    pool.helpers = pool.busy = 0;
    pool.started = pool.open = false;
    pool.loop = 0;
}

static int count_cpus(void) {
    const char *wanted = getenv("MILLRACE_THREADS");
    int n = wanted ? atoi(wanted) : 0;
    cpu_set_t set;
    if (n < 1 && sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : n;
}

int mr_parallel_threads(void) {
    static atomic_int threads;
    int n = atomic_load_explicit(&threads, memory_order_relaxed);
    if (n == 0) {
        n = count_cpus();
        atomic_store_explicit(&threads, n, memory_order_relaxed);
    }
    return n;
}

static void take_pieces(void) {
    for (;;) {
        int64_t first = atomic_fetch_add(&pool.next, pool.piece);
        if (first >= pool.count) return;
        int64_t rest = pool.count - first;
        pool.body(pool.context, first, first + (rest < pool.piece ? rest : pool.piece));
    }
}

static void *helper(void *unused) {
    (void)unused;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        while (pool.loop == seen || !pool.open) pthread_cond_wait(&pool.work, &pool.lock);
        seen = pool.loop;
        pool.busy++;
        pthread_mutex_unlock(&pool.lock);
        take_pieces();
        pthread_mutex_lock(&pool.lock);
        if (--pool.busy == 0) pthread_cond_signal(&pool.done);
    }
    return NULL;
}

static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_helpers);
}

/* A thread inherits the signals that its creator blocks. So a signal to the process reaches the thread that may hold it
 * back (base/replace.c). Signals that a thread's own instructions raise stay with that thread. */
static void hold_signals(sigset_t *out_before) {
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) sigdelset(&held, own[i]);
    pthread_sigmask(SIG_BLOCK, &held, out_before);
}

static void start_helpers(int wanted) {
    static pthread_once_t once = PTHREAD_ONCE_INIT; /* a child inherits the handler */
    pthread_once(&once, watch_forks);
    pool.started = true;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t before;
    hold_signals(&before);
    while (pool.helpers < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, &attributes, helper, NULL) != 0) break;
        pool.helpers++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

void mr_parallel_for(int64_t count, int64_t grain, mr_parallel_body body, void *context) {
    if (count <= 0) return;
    int threads = mr_parallel_threads();
    if (grain < 1) grain = 1;
    if (threads == 1 || count <= grain || pthread_mutex_trylock(&pool.user) != 0) {
        body(context, 0, count);
        return;
    }
    pthread_mutex_lock(&pool.lock);
    if (!pool.started) start_helpers(threads - 1);
    int64_t piece = count / ((int64_t)threads * PIECES_PER_THREAD);
    pool.piece = piece < grain ? grain : piece;
    pool.count = count;
    pool.body = body;
    pool.context = context;
    atomic_store(&pool.next, 0);
    pool.open = true;
    pool.loop++;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);

    take_pieces();

    /* The loop does not wait for a helper that has not woken up by now. */
    pthread_mutex_lock(&pool.lock);
    pool.open = false;
    while (pool.busy > 0) pthread_cond_wait(&pool.done, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.user);
}
