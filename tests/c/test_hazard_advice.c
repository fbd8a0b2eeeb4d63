/* Following advice causes no hazard. Each line of a random program that is called superfluous is
 * taken out; a device synchronise is replaced by that of the one stream that is named. The simple
 * checker must then find nothing new. Some of the programs are loops. MR_HAZARD_PROGRAMS sets how
 * many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "hazard/state.h"

#include "naive_hazard.c"
#include "hazard_programs.c"

enum { MOST_ADVICE = 64 };

static struct {
    mr_command_id kind;
    int line, stream; /* `stream`: a variable */
} advice[MOST_ADVICE];
static int advice_count, given[4];
static sample_program program;

static bool is_replaced(int stream) {
    for (int i = 0; i < program.step_count; i++)
        if (program.step[i].kind == STEP_REPLACE_STREAM && program.step[i].stream == stream)
            return true;
    return false;
}

static void collect(mr_hazard *hazard, const mr_machine *machine) {
    (void)machine;
    advice_count = 0;
    mr_hazard_finish(hazard);
    for (size_t i = 0; i < hazard->advice.places.count && advice_count < MOST_ADVICE; i++) {
        const advice_place *p = &hazard->advice.places.items[i];
        /* Streams are numbered from 1 in the order of their variables; a new one goes on behind. */
        int stream = (int)p->producer - 1;
        if (!p->told) continue;
        if (p->kind == MR_COMMAND_DEVICE_SYNC &&
            (stream >= program.stream_count || is_replaced(stream)))
            continue;
        advice[advice_count].kind = p->kind;
        advice[advice_count].line = p->where.line;
        advice[advice_count++].stream = stream;
    }
}

static void follow(sample_program *p, int which) {
    for (int i = 0; i < p->step_count; i++) {
        sample_step *s = &p->step[i];
        if (line_of(i) != advice[which].line || s->kind > STEP_FREE) continue;
        bool is_sync = s->kind == STEP_STREAM_SYNC || s->kind == STEP_EVENT_SYNC ||
                       s->kind == STEP_DEVICE_SYNC;
        if (is_sync && advice[which].kind == MR_COMMAND_STREAM_SYNC) {
            s->kind = STEP_NOTHING;
            continue;
        }
        if (command_kinds[s->kind] != advice[which].kind) continue;
        if (s->kind == STEP_DEVICE_SYNC) {
            s->kind = STEP_STREAM_SYNC;
            s->stream = advice[which].stream;
        } else if (s->kind == STEP_WAIT || s->kind == STEP_RECORD) {
            s->kind = STEP_NOTHING;
        }
    }
}

/* Is race (i, j) of after one that there was before, but for an access that comes between in order? The
 * checker tells of the nearest. */
static bool was_there(const naive_verdict *before, const naive_verdict *after, int i, int j) {
    bool runs_late =
        program.step[i].kind == STEP_HOST_FUNCTION || program.step[j].kind == STEP_HOST_FUNCTION;
    if (before->race[i][j]) return true;
    for (int k = 0; k < MOST_STEPS; k++) {
        if (after->before[i][k] && (before->race[k][j] || (runs_late && before->race[j][k])))
            return true;
        if (runs_late && after->before[j][k] && before->race[i][k]) return true;
    }
    return false;
}

static bool free_was_there(const naive_verdict *before, const naive_verdict *after, int i, int j) {
    for (int k = 0; k < j; k++)
        if ((k == i || after->before[i][k]) && before->free_race[k][j]) return true;
    return false;
}

/* An access that races anyway is not held against the allocation. */
static bool alloc_was_there(const naive_verdict *before, int i, int j) {
    for (int k = 0; k < MOST_STEPS; k++)
        if (before->race[k][j] || before->race[j][k]) return true;
    return before->alloc_race[i][j];
}

static const char *new_hazard(const naive_verdict *before, const naive_verdict *after, int *i,
                              int *j) {
    for (*j = 0; *j < MOST_STEPS; ++*j) {
        for (*i = 0; *i < *j; ++*i) {
            if (after->race[*i][*j] && !was_there(before, after, *i, *j)) return "race";
            if (after->free_race[*i][*j] && !free_was_there(before, after, *i, *j))
                return "use after free";
            if (after->alloc_race[*i][*j] && !alloc_was_there(before, *i, *j))
                return "use before allocation";
        }
    }
    return NULL;
}

/* The steps of the first third once more, and again. */
static void make_loop(sample_program *p) {
    lines = p->step_count / 3;
    for (int i = lines; i < p->step_count; i++) p->step[i] = p->step[i - lines];
    program_tidy(p);
}

/* Devices are synchronised more often than the usual program does it. */
static void synchronise_devices(sample_program *p) {
    for (int i = 0; i < p->step_count; i++)
        if (p->step[i].kind == STEP_STREAM_SYNC || p->step[i].kind == STEP_EVENT_SYNC ||
            p->step[i].kind == STEP_STREAM_QUERY)
            p->step[i].kind = STEP_DEVICE_SYNC;
    program_tidy(p);
}

static void following_advice_makes_no_hazard(void **unused) {
    (void)unused;
    const char *setting = getenv("MR_HAZARD_PROGRAMS");
    uint64_t count = setting ? strtoull(setting, NULL, 10) : 1500;
    with_advice = true;
    at_end = collect;
    for (uint64_t seed = 1; seed <= count; seed++) {
        static naive_verdict before, after;
        lines = 0;
        program_random(seed, &program);
        if (seed % 4 >= 2) synchronise_devices(&program);
        if (seed % 2) make_loop(&program);
        drop_silent_functions(&program);
        naive_check(&program, &before);
        run_program(&program);
        for (int k = 0; k < advice_count; k++) {
            sample_program followed = program;
            int i, j;
            follow(&followed, k);
            naive_check(&followed, &after);
            const char *what = new_hazard(&before, &after, &i, &j);
            given[advice[k].kind == MR_COMMAND_WAIT          ? 0
                  : advice[k].kind == MR_COMMAND_RECORD      ? 1
                  : advice[k].kind == MR_COMMAND_DEVICE_SYNC ? 2
                                                             : 3]++;
            if (!what) continue;
            program_print(&program);
            fail_msg("seed %llu: without line %d (of %d in the loop) a %s, of lines %d and %d",
                     (unsigned long long)seed, advice[k].line, lines, what, i + 1, j + 1);
        }
    }
    printf("%d waits, %d records, %d device synchronises, %d synchronises\n", given[0], given[1],
           given[2], given[3]);
    assert_true(given[0] > 10 && given[1] > 10 && given[2] > 10 && given[3] > 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(following_advice_makes_no_hazard)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
