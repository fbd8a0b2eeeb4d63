/* Does the hazard checker take each rule of order from its row? Each row is broken in turn; the simple checker of
 * naive_hazard.c must then judge some random program differently. */
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
        {MR_ORDER_CALL, "the host's clock is everybody's"},
        {MR_ORDER_TO_HOST, "likewise"},
        {MR_ORDER_TO_STREAM, "an actor's commands are numbered"},
        {MR_ORDER_TO_DEVICE, "likewise"},
        {MR_ORDER_EARLIER, "a staged source is read by the host, behind the stream: touch.c"},
        {MR_ORDER_MEET, "the programs have one device: test_order_meetings.c"},
        {MR_ORDER_ROWS, NULL}};
    assert_int_equal(order_unnoticed(MR_GUARANTEED, inherent, notices), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
