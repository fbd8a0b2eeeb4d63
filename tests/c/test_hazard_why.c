/* mr.hazard.why against the simple checker's graph: of random programs, every pair of operations that it says
 * to be ordered is ordered, and the other way round. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "naive_hazard.c"
#include "hazard_programs.c"

static sample_program program;
static naive_verdict verdict;
static int compared, ordered_pairs;

static bool is_operation(const sample_step *s) {
    return on_stream(s) || (by_host(s) && s->kind != STEP_RUN);
}

static void compare(mr_hazard *hazard, const mr_machine *machine) {
    for (uint64_t second = 1; second < machine->counts.next_seq; second++) {
        for (uint64_t first = 1; first <= second; first++) {
            int i = step_of_seq[first], j = step_of_seq[second];
            const sample_step *a = &program.step[i], *b = &program.step[j];
            if (!is_operation(a) || !is_operation(b)) continue;
            if (a->kind == STEP_FREE || b->kind == STEP_ALLOC) continue;
            bool announced = true; /* a query of an event never recorded is not */
            for (int k = 0; k < 2; k++) {
                int at = k ? j : i;
                if (program.step[at].kind == STEP_EVENT_QUERY && bound_record(&program, at) < 0)
                    announced = false;
            }
            if (!announced) continue;
            mr_buffer text = {0};
            bool ordered = mr_hazard_why(hazard, first, second, &text);
            if (ordered != verdict.before[i][j]) {
                program_print(&program);
                fail_msg("lines %d and %d: %s", i + 1, j + 1, text.data);
            }
            mr_buffer_free(&text);
            compared++;
            ordered_pairs += ordered;
        }
    }
}

static void why_agrees_with_the_graph(void **unused) {
    (void)unused;
    at_end = compare;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        program_random(seed, &program);
        drop_silent_functions(&program);
        naive_check(&program, &verdict);
        run_program(&program);
    }
    assert_true(compared > 10000 && ordered_pairs > compared / 20);
    assert_true(ordered_pairs < compared * 19 / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(why_agrees_with_the_graph)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
