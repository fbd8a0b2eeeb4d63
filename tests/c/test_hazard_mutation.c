/* Is the differential test able to see a mistake? The checker is compiled here once more with a switch in
 * each of its rules (src/hazard/mutate.h); every rule is broken in turn, and some program must differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MR_HAZARD_MUTATE
#define INDEX_FROM  2 /* so that small programs use the index, too, */
#define CLOCK_DELTA 2 /* and clocks with bases */
#include "../../src/hazard/find/advice.c"
#include "../../src/hazard/find/check.c"
#include "../../src/hazard/clock.c"
#include "../../src/hazard/explain/fix.c"
#include "../../src/hazard/find/function.c"
#include "../../src/hazard/find/hazard.c"
#include "../../src/hazard/find/history.c"
#include "../../src/hazard/find/index.c"
#include "../../src/hazard/find/lifetime.c"
#include "../../src/hazard/log.c"
#include "../../src/hazard/find/merge.c"
#include "../../src/hazard/names.c"
#include "../../src/hazard/find/order.c"
#include "../../src/hazard/explain/reason.c"
#include "../../src/hazard/find/report.c"
#include "../../src/hazard/rules.c"
#include "../../src/hazard/find/touch.c"
#include "../../src/hazard/find/unset.c"
#include "../../src/hazard/view.c"
#include "../../src/hazard/explain/why.c"
#include "../../src/hazard/explain/write.c"

#include "naive_hazard.c"
#include "hazard_programs.c"

int mr_hazard_mutant;

static const char *const names[] = {"none",
#define X(name) #name,
                                    MR_MUTANT_LIST(X)
#undef X
};

static uint64_t programs(void) {
    const char *text = getenv("MR_HAZARD_PROGRAMS");
    return text                       ? strtoull(text, NULL, 10)
           : getenv("MILLRACE_LONG")  ? 3000
           : getenv("MILLRACE_SHORT") ? 500
                                      : 1000;
}

static void without_a_mutant_nothing_differs(void **unused) {
    (void)unused;
    mr_hazard_mutant = MR_MUTANT_NONE;
    for (uint64_t seed = 1000000; seed < 1000000 + programs(); seed++) {
        static sample_program p;
        program_random(seed, &p);
        if (!program_differs(&p)) continue;
        program_shrink(&p);
        printf("-- seed %llu: %s\n", (unsigned long long)seed, program_differs(&p));
        program_print(&p);
        fail_msg("the verdicts differ");
    }
}

/* A program that differs without the mutant, too, has not noticed it. */
static bool notices(const sample_program *p) {
    int mutant = mr_hazard_mutant;
    if (!program_differs(p)) return false;
    mr_hazard_mutant = MR_MUTANT_NONE;
    bool differs_anyway = program_differs(p) != NULL;
    mr_hazard_mutant = mutant;
    return !differs_anyway;
}

static void every_broken_rule_is_noticed(void **unused) {
    (void)unused;
    int missed = 0;
    for (mr_hazard_mutant = 1; mr_hazard_mutant < MR_MUTANT_COUNT; mr_hazard_mutant++) {
        uint64_t seed = 1, last = 20000;
        for (; seed <= last; seed++) {
            static sample_program p;
            program_random(seed, &p);
            if (notices(&p)) break;
        }
        if (seed > last) missed++;
        printf("%-20s %s", names[mr_hazard_mutant], seed > last ? "NOT NOTICED\n" : "noticed");
        if (seed <= last) printf(" by program %llu\n", (unsigned long long)seed);
    }
    mr_hazard_mutant = MR_MUTANT_NONE;
    assert_int_equal(missed, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_mutant_nothing_differs),
        cmocka_unit_test(every_broken_rule_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
