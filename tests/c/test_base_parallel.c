/* The pool: every position is handled once, whatever the range and the grain, also from two threads at
 * a time and from inside a loop. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>

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

int main(void) {
    setenv("MILLRACE_THREADS", "4", 1); /* more than one, on any machine */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_position_once),
        cmocka_unit_test(two_callers),
        cmocka_unit_test(a_loop_in_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
