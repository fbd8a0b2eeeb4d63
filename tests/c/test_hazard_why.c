/* mr.hazard.why against the simple checker's graph: of random programs, every pair of operations that it says
 * to be ordered is ordered, and the other way round. Then each row of src/order, and each fact of a kind of copy, is
 * broken in turn, and the graph must contradict it. */
#include "order_mutants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hazard/explain.h"
#include "naive_hazard.c"
#include "hazard_programs.c"

static sample_program program;
static naive_verdict verdict;
static int compared, ordered_pairs;
/* The steps of the first pair that they judge differently; -1: there is none. */
static int differ[2];

static bool is_operation(const sample_step *s) {
    return on_stream(s) || (by_host(s) && s->kind != STEP_RUN);
}

/* The question about a free is what comes before the reuse of its memory. */
static bool is_ordered(int i, int j) {
    return program.step[j].kind == STEP_FREE ? free_covers(&program, &verdict, i, j)
                                             : verdict.before[i][j];
}

static void compare(mr_hazard *hazard, const mr_machine *machine) {
    for (uint64_t second = 1; second < machine->counts.next_seq; second++) {
        for (uint64_t first = 1; first <= second; first++) {
            int i = step_of_seq[first], j = step_of_seq[second];
            const sample_step *a = &program.step[i], *b = &program.step[j];
            if (!is_operation(a) || !is_operation(b)) continue;
            if (b->kind == STEP_ALLOC) continue;
            bool announced = true; /* a query of an event never recorded is not */
            for (int k = 0; k < 2; k++) {
                int at = k ? j : i;
                if (program.step[at].kind == STEP_EVENT_QUERY && bound_record(&program, at) < 0)
                    announced = false;
            }
            if (!announced) continue;
            if (differ[0] >= 0) return;
            mr_buffer text = {0};
            bool ordered = mr_hazard_why(hazard, first, second, &text);
            mr_buffer_free(&text);
            if (ordered != is_ordered(i, j) && differ[0] < 0) differ[0] = i, differ[1] = j;
            compared++;
            ordered_pairs += ordered;
        }
    }
}

static bool disagrees(uint64_t seed) {
    differ[0] = differ[1] = -1;
    at_end = compare;
    program_random(seed, &program);
    drop_silent_functions(&program);
    naive_check(&program, &verdict);
    naive_order_frees(&program, &verdict);
    run_program(&program);
    return differ[0] >= 0;
}

static void why_agrees_with_the_graph(void **unused) {
    (void)unused;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        if (!disagrees(seed)) continue;
        program_print(&program);
        fail_msg("lines %d and %d: the graph says %s", differ[0] + 1, differ[1] + 1,
                 is_ordered(differ[0], differ[1]) ? "ordered" : "not ordered");
    }
    assert_true(compared > 10000 && ordered_pairs > compared / 20);
    assert_true(ordered_pairs < compared * 19 / 20);
}

static bool notices(void) {
    return order_any_seed(400, disagrees);
}

static void every_row_counts(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_TO_RECORD, "a line of the log names the record that it is bound to",
         EVERY_MUTANT},
        {MR_ORDER_MEET, "the programs have no collectives: test_order_meetings.c", EVERY_MUTANT},
        {MR_ORDER_OWNER, "the programs' memory has no stream: tests/lua/hazard_why.lua",
         EVERY_MUTANT},
        {MR_ORDER_EARLIER, "only staged copies are asked", ONLY_WIDENED},
        {MR_ORDER_CALL, "what comes after an allocation comes after the host", ONLY_BOUND},
        {MR_ORDER_STREAM, "and after what its stream had before", ONLY_BOUND},
        {MR_ORDER_BEHIND_WALL, "shows only between two such copies of three devices", ONLY_BOUND},
        {MR_ORDER_TO_GATHERED, "what a free comes after is gathered, too", ONLY_BOUND},
        {MR_ORDER_TO_DEVICE, "and is in the device", ONLY_BOUND},
        {MR_ORDER_TO_GATHERED, "the search goes through all lines", ONLY_KEPT},
        {MR_ORDER_TO_DEVICE, "likewise", ONLY_KEPT},
        {MR_ORDER_ROWS, NULL, 0}};
    assert_int_equal(order_unnoticed(MR_GUARANTEED, inherent, notices), 0);
}

static void every_fact_of_a_copy_counts(void **unused) {
    (void)unused;
    enum {
        UNASKED = 1 << AFTER_STREAM,        /* the row EARLIER says it */
        AT_ONCE = UNASKED | 1 << IS_OPEN,   /* nothing is guaranteed of it anyway */
        STAGED = UNASKED | 1 << UNTIL_DONE, /* the host's part is what orders */
        OPEN = STAGED | 1 << READS_SOURCE   /* neither is guaranteed */
    };
    static const unsigned same[ORDER_COPIES] = {[COPY_D2D] = AT_ONCE,
                                                [COPY_PEER] = AT_ONCE,
                                                [COPY_H2H] = UNASKED,
                                                [COPY_TO_PINNED] = UNASKED,
                                                [COPY_TO_PINNED_ASYNC] = AT_ONCE,
                                                [COPY_TO_PAGEABLE] = UNASKED,
                                                [COPY_TO_PAGEABLE_ASYNC] = AT_ONCE | OPEN,
                                                [COPY_FROM_PINNED] = UNASKED,
                                                [COPY_FROM_PINNED_ASYNC] = AT_ONCE,
                                                [COPY_FROM_PAGEABLE] = STAGED,
                                                [COPY_FROM_PAGEABLE_ASYNC] = OPEN};
    assert_int_equal(order_copies_unnoticed(same, notices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(why_agrees_with_the_graph),
                                       cmocka_unit_test(every_row_counts),
                                       cmocka_unit_test(every_fact_of_a_copy_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
