/* Operations that can be carried out next, on random orders of up to 200 nodes. They must come one after the other as
 * by a scan that asks each node whether all before it is taken. The sets after decisions are compared with a transitive
 * closure. The differential with all interleavings cannot have programs of that size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "explore/ready.h"

enum { MOST_NODES = 200, LANES = 4, ROUNDS = 100 };

static uint64_t random_state = 1;

static uint32_t below(uint32_t count) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % count);
}

/* Nodes without items: each enters after some earlier ones, or a decision puts it before one. */
static bool before[MOST_NODES][MOST_NODES]; /* [a][b]: a comes before b */
static uint32_t passed;                     /* decisions that put a node before an earlier one */

static void note(uint32_t first, uint32_t second, uint32_t count) {
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            if ((a == first || before[a][first]) && (b == second || before[second][b]))
                before[a][b] = true;
}

static void enter(order *o, uint32_t n) {
    order_scratch_clear(o);
    for (uint32_t k = below(3); k > 0 && n; k--) {
        uint32_t m = below(n);
        o->words[order_scratch(o) + m / 64] |= (uint64_t)1 << m % 64;
        note(m, n, n + 1);
    }
    order_place(o, n, order_scratch(o));
    for (uint32_t k = below(4); k > 0 && n; k--) {
        uint32_t m = below(n);
        if (before[m][n] || before[n][m]) continue;
        bool passes = below(3) == 0;
        passed += passes;
        order_decide(o, passes ? n : m, passes ? m : n);
        note(passes ? n : m, passes ? m : n, n + 1);
    }
}

static void random_order(order *o, uint32_t count) {
    *o = (order){.lanes = LANES, .devices = 1};
    memset(before, 0, sizeof before);
    for (uint32_t n = 0; n < count; n++) {
        order_node node = {.item = n, .parts = 1, .lane = below(LANES), .marker = below(6) == 0};
        if (below(12) == 0) node.parts = 0;
        assert_true(mr_vec_push(&o->nodes, node));
    }
    assert_null(order_begin(o));
    for (uint32_t n = 0; n < count; n++) enter(o, n);
}

static void expect_sets(const order *o, uint32_t count) {
    for (uint32_t a = 0; a < count; a++)
        for (uint32_t b = 0; b < count; b++)
            assert_int_equal(order_has(o, order_before(o, b), a), before[a][b]);
}

/* ---- the judge of what comes next */

static bool left[MOST_NODES];

static bool is_ready(const order *o, uint32_t n) {
    for (uint32_t m = 0; m < o->nodes.count; m++)
        if (before[m][n] && left[m]) return false;
    return left[n];
}

static uint32_t next_by_scan(const order *o, uint32_t lane) {
    uint32_t first = READY_NONE;
    for (uint32_t n = 0; n < o->nodes.count; n++) {
        if (!is_ready(o, n)) continue;
        if (o->nodes.items[n].lane == lane) return n;
        if (first == READY_NONE) first = n;
    }
    return first;
}

/* Some nodes are wanted, with all before them; some of these were carried out. */
static void choose_wanted(order *o, uint32_t count) {
    order_scratch_clear(o);
    for (uint32_t n = 0; n < count; n++)
        if (below(3) == 0) o->words[order_scratch(o) + n / 64] |= (uint64_t)1 << n % 64;
    order_close_scratch(o);
    for (uint32_t n = 0; n < count; n++) {
        bool is_wanted = order_has(o, order_scratch(o), n);
        left[n] = is_wanted && order_is_operation(&o->nodes.items[n]);
    }
    for (uint32_t k = below(count), n; k > 0 && (n = next_by_scan(o, 0)) != READY_NONE; k--) {
        order_add(o, order_done(o), n);
        left[n] = false;
    }
}

static void the_next_one_is_that_of_a_scan(void **unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        order o;
        ready_nodes ready;
        uint32_t count = 1 + below(MOST_NODES), lane = below(LANES), taken = 0;
        random_order(&o, count);
        expect_sets(&o, count);
        assert_null(ready_open(&ready, &o));
        choose_wanted(&o, count);
        ready_begin(&ready, &o, order_scratch(&o));
        for (uint32_t n; (n = next_by_scan(&o, lane)) != READY_NONE; taken++) {
            assert_int_equal(ready_take(&ready, &o, lane), n);
            left[n] = false;
            lane = o.nodes.items[n].lane;
        }
        assert_int_equal(ready_take(&ready, &o, lane), READY_NONE);
        ready_close(&ready);
        order_close(&o);
    }
    assert_true(passed > ROUNDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_next_one_is_that_of_a_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
