/* Groups of races, on graphs and commands without a machine. Random programs of a few commands are run under every
 * order of their races. What a group comes to alone, combined with what the others come to, must be what all come
 * to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explore/groups.h"

enum { MOST_NODES = 10, MOST_BYTES = 8, MOST_RUNS = 1 << 12 };

typedef struct {
    uint32_t count;
    uint64_t before[MOST_NODES], races[MOST_NODES];
    group_touch touches[MOST_NODES][3];
    size_t touch_count[MOST_NODES];
    int op[MOST_NODES]; /* of random programs */
} sample;

static uint64_t random_state;

static uint32_t below(uint32_t count) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % count);
}

static groups groups_of(const sample *p) {
    groups g;
    race_graph graph = {p->count, 1, p->before, p->races};
    assert_null(groups_open(&g, &graph, 1));
    for (uint32_t n = 0; n < p->count; n++)
        assert_null(groups_pass(&g, n, n + 1, p->touches[n], p->touch_count[n]));
    return g;
}

static void touch(sample *p, uint32_t n, uint64_t first, uint64_t end, const char *how) {
    p->touches[n][p->touch_count[n]++] =
        (group_touch){0, first, end, strchr(how, 'r') != NULL, strchr(how, 'w') != NULL};
}

static void expect(const sample *p, uint32_t count, const uint32_t *expected) {
    groups g = groups_of(p);
    assert_int_equal(groups_number(&g), count);
    for (uint32_t n = 0; n < p->count; n++) assert_int_equal(g.of[n], expected[n]);
    groups_close(&g);
}

/* ---- by hand */

static void a_program_without_races_has_no_group(void **unused) {
    (void)unused;
    sample p = {.count = 2, .before = {0, 1}};
    expect(&p, 0, (const uint32_t[]){NO_GROUP, NO_GROUP});
}

static void two_races_apart_are_two_groups(void **unused) {
    (void)unused;
    sample p = {.count = 5, .races = {0, 1, 0, 4, 0}};
    expect(&p, 2, (const uint32_t[]){0, 0, 1, 1, NO_GROUP});
}

/* 0 | 3 and 1 | 2, with 0 -> 1 and 2 -> 3: that 3 comes before 0 and 1 before 2 is a cycle. */
static void races_that_could_make_a_cycle_are_one_group(void **unused) {
    (void)unused;
    sample p = {.count = 4, .before = {0, 1, 0, 4}, .races = {0, 0, 2, 1}};
    expect(&p, 1, (const uint32_t[]){0, 0, 0, 0});
    p.before[3] = 0;
    expect(&p, 2, (const uint32_t[]){0, 1, 1, 0});
}

static void a_command_that_reads_from_both_joins_them(void **unused) {
    (void)unused;
    sample p = {.count = 5, .before = {0, 0, 0, 0, 15}, .races = {0, 1, 0, 4, 0}};
    for (uint32_t n = 0; n < 4; n++) touch(&p, n, n / 2, n / 2 + 1, "w");
    expect(&p, 2, (const uint32_t[]){0, 0, 1, 1, NO_GROUP});
    touch(&p, 4, 0, 2, "r");
    expect(&p, 1, (const uint32_t[]){0, 0, 0, 0, NO_GROUP});
}

static void what_was_written_from_tainted_bytes_is_tainted(void **unused) {
    (void)unused;
    sample p = {.count = 7, .before = {0, 0, 0, 0, 15, 15, 63}, .races = {0, 1, 0, 4, 0, 0, 0}};
    for (uint32_t n = 0; n < 4; n++) touch(&p, n, n / 2, n / 2 + 1, "w");
    for (uint32_t n = 4; n < 6; n++) {
        touch(&p, n, n - 4, n - 3, "r");
        touch(&p, n, n, n + 1, "w");
    }
    touch(&p, 6, 4, 5, "r");
    expect(&p, 2, (const uint32_t[]){0, 0, 1, 1, NO_GROUP, NO_GROUP, NO_GROUP});
    touch(&p, 6, 5, 6, "r");
    expect(&p, 1, (const uint32_t[]){0, 0, 0, 0, NO_GROUP, NO_GROUP, NO_GROUP});
}

