/* A thread's knowledge of other threads: a vector clock over all threads of a launch, as a counted object that never
 * changes.
 *
 * The time of a thread is that of its warp (order.h). A clock that says t of a thread covers what the thread did at
 * times before t. Most threads of most launches know nothing beyond what barriers say, and have no clock (NULL).
 *
 * Clocks are sparse and share their parts. A clock is a Patricia trie over blocks. Its leaves hold a time for the whole
 * block (its last barrier), and times for warps and single lanes. The cost of joining two clocks is the size of their
 * difference, so a chain of releases through n blocks costs n log n and not n * n. */
#ifndef MR_PTX_WATCH_CLOCK_H
#define MR_PTX_WATCH_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct ptx_clock ptx_clock;

/* The time of one lane, or of all lanes of a warp. Entries of a leaf are sorted by `who`; a warp comes before its
 * lanes. */
typedef struct {
    uint32_t who;
    uint64_t time;
} ptx_clock_entry;
#define PTX_CLOCK_WARP(warp)       ((warp) << 6)
#define PTX_CLOCK_LANE(warp, lane) ((warp) << 6 | ((lane) + 1))

/* Functions that make a clock return a reference of the caller's own. If memory is out they set *failed and return one
 * of their operands or NULL. */
ptx_clock *ptx_clock_of_block(uint64_t block, uint64_t floor, const ptx_clock_entry *entries,
                              uint32_t count, bool *failed);
ptx_clock *ptx_clock_join(ptx_clock *a, ptx_clock *b, bool *failed);
ptx_clock *ptx_clock_without(ptx_clock *clock, uint64_t block, bool *failed);
ptx_clock *ptx_clock_retain(ptx_clock *clock); /* accepts NULL, as all of these do */
void ptx_clock_release(ptx_clock *clock);

/* The time that is known of the thread; 0: nothing is known. */
uint64_t ptx_clock_at(const ptx_clock *clock, uint64_t block, uint32_t warp, uint32_t lane);

/* Replaces *clock by its join with `other`. */
static inline void ptx_clock_add(ptx_clock **clock, ptx_clock *other, bool *failed) {
    if (!other || *clock == other) return;
    ptx_clock *old = *clock;
    *clock = ptx_clock_join(old, other, failed);
    ptx_clock_release(old);
}

static inline void ptx_clock_set(ptx_clock **clock, ptx_clock *other) {
    if (*clock == other) return;
    ptx_clock_retain(other);
    ptx_clock_release(*clock);
    *clock = other;
}

#endif
