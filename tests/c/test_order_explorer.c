/* Does the explorer take each rule of order from its row, and what copies do to the host from their rules? Each row,
 * and each fact of a kind of copy, is broken in turn. The judge goes through every interleaving of random programs, and
 * must then find other classes or outcomes. */
#include "order_mutants.h"

#include <stdlib.h>

#include "naive_hazard.c"
#include "virtual_fixture.h"
#include "explore_programs.c"

static bool differs(uint64_t seed) {
    static sample_program p;
    explore_random_program(seed, &p);
    return explore_differs(&p);
}

static bool notices(void) {
    return order_any_seed(3000, differs);
}

static void every_row_counts(void **unused) {
    (void)unused;
    static const order_inherent inherent[] = {
        {MR_ORDER_REUSE, "the search decides whose memory an allocation gets", EVERY_MUTANT},
        {MR_ORDER_TO_FREED, "the programs allocate nothing: test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_USERS, "likewise", EVERY_MUTANT},
        {MR_ORDER_OWNER, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_DEVICE, "a device is all its streams", EVERY_MUTANT},
        {MR_ORDER_BEHIND_WALL, "the programs have one device: test_order_explorer_asked.c",
         EVERY_MUTANT},
        {MR_ORDER_MEET_WALL, "likewise", EVERY_MUTANT},
        {MR_ORDER_MEET_WALLS, "likewise", EVERY_MUTANT},
        {MR_ORDER_TO_WALL, "likewise", EVERY_MUTANT},
        {MR_ORDER_EARLIER, "the programs leave it out: test_order_explorer_asked.c", EVERY_MUTANT},
        {MR_ORDER_EARLIER_BLOCKING, "likewise", EVERY_MUTANT},
        {MR_ORDER_SYNC_BLOCKING, "likewise", EVERY_MUTANT},
        {MR_ORDER_GIVE_BACK, "likewise: test_order_memory.c", EVERY_MUTANT},
        {MR_ORDER_MEET, "the virtual GPU does more: MEET_ALL", EVERY_MUTANT},
        {MR_ORDER_MEET_ALL, "the programs have one device: test_order_explorer_asked.c",
         EVERY_MUTANT},
        {MR_ORDER_TO_RECORD, "few programs record twice: test_order_explorer_asked.c", ONLY_KEPT},
        {MR_ORDER_TO_GATHERED, "what is gathered is the union of streams", ONLY_KEPT},
        {MR_ORDER_ITSELF, "it is asked with this fact alone", ONLY_WIDENED},
        {MR_ORDER_ROWS, NULL, 0}};
    assert_int_equal(order_unnoticed(MR_ALLOCATOR, inherent, notices), 0);
}

static void every_fact_of_a_copy_counts(void **unused) {
    (void)unused;
    enum {
        UNASKED = 1 << AFTER_STREAM | 1 << IS_OPEN, /* test_order_explorer_asked.c */
        LEFT_OUT = (1 << COPY_FACTS) - 1 /* the programs leave out what R23 leaves open */
    };
    static const unsigned same[ORDER_COPIES] = {[COPY_D2D] = UNASKED,
                                                [COPY_PEER] = LEFT_OUT, /* they have one device */
                                                [COPY_H2H] = UNASKED,
                                                [COPY_TO_PINNED] = UNASKED,
                                                [COPY_TO_PINNED_ASYNC] = UNASKED,
                                                [COPY_TO_PAGEABLE] = UNASKED,
                                                [COPY_TO_PAGEABLE_ASYNC] = LEFT_OUT,
                                                [COPY_FROM_PINNED] = UNASKED,
                                                [COPY_FROM_PINNED_ASYNC] = UNASKED,
                                                [COPY_FROM_PAGEABLE] = UNASKED,
                                                [COPY_FROM_PAGEABLE_ASYNC] = LEFT_OUT};
    assert_int_equal(order_copies_unnoticed(same, notices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_counts, setup, teardown),
        cmocka_unit_test_setup_teardown(every_fact_of_a_copy_counts, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