static void a_write_over_tainted_bytes_joins_both(void **unused) {
    (void)unused;
    sample p = {.count = 4, .before = {0, 0, 3, 3}, .races = {0, 1, 0, 4}};
    touch(&p, 0, 0, 4, "w");
    touch(&p, 1, 0, 4, "w");
    touch(&p, 2, 4, 6, "w");
    touch(&p, 3, 4, 6, "w");
    expect(&p, 2, (const uint32_t[]){0, 0, 1, 1});
    p.touches[3][0].first = 3;
    expect(&p, 1, (const uint32_t[]){0, 0, 0, 0});
}

static void a_command_asks_for_the_taint_of_bytes(void **unused) {
    (void)unused;
    sample p = {.count = 3, .races = {0, 1, 0}};
    touch(&p, 0, 0, 2, "w");
    touch(&p, 1, 0, 2, "w");
    touch(&p, 2, 2, 4, "w");
    groups g = groups_of(&p);
    group_touch tainted = {0, 1, 3, true, false}, clean = {0, 2, 4, true, false};
    assert_int_equal(groups_taint_of(&g, &tainted), g.of[0]);
    assert_int_equal(groups_taint_of(&g, &clean), NO_GROUP);
    groups_close(&g);
}

/* As a copy, whose source the host reads: that may race with one command, and the write with another one. */
static void the_nodes_of_one_command_are_joined(void **unused) {
    (void)unused;
    sample p = {.count = 4, .races = {0, 1, 0, 4}};
    groups g;
    assert_null(groups_open(&g, &(race_graph){p.count, 1, p.before, p.races}, 1));
    assert_null(groups_pass(&g, 1, 3, NULL, 0));
    assert_int_equal(groups_number(&g), 1);
    groups_close(&g);
}

/* ---- random programs */

/* Few values, so that groups also come to the same, and that something needs two of them. */
enum { ZERO, ONE, ANY_OF, ALL_OF, NOT, SOMETIMES, OPS };

static bool conflict(const sample *p, uint32_t a, uint32_t b) {
    for (size_t i = 0; i < p->touch_count[a]; i++)
        for (size_t k = 0; k < p->touch_count[b]; k++) {
            const group_touch *x = &p->touches[a][i], *y = &p->touches[b][k];
            if ((x->writes || y->writes) && x->first < y->end && y->first < x->end) return true;
        }
    return false;
}

static void make_random(sample *p) {
    *p = (sample){.count = 4 + below(MOST_NODES - 3)};
    for (uint32_t n = 0; n < p->count; n++) {
        p->op[n] = (int)below(OPS);
        for (uint32_t m = 0; m < n; m++)
            if (below(4) == 0) p->before[n] |= p->before[m] | (uint64_t)1 << m;
        uint32_t at = below(MOST_BYTES);
        touch(p, n, at, at + 1 + below(2 < MOST_BYTES - at ? 2 : 1), "w");
        for (uint32_t reads = below(3); p->op[n] > ONE && reads > 0; reads--) {
            at = below(MOST_BYTES);
            touch(p, n, at, at + 1, "r");
        }
        for (uint32_t m = 0; m < n; m++)
            if (!(p->before[n] >> m & 1) && conflict(p, m, n)) p->races[n] |= (uint64_t)1 << m;
    }
}

/* SOMETIMES writes only if what it reads says so, as a kernel may. */
static void carry_out(const sample *p, uint32_t n, uint8_t *bytes) {
    bool any = false, all = true;
    for (size_t i = 1; i < p->touch_count[n]; i++) {
        any |= bytes[p->touches[n][i].first];
        all &= bytes[p->touches[n][i].first];
    }
    if (p->op[n] == SOMETIMES && !any) return;
    bool value = p->op[n] == ONE || p->op[n] == SOMETIMES || (p->op[n] == ANY_OF && any) ||
                 (p->op[n] == ALL_OF && all) || (p->op[n] == NOT && !any);
    for (uint64_t i = p->touches[n][0].first; i < p->touches[n][0].end; i++) bytes[i] = value;
}

typedef struct {
    uint64_t outcomes[MOST_RUNS];
    size_t count, runs;
} outcomes;

static void note(outcomes *o, uint64_t outcome) {
    size_t i = 0;
    while (i < o->count && o->outcomes[i] != outcome) i++;
    if (i == o->count) o->outcomes[o->count++] = outcome;
}

