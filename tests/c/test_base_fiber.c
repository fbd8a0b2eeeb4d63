/* Fibers: stacks that are left and entered again, in any order, from any depth of calls. The file under test is
 * included, so that the test knows which form of the switch it has. */
#include "../../src/base/fiber.c"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define FIBERS 40
#define LEAVES 300

typedef struct {
    mr_fiber *fiber;
    unsigned number;
    uint64_t sum, left;
    double product;
} worker;

static unsigned random_state = 1;

static unsigned draw(unsigned below) {
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* Values of a fiber are in registers and frames while others run. */
static double descend(worker *w, unsigned depth, double value) {
    uint64_t kept = w->left * 31 + depth;
    char frame[256];
    memset(frame, (int)(w->number + depth), sizeof frame);
    if (depth) value = descend(w, depth - 1, value + 0.5) + 0.25;
    mr_fiber_leave(w->fiber);
    w->left++;
    w->sum += kept;
    for (size_t i = 0; i < sizeof frame; i++)
        assert_int_equal((unsigned char)frame[i], (unsigned char)(w->number + depth));
    return value;
}

static void work(void *context) {
    worker *w = context;
    while (w->left < LEAVES) {
        double value = descend(w, (w->number + (unsigned)w->left) % 20, w->number);
        w->product += value;
    }
}

/* By itself, or beside others. */
static void run_all(worker *workers, bool together) {
    memset(workers, 0, FIBERS * sizeof *workers);
    for (unsigned i = 0; i < FIBERS; i++) {
        workers[i].number = i;
        workers[i].fiber = mr_fiber_new(work, &workers[i]);
        assert_non_null(workers[i].fiber);
    }
    for (unsigned left = FIBERS, next = 0; left;) {
        unsigned i = together ? draw(FIBERS) : next;
        if (!workers[i].fiber) continue;
        if (!mr_fiber_enter(workers[i].fiber)) continue;
        mr_fiber_free(workers[i].fiber);
        workers[i].fiber = NULL;
        left--;
        next++;
    }
}

static void fibers_do_not_touch_each_other(void **state) {
    (void)state;
    static worker alone[FIBERS], beside[FIBERS];
    run_all(alone, false);
    run_all(beside, true);
    for (unsigned i = 0; i < FIBERS; i++) {
        assert_true(alone[i].left >= LEAVES);
        assert_int_equal(alone[i].left, beside[i].left);
        assert_int_equal(alone[i].sum, beside[i].sum);
        assert_true(alone[i].product == beside[i].product);
    }
}

static void enter_another(void *context) {
    worker *w = context;
    worker inner = {.number = 3};
    inner.fiber = mr_fiber_new(work, &inner);
    assert_non_null(inner.fiber);
    while (!mr_fiber_enter(inner.fiber)) mr_fiber_leave(w->fiber);
    mr_fiber_free(inner.fiber);
    w->sum = inner.left;
}

static void a_fiber_may_enter_another(void **state) {
    (void)state;
    worker w = {0};
    w.fiber = mr_fiber_new(enter_another, &w);
    assert_non_null(w.fiber);
    while (!mr_fiber_enter(w.fiber)) {}
    mr_fiber_free(w.fiber);
    assert_true(w.sum >= LEAVES);
}

static void one_that_was_never_entered_is_freed(void **state) {
    (void)state;
    mr_fiber_free(mr_fiber_new(work, NULL));
    mr_fiber_free(NULL);
}

#ifndef MR_SWAPS

static void block(void *context) {
    sigset_t set;
    mr_fiber **self = context;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    mr_fiber_leave(*self);
    sigprocmask(SIG_BLOCK, &set, NULL);
    mr_fiber_leave(*self);
}

/* The mask is the thread's. A switch that kept one for each fiber would need a system call each time. */
static void a_switch_leaves_the_signal_mask(void **state) {
    (void)state;
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    mr_fiber *fiber;
    fiber = mr_fiber_new(block, &fiber);
    assert_non_null(fiber);
    assert_false(mr_fiber_enter(fiber));
    assert_false(mr_fiber_enter(fiber));
    sigprocmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&after, SIGUSR1));
    assert_true(mr_fiber_enter(fiber));
    sigprocmask(SIG_SETMASK, &before, NULL);
    mr_fiber_free(fiber);
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fibers_do_not_touch_each_other),
        cmocka_unit_test(a_fiber_may_enter_another),
        cmocka_unit_test(one_that_was_never_entered_is_freed),
#ifndef MR_SWAPS
        cmocka_unit_test(a_switch_leaves_the_signal_mask),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
