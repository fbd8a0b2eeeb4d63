/* Vector clocks of clock.h: a persistent Patricia trie (big-endian), keyed by block.
 *
 * Easiest to break: a join whose result equals an operand must return that operand itself. Spin loops join the same
 * clock again and again, and only the equality of pointers makes that cheap. */
#include "ptx/watch/clock.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ENTRIES (32 * 33) /* warps, each with its lanes */

struct ptx_clock {
    atomic_uint references;
    uint32_t count;         /* of a leaf's entries */
    uint64_t key;           /* a leaf's block; of a branch the bits above `bit`, the others 0 */
    uint64_t bit;           /* that its two children differ in; 0: a leaf */
    ptx_clock *children[2]; /* of a branch */
    uint64_t floor;         /* of a leaf: covers all threads of the block */
    ptx_clock_entry entries[];
};

ptx_clock *ptx_clock_retain(ptx_clock *clock) {
    if (clock) atomic_fetch_add_explicit(&clock->references, 1, memory_order_relaxed);
    return clock;
}

/* A trie and the recursion are at most 64 deep. */
void ptx_clock_release(ptx_clock *clock) {
    if (!clock || atomic_fetch_sub_explicit(&clock->references, 1, memory_order_acq_rel) != 1)
        return;
    if (clock->bit) {
        ptx_clock_release(clock->children[0]);
        ptx_clock_release(clock->children[1]);
    }
    free(clock);
}

/* ---- leaves */

ptx_clock *ptx_clock_of_block(uint64_t block, uint64_t floor, const ptx_clock_entry *entries,
                              uint32_t count, bool *failed) {
    ptx_clock *leaf = calloc(1, sizeof *leaf + count * sizeof *entries);
    if (!leaf) {
        *failed = true;
        return NULL;
    }
    atomic_init(&leaf->references, 1);
    leaf->key = block;
    leaf->floor = floor;
    leaf->count = count;
    if (count) memcpy(leaf->entries, entries, count * sizeof *entries);
    return leaf;
}

static bool leaf_is(const ptx_clock *leaf, uint64_t floor, const ptx_clock_entry *entries,
                    uint32_t count) {
    if (leaf->floor != floor || leaf->count != count) return false;
    for (uint32_t i = 0; i < count; i++)
        if (leaf->entries[i].who != entries[i].who || leaf->entries[i].time != entries[i].time)
            return false;
    return true;
}

static uint32_t merge_entries(const ptx_clock *a, const ptx_clock *b, uint64_t floor,
                              ptx_clock_entry *out) {
    uint32_t i = 0, j = 0, count = 0;
    uint64_t warp_time = 0;
    while (i < a->count || j < b->count) {
        bool from_a = j == b->count || (i < a->count && a->entries[i].who <= b->entries[j].who);
        bool from_b = i == a->count || (j < b->count && b->entries[j].who <= a->entries[i].who);
        ptx_clock_entry e = from_a ? a->entries[i++] : b->entries[j];
        if (from_b) {
            if (b->entries[j].time > e.time) e.time = b->entries[j].time;
            j++;
        }
        if (e.time <= floor) continue;
        bool is_warp = (e.who & 63) == 0;
        bool same_warp = count && (out[count - 1].who >> 6) == (e.who >> 6);
        if (is_warp) warp_time = e.time;
        else if (!same_warp) warp_time = 0;
        if (is_warp || e.time > warp_time) out[count++] = e;
    }
    return count;
}

static ptx_clock *join_leaves(ptx_clock *a, ptx_clock *b, bool *failed) {
    ptx_clock_entry entries[MOST_ENTRIES];
    uint64_t floor = a->floor > b->floor ? a->floor : b->floor;
    uint32_t count = merge_entries(a, b, floor, entries);
    if (leaf_is(a, floor, entries, count)) return ptx_clock_retain(a);
    if (leaf_is(b, floor, entries, count)) return ptx_clock_retain(b);
    ptx_clock *leaf = ptx_clock_of_block(a->key, floor, entries, count, failed);
    return leaf ? leaf : ptx_clock_retain(a);
}

/* ---- branches */

/* The part of a key that stands above `bit`. */
static uint64_t above(uint64_t key, uint64_t bit) {
    return bit ? key & ~(bit | (bit - 1)) : key;
}

