/* The sets of an order, and the decisions on top of it: see order.h. */
#include "explore/order.h"

#include "model/backend.h"

/* ---- sets */

static uint32_t order_rest(const order *o) {
    return order_of_device(o, (int)o->devices, 3);
}

/* Nodes that a decision has put before an earlier one. */
static uint32_t order_overtaking(const order *o) {
    return order_of_device(o, (int)o->devices, 4);
}

static void put(order *o, uint32_t at, uint64_t word) {
    if (o->words[at] == word) return;
    if (!mr_vec_push(&o->changes, ((order_change){at, o->words[at]}))) o->failed = true;
    o->words[at] = word;
}

void order_add(order *o, uint32_t set, uint32_t node) {
    put(o, set + node / 64, o->words[set + node / 64] | (uint64_t)1 << node % 64);
}

void order_join(order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++)
        put(o, set + i, o->words[set + i] | o->words[other + i]);
}

void order_assign(order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++) put(o, set + i, o->words[other + i]);
}

bool order_within(const order *o, uint32_t set, uint32_t other) {
    for (uint32_t i = 0; i < o->words_in_set; i++)
        if (o->words[set + i] & ~o->words[other + i]) return false;
    return true;
}

/* The sets of the members are closed, so the predecessors of an added member need no visit of their own. From the
 * newest node down, few visits are left. */
void order_close_scratch(order *o) {
    uint64_t *scratch = o->words + order_scratch(o), *rest = o->words + order_rest(o);
    uint32_t words = o->placed / 64 + 1;
    memcpy(rest, scratch, words * sizeof *rest);
    for (uint32_t i = words; i-- > 0;)
        while (rest[i]) {
            uint32_t n = i * 64 + 63 - (uint32_t)__builtin_clzll(rest[i]);
            const uint64_t *before = o->words + order_before(o, n);
            rest[i] &= ~((uint64_t)1 << n % 64);
            for (uint32_t k = 0; k < words; k++) {
                scratch[k] |= before[k];
                rest[k] &= ~before[k];
            }
        }
}

/* ---- nodes */

void order_place(order *o, uint32_t node, uint32_t set) {
    if (set != order_scratch(o)) {
        order_scratch_clear(o);
        order_scratch_join(o, set);
    }
    order_close_scratch(o);
    order_assign(o, order_before(o, node), order_scratch(o));
    o->placed = node + 1;
}

/* Whether no node comes after it: no later one is placed, and no decision has put it before an earlier one. */
static bool is_last(const order *o, uint32_t node) {
    return node + 1 == o->placed && !order_has(o, order_overtaking(o), node);
}

void order_decide(order *o, uint32_t first, uint32_t second) {
    uint32_t before = order_before(o, first);
    if (first > second) order_add(o, order_overtaking(o), first);
    for (uint32_t n = is_last(o, second) ? second : 0; n < o->placed; n++) {
        uint32_t set = order_before(o, n);
        if (n != second && !order_has(o, set, second)) continue;
        order_join(o, set, before);
        order_add(o, set, first);
    }
}

size_t order_changes(const order *o) {
    return o->changes.count;
}

void order_undo(order *o, size_t changes, uint32_t placed) {
    while (o->changes.count > changes) {
        order_change c = mr_vec_pop(&o->changes);
        o->words[c.at] = c.was;
    }
    o->placed = placed;
}

void order_forget(order *o) {
    memset(o->words, 0, o->word_count * sizeof *o->words);
    o->changes.count = 0;
    o->placed = 0;
}

static void copy_set(order *o, uint32_t to, const order *from, uint32_t at) {
    uint32_t n = o->words_in_set < from->words_in_set ? o->words_in_set : from->words_in_set;
    memcpy(o->words + to, from->words + at, n * sizeof *o->words);
}

static uint32_t least(uint32_t a, uint32_t b) {
    return a < b ? a : b;
}

void order_copy(order *o, const order *from) {
    memset(o->words, 0, o->word_count * sizeof *o->words);
    o->changes.count = 0;
    o->placed = from->placed;
    for (uint32_t n = 0; n < from->placed; n++)
        copy_set(o, order_before(o, n), from, order_before(from, n));
    for (uint32_t i = 0; i < least(o->lanes, from->lanes); i++)
        copy_set(o, order_lane(o, i), from, order_lane(from, i));
    for (uint32_t i = 0; i < least(o->events, from->events); i++)
        copy_set(o, order_record(o, i), from, order_record(from, i));
    for (uint32_t i = 0; i < least(o->storages, from->storages); i++)
        copy_set(o, order_free(o, i), from, order_free(from, i));
    for (int d = 0; d < (int)o->devices; d++) {
        copy_set(o, order_released(o, d), from, order_released(from, d));
        copy_set(o, order_barrier(o, d), from, order_barrier(from, d));
    }
    copy_set(o, order_host(o), from, order_host(from));
    copy_set(o, order_done(o), from, order_done(from));
    copy_set(o, order_overtaking(o), from, order_overtaking(from));
}
