/* Hash maps: against a plain list, with keys that crowd, and when memory runs out. The file under test is included, so
 * that its allocations can fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int allocations_left = -1; /* -1: no limit */

static void *counted_calloc(size_t count, size_t size) {
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return calloc(count, size);
}

#define calloc counted_calloc
#include "../../src/base/map.c"
#undef calloc

typedef MR_MAP(uint32_t) number_map;

static uint64_t state_of_random;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = state_of_random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Keys as the tree has them: small numbers, the same in the upper half, addresses, hashes. */
static uint64_t draw_key(int kind) {
    uint64_t n = draw() % 600;
    switch (kind) {
    case 0: return n;
    case 1: return n << 32;
    case 2: return 0x7f0000000000u + 4096 * n;
    case 3: return UINT64_MAX - 1 - n;
    default: return n * 0xff51afd7ed558ccdu >> 1;
    }
}

/* ---- the naive map */

enum { MOST_ENTRIES = 4000 };
static struct {
    uint64_t key;
    uint32_t value;
} entries[MOST_ENTRIES];
static size_t entry_count;

static size_t naive_find(uint64_t key, size_t from) {
    while (from < entry_count && entries[from].key != key) from++;
    return from;
}

static uint64_t digest_of_naive(uint64_t key, uint32_t *out_count) {
    uint64_t sum = 0;
    *out_count = 0;
    for (size_t i = naive_find(key, 0); i < entry_count; i = naive_find(key, i + 1)) {
        sum += entries[i].value * (uint64_t)entries[i].value;
        ++*out_count;
    }
    return sum;
}

static uint64_t digest_of_map(const number_map *map, uint64_t key, uint32_t *out_count) {
    uint64_t sum = 0;
    *out_count = 0;
    for (uint32_t *v = mr_map_find(map, key); v; v = mr_map_again(map, v)) {
        sum += *v * (uint64_t)*v;
        ++*out_count;
    }
    return sum;
}

static void compare_all(const number_map *map) {
    size_t met = 0;
    assert_int_equal(map->count, entry_count);
    mr_map_each(map, at) {
        met++;
        uint64_t key = map->slots[at].entry - 1;
        size_t i = naive_find(key, 0);
        while (i < entry_count && entries[i].value != map->slots[at].value)
            i = naive_find(key, i + 1);
        assert_true(i < entry_count);
    }
    assert_int_equal(met, entry_count);
}

static void step(number_map *map, int kind) {
    uint64_t key = draw_key(kind);
    uint32_t value = (uint32_t)draw(), in_map, in_list;
    size_t i = naive_find(key, 0);
    switch (draw() % 8) {
    case 0: /* one more of the key */
        *mr_map_insert(map, key) = value;
        i = entry_count++;
        entries[i].key = key;
        entries[i].value = value;
        break;
    case 1:
    case 2:
    case 3: { /* the only one of the key: which of several it changes is open */
        if (naive_find(key, i + 1) < entry_count) break;
        if (i == entry_count) {
            assert_int_equal(*mr_map_add(map, key), 0);
            entries[entry_count++].key = key;
        }
        assert_true(mr_map_put(map, key, value));
        entries[i].value = value;
        break;
    }
    default:
        assert_int_equal(digest_of_map(map, key, &in_map), digest_of_naive(key, &in_list));
        assert_int_equal(in_map, in_list);
    }
}

static void maps_agree_with_a_list(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        number_map map = {0};
        state_of_random = (uint64_t)round;
        for (int again = 0; again < 2; again++) { /* the second time in slots that were cleared */
            entry_count = 0;
            for (int i = 0; i < 1500; i++) step(&map, round % 5);
            compare_all(&map);
            mr_map_clear(&map);
            assert_int_equal(map.count, 0);
            assert_null(mr_map_find(&map, entries[0].key));
        }
        mr_map_free(&map);
    }
}

/* A probe costs what the slots that it passes cost: few where the hash spreads the keys. */
static void keys_of_a_kind_do_not_crowd(void **state) {
    (void)state;
    for (unsigned shift = 0; shift < 56; shift++) {
        MR_MAP(char) map = {0};
        size_t passed = 0;
        for (uint64_t i = 0; i < 190; i++) assert_non_null(mr_map_add(&map, i << shift));
        mr_map_each(&map, at) passed +=
            (at - mr_map_first_(map.slots[at].entry, map.capacity)) & (map.capacity - 1);
        assert_in_range(passed, 0, 4 * 190);
        mr_map_free(&map);
    }
}

static void a_map_without_memory_is_as_it_was(void **state) {
    (void)state;
    for (int limit = 0; limit < 6; limit++) {
        number_map map = {0};
        uint32_t added = 0;
        allocations_left = limit;
        while (mr_map_put(&map, added, added)) added++;
        assert_null(mr_map_add(&map, added));
        assert_null(mr_map_insert(&map, added));
        assert_null(mr_map_find(&map, added));
        assert_int_equal(map.count, added);
        assert_true(added == (limit ? 6u << limit : 0));
        for (uint32_t i = 0; i < added; i++) assert_int_equal(*mr_map_find(&map, i), i);
        allocations_left = -1;
        assert_true(mr_map_put(&map, added, added)); /* and it can go on */
        mr_map_free(&map);
    }
}

static void an_empty_map_has_nothing(void **state) {
    (void)state;
    number_map map = {0};
    assert_null(mr_map_find(&map, 0));
    mr_map_clear(&map);
    mr_map_each(&map, at) fail();
    mr_map_free(&map);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_agree_with_a_list),
        cmocka_unit_test(keys_of_a_kind_do_not_crowd),
        cmocka_unit_test(a_map_without_memory_is_as_it_was),
        cmocka_unit_test(an_empty_map_has_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
