/* Does the hazard checker take each rule of order from its row, and what copies do to the host from their rules? Each
 * row, and each fact of a kind of copy, is broken in turn; the simple checker of naive_hazard.c must then judge some
 * random program differently. */
#include "order_mutants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hazard/explain.h"
#include "naive_hazard.c"
#include "hazard_programs.c"

static bool notices(void) {
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        static sample_program p;
        program_random(seed, &p);
        if (program_differs(&p)) return true;
    }
    return false;
}

static void every_row_counts(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_CALL, "the host's clock is everybody's", EVERY_MUTANT},
        {MR_ORDER_TO_HOST, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_STREAM, "an actor's commands are numbered", EVERY_MUTANT},
        {MR_ORDER_TO_DEVICE, "likewise", EVERY_MUTANT},
        {MR_ORDER_EARLIER, "a staged source is read by the host, behind the stream: touch.c",
         EVERY_MUTANT},
        {MR_ORDER_MEET, "the programs have one device: test_order_meetings.c", EVERY_MUTANT},
        {MR_ORDER_OWNER, "the programs' memory has no stream: test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_ITSELF, "it is asked with this fact alone", ONLY_WIDENED},
        {MR_ORDER_STREAM, "allocations are not asked: hazard/find/order.c", ONLY_BOUND},
        {MR_ORDER_GATHER, "likewise", ONLY_BOUND},
        {MR_ORDER_RELEASE, "likewise", ONLY_BOUND},
        {MR_ORDER_BEHIND_WALL, "likewise", ONLY_BOUND},
        {MR_ORDER_TO_GATHERED, "frees are not asked", ONLY_BOUND},
        {MR_ORDER_TO_GATHERED, "clocks are merged", ONLY_KEPT},
        {MR_ORDER_TO_RECORD, "a snapshot is of one record", ONLY_KEPT},
        {MR_ORDER_TO_RELEASED, "likewise", ONLY_BOUND},
        {MR_ORDER_ROWS, NULL, 0}};
    assert_int_equal(order_unnoticed(MR_GUARANTEED, inherent, notices), 0);
}

static void every_fact_of_a_copy_counts(void **unused) {
    (void)unused;
    enum {
        UNASKED = 1 << AFTER_STREAM,      /* touch.c reads a staged source behind the stream */
        AT_ONCE = UNASKED | 1 << IS_OPEN, /* nothing is guaranteed of it anyway */
        OPEN = UNASKED | 1 << READS_SOURCE | 1 << UNTIL_DONE /* neither is guaranteed */
    };
    static const unsigned same[ORDER_COPIES] = {[COPY_D2D] = AT_ONCE,
                                                [COPY_PEER] = AT_ONCE,
                                                [COPY_H2H] = UNASKED,
                                                [COPY_TO_PINNED] = UNASKED,
                                                [COPY_TO_PINNED_ASYNC] = AT_ONCE,
                                                [COPY_TO_PAGEABLE] = UNASKED,
                                                [COPY_TO_PAGEABLE_ASYNC] = OPEN,
                                                [COPY_FROM_PINNED] = UNASKED,
                                                [COPY_FROM_PINNED_ASYNC] = AT_ONCE,
                                                [COPY_FROM_PAGEABLE] = UNASKED,
                                                [COPY_FROM_PAGEABLE_ASYNC] = OPEN};
    assert_int_equal(order_copies_unnoticed(same, notices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_counts),
                                       cmocka_unit_test(every_fact_of_a_copy_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