/* By a set of edges: all that comes before. A cycle: nobody can go on. */
static void run(const sample *p, const uint64_t *edges, outcomes *out) {
    uint64_t done = 0, outcome;
    uint8_t bytes[MOST_BYTES] = {0};
    for (uint32_t went = 0, n = 0; went < p->count; went++) {
        for (n = 0; n < p->count; n++)
            if (!(done >> n & 1) && !(edges[n] & ~done)) break;
        if (n == p->count) return;
        done |= (uint64_t)1 << n;
        carry_out(p, n, bytes);
    }
    memcpy(&outcome, bytes, sizeof outcome);
    out->runs++;
    note(out, outcome);
}

/* All orders of the races of this group; the others as submitted. NO_GROUP: of all. False: too many. */
static bool run_all(const sample *p, const groups *g, uint32_t group, outcomes *out) {
    uint32_t pairs[MOST_NODES * MOST_NODES][2], count = 0;
    uint64_t submitted[MOST_NODES] = {0};
    out->count = out->runs = 0;
    for (uint32_t n = 0; n < p->count; n++) {
        submitted[n] = p->before[n];
        for (uint32_t m = 0; m < n; m++) {
            if (!(p->races[n] >> m & 1)) continue;
            if (group != NO_GROUP && g->of[n] != group) {
                submitted[n] |= (uint64_t)1 << m;
                continue;
            }
            pairs[count][0] = m;
            pairs[count++][1] = n;
        }
    }
    if (count > 12) return false;
    for (uint32_t choice = 0; choice < 1u << count; choice++) {
        uint64_t edges[MOST_NODES];
        memcpy(edges, submitted, sizeof edges);
        for (uint32_t i = 0; i < count; i++) {
            bool second = choice >> i & 1;
            edges[pairs[i][!second]] |= (uint64_t)1 << pairs[i][second];
        }
        run(p, edges, out);
    }
    return true;
}

/* The outcome of one group is laid over each outcome so far, where it differs from that of the submitted order. */
static void combine(outcomes *all, const outcomes *one, uint64_t base) {
    static outcomes before;
    before = *all;
    all->count = 0;
    for (size_t i = 0; i < before.count; i++)
        for (size_t k = 0; k < one->count; k++)
            note(all, before.outcomes[i] ^ base ^ one->outcomes[k]);
    all->runs *= one->runs;
    assert_int_equal(all->count, before.count * one->count);
}

static void groups_combine(void **unused) {
    (void)unused;
    static outcomes all, one, combined;
    uint64_t programs = getenv("MILLRACE_LONG") ? 300000 : 20000, with_groups = 0;
    for (uint64_t seed = 1; seed <= programs; seed++) {
        static sample p;
        random_state = seed * 7919;
        make_random(&p);
        groups g = groups_of(&p);
        uint32_t count = groups_number(&g);
        if (count > 1 && run_all(&p, &g, NO_GROUP, &all)) {
            combined = (outcomes){.outcomes = {all.outcomes[0]}, .count = 1, .runs = 1};
            for (uint32_t i = 0; i < count; i++) {
                assert_true(run_all(&p, &g, i, &one));
                combine(&combined, &one, all.outcomes[0]);
            }
            with_groups++;
            assert_int_equal(combined.runs, all.runs);
            assert_int_equal(combined.count, all.count);
            for (size_t i = 0; i < all.count; i++) note(&combined, all.outcomes[i]);
            assert_int_equal(combined.count, all.count);
        }
        groups_close(&g);
    }
    printf("%llu programs, %llu of them with several groups\n", (unsigned long long)programs,
           (unsigned long long)with_groups);
    assert_true(with_groups > programs / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_races_has_no_group),
        cmocka_unit_test(two_races_apart_are_two_groups),
        cmocka_unit_test(races_that_could_make_a_cycle_are_one_group),
        cmocka_unit_test(a_command_that_reads_from_both_joins_them),
        cmocka_unit_test(what_was_written_from_tainted_bytes_is_tainted),
        cmocka_unit_test(a_write_over_tainted_bytes_joins_both),
        cmocka_unit_test(a_command_asks_for_the_taint_of_bytes),
        cmocka_unit_test(the_nodes_of_one_command_are_joined),
        cmocka_unit_test(groups_combine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
