/* The exploration against every interleaving, on random programs: as many schedules as classes,
 * the same outcomes, and a hazard exactly where there is more than one class. MR_EXPLORE_PROGRAMS
 * sets how many (4000; 20000 in `make check-long`; nightly 1000000), MR_EXPLORE_SEED where they
 * begin. A program that differs is shrunk and printed. */
#include <stdlib.h>

#include "naive_hazard.c"
#include "virtual_fixture.h"
#include "explore_programs.c"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void shrink(sample_program *p) {
    for (int i = p->step_count; i-- > 0;) {
        sample_step kept = p->step[i];
        p->step[i] = (sample_step){.kind = STEP_NOTHING};
        if (!explore_differs(p)) p->step[i] = kept;
    }
}

static void schedules_are_classes(void **unused) {
    (void)unused;
    uint64_t count = setting("MR_EXPLORE_PROGRAMS", getenv("MILLRACE_LONG") ? 20000 : 1500),
             first = setting("MR_EXPLORE_SEED", 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        static sample_program p;
        explore_random_program(seed, &p);
        const char *text = explore_differs(&p);
        if (!text) continue;
        printf("-- seed %llu: %s\n", (unsigned long long)seed, text);
        shrink(&p);
        text = explore_differs(&p);
        printf("-- shrunk: %s\n", text ? text : "(not any more)");
        explore_print(&p);
        fail_msg("the exploration differs from all interleavings");
    }
    printf("%llu programs, %llu with a hazard, %llu proved, %llu combined, %llu schedules\n",
           (unsigned long long)compared, (unsigned long long)with_race, (unsigned long long)proved,
           (unsigned long long)combined, (unsigned long long)schedules_of_all);
    assert_true(count < 100 || proved > count / 50);
    assert_true(count < 100 || (with_race > count / 20 && compared - with_race > count / 20));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(schedules_are_classes, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