/* Takes over both references. NULL, with none left, if memory is out. */
static ptx_clock *branch_new(uint64_t key, uint64_t bit, ptx_clock *zero, ptx_clock *one,
                             bool *failed) {
    ptx_clock *branch = zero && one ? calloc(1, sizeof *branch) : NULL;
    if (!branch) {
        *failed = true;
        ptx_clock_release(zero);
        ptx_clock_release(one);
        return NULL;
    }
    atomic_init(&branch->references, 1);
    branch->key = above(key, bit);
    branch->bit = bit;
    branch->children[0] = zero;
    branch->children[1] = one;
    return branch;
}

/* A branch over two tries whose keys differ above the bits of both. */
static ptx_clock *branch_over(ptx_clock *a, ptx_clock *b, bool *failed) {
    uint64_t bit = (uint64_t)1 << (63 - __builtin_clzll(a->key ^ b->key));
    bool a_is_one = (a->key & bit) != 0;
    ptx_clock_retain(a);
    ptx_clock_retain(b);
    ptx_clock *branch = branch_new(a->key, bit, a_is_one ? b : a, a_is_one ? a : b, failed);
    return branch ? branch : ptx_clock_retain(a);
}

/* `branch` with one child replaced; takes over the child's reference. */
static ptx_clock *with_child(ptx_clock *branch, int side, ptx_clock *child, bool *failed) {
    if (child == branch->children[side]) {
        ptx_clock_release(child);
        return ptx_clock_retain(branch);
    }
    ptx_clock *other = ptx_clock_retain(branch->children[!side]);
    ptx_clock *result =
        branch_new(branch->key, branch->bit, side ? other : child, side ? child : other, failed);
    return result ? result : ptx_clock_retain(branch);
}

static ptx_clock *join_branches(ptx_clock *a, ptx_clock *b, bool *failed) {
    ptx_clock *children[2];
    for (int side = 0; side < 2; side++)
        children[side] = ptx_clock_join(a->children[side], b->children[side], failed);
    ptx_clock *same = NULL;
    if (children[0] == a->children[0] && children[1] == a->children[1]) same = a;
    else if (children[0] == b->children[0] && children[1] == b->children[1]) same = b;
    if (same) {
        ptx_clock_release(children[0]);
        ptx_clock_release(children[1]);
        return ptx_clock_retain(same);
    }
    ptx_clock *result = branch_new(a->key, a->bit, children[0], children[1], failed);
    return result ? result : ptx_clock_retain(a);
}

ptx_clock *ptx_clock_join(ptx_clock *a, ptx_clock *b, bool *failed) {
    if (a == b || !b) return ptx_clock_retain(a);
    if (!a) return ptx_clock_retain(b);
    if (a->bit == b->bit && a->key == b->key)
        return a->bit ? join_branches(a, b, failed) : join_leaves(a, b, failed);
    ptx_clock *wide = a->bit > b->bit ? a : b, *narrow = wide == a ? b : a;
    if (a->bit == b->bit || above(narrow->key, wide->bit) != wide->key)
        return branch_over(a, b, failed);
    int side = (narrow->key & wide->bit) != 0;
    return with_child(wide, side, ptx_clock_join(wide->children[side], narrow, failed), failed);
}

ptx_clock *ptx_clock_without(ptx_clock *clock, uint64_t block, bool *failed) {
    if (!clock) return NULL;
    if (!clock->bit) return clock->key == block ? NULL : ptx_clock_retain(clock);
    if (above(block, clock->bit) != clock->key) return ptx_clock_retain(clock);
    int side = (block & clock->bit) != 0;
    ptx_clock *child = ptx_clock_without(clock->children[side], block, failed);
    return child ? with_child(clock, side, child, failed)
                 : ptx_clock_retain(clock->children[!side]);
}

/* ---- asking */

static uint64_t entry_time(const ptx_clock *leaf, uint32_t who) {
    uint32_t low = 0, high = leaf->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (leaf->entries[middle].who < who) low = middle + 1;
        else high = middle;
    }
    return low < leaf->count && leaf->entries[low].who == who ? leaf->entries[low].time : 0;
}

uint64_t ptx_clock_at(const ptx_clock *clock, uint64_t block, uint32_t warp, uint32_t lane) {
    while (clock && clock->bit) clock = clock->children[(block & clock->bit) != 0];
    if (!clock || clock->key != block) return 0;
    uint64_t time = clock->floor;
    uint64_t of_warp = entry_time(clock, PTX_CLOCK_WARP(warp));
    uint64_t of_lane = entry_time(clock, PTX_CLOCK_LANE(warp, lane));
    if (of_warp > time) time = of_warp;
    return of_lane > time ? of_lane : time;
}
