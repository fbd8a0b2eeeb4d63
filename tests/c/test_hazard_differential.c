/* The checker against a simple one on random programs, in error mode too. MR_HAZARD_PROGRAMS sets how many (1000;
 * 3000 in `make check-long`), MR_HAZARD_SEED where they begin. A program on which they differ is shrunk and printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "naive_hazard.c"
#include "hazard_programs.c"

static uint64_t setting(const char *name, uint64_t otherwise) {
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

static void verdicts_are_equal(void **unused) {
    (void)unused;
    uint64_t count = setting("MR_HAZARD_PROGRAMS", getenv("MILLRACE_LONG") ? 3000 : 1000),
             first = setting("MR_HAZARD_SEED", 1);
    uint64_t races = 0, clean = 0;
    for (uint64_t seed = first; seed < first + count; seed++) {
        static sample_program p;
        program_random(seed, &p);
        const char *text = program_differs(&p);
        races += pair_count > 0;
        clean += pair_count == 0;
        if (!text) continue;
        program_shrink(&p);
        text = program_differs(&p);
        printf("-- seed %llu: %s\n", (unsigned long long)seed, text ? text : "(not any more)");
        program_print(&p);
        fail_msg("the verdicts differ");
    }
    printf("%llu programs, %llu of them with a hazard\n", (unsigned long long)count,
           (unsigned long long)races);
    assert_true(count < 100 ||
                (races > count / 20 && clean > count / 20)); /* both verdicts are tried */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(verdicts_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
