/* The pool handles every position once, whatever the range and the grain. So it does from two threads at a time, from
 * inside a loop, and in the child of a fork. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parallel.h"

static void count(void *context, int64_t first, int64_t end) {
    uint8_t *seen = context;
    for (int64_t i = first; i < end; i++) seen[i]++;
}

static int all_once(int64_t n, int64_t grain) {
    uint8_t *seen = calloc((size_t)n + 1, 1);
    mr_parallel_for(n, grain, count, seen);
    int once = 1;
    for (int64_t i = 0; i < n; i++) once &= seen[i] == 1;
    free(seen);
    return once;
}

static void each_position_once(void **state) {
    (void)state;
    static const int64_t counts[] = {0, 1, 2, 7, 1000, 65537};
    static const int64_t grains[] = {0, 1, 3, 1000, 100000};
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < 6; i++)
            for (int j = 0; j < 5; j++) assert_true(all_once(counts[i], grains[j]));
    assert_true(mr_parallel_threads() >= 1);
}

static void *other_caller(void *out) {
    int ok = 1;
    for (int round = 0; round < 300; round++) ok &= all_once(5000, 7);
    *(int *)out = ok;
    return NULL;
}

static void two_callers(void **state) {
    (void)state;
    pthread_t thread;
    int here = 0, there = 0;
    assert_int_equal(pthread_create(&thread, NULL, other_caller, &there), 0);
    other_caller(&here);
    pthread_join(thread, NULL);
    assert_true(here && there);
}

static void nested(void *context, int64_t first, int64_t end) {
    int *ok = context;
    for (int64_t i = first; i < end; i++)
        if (!all_once(100, 1)) *ok = 0;
}

static void a_loop_in_a_loop(void **state) {
    (void)state;
    int ok = 1;
    mr_parallel_for(50, 1, nested, &ok);
    assert_true(ok);
}

/* The exit status of a child that runs `body` right after the fork; a child that hangs dies by SIGALRM. */
static int in_a_child(int (*body)(void)) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(body());
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

/* Each waits for the others, so the loop ends only if every helper runs it. */
static void meet(void *context, int64_t first, int64_t end) {
    atomic_llong *arrived = context;
    atomic_fetch_add(arrived, end - first);
    while (atomic_load(arrived) < mr_parallel_threads()) usleep(100);
}

/* Also before each fork here: a thread that starts allocates, and a fork at that moment leaves the child with the
 * locked allocator of gcc 12's AddressSanitizer. */
static void all_helpers_run(void) {
    atomic_llong arrived = 0;
    mr_parallel_for(mr_parallel_threads(), 1, meet, &arrived);
}

static int loops_of_a_child(void) {
    for (int round = 0; round < 20; round++)
        if (!all_once(65537, 7)) return 1;
    all_helpers_run(); /* it has helpers of its own */
    return 0;
}

static int loops_of_a_grandchild(void) {
    if (loops_of_a_child() != 0) return 1;
    return in_a_child(loops_of_a_child) == 0 ? 0 : 2;
}

static void a_child_has_a_pool_of_its_own(void **state) {
    (void)state;
    all_helpers_run();
    assert_true(all_once(65537, 7));
    assert_int_equal(in_a_child(loops_of_a_grandchild), 0);
    assert_true(all_once(65537, 7)); /* the parent keeps its own */
}

static atomic_bool looping, stop_looping;

/* Adds to one array that stays: it must not be in the allocator at a fork (see all_helpers_run). */
static void *loop_until_stopped(void *out) {
    static uint8_t seen[5000];
    uint8_t rounds = 0;
    int ok = 1;
    atomic_store(&looping, true);
    for (; !atomic_load(&stop_looping); rounds++) mr_parallel_for(sizeof seen, 7, count, seen);
    for (size_t i = 0; i < sizeof seen; i++) ok &= seen[i] == rounds;
    *(int *)out = ok;
    return NULL;
}

/* The locks are then mostly held, by a thread that the child does not have. */
static void a_fork_while_another_thread_loops(void **state) {
    (void)state;
    pthread_t thread;
    int ok = 0, children = 0;
    all_helpers_run();
    assert_int_equal(pthread_create(&thread, NULL, loop_until_stopped, &ok), 0);
    while (!atomic_load(&looping)) usleep(100);
    for (int round = 0; round < 50; round++) children += in_a_child(loops_of_a_child) == 0;
    atomic_store(&stop_looping, true);
    pthread_join(thread, NULL);
    assert_true(ok);
    assert_int_equal(children, 50);
}

int main(void) {
    setenv("MILLRACE_THREADS", "4", 1); /* more than one, on any machine */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_position_once),
        cmocka_unit_test(two_callers),
        cmocka_unit_test(a_loop_in_a_loop),
        cmocka_unit_test(a_child_has_a_pool_of_its_own),
        cmocka_unit_test(a_fork_while_another_thread_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
