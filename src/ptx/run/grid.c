/* Runs blocks of a launch (mr_ptx_run): one after the other, as long as none waits for another.
 *
 * A block that only waits keeps its run, and another block begins in a run of its own. The blocks of this call come
 * first, then later ones of the grid, as many as the device runs at once. The waiting ones then have turns. So blocks
 * that a device would run at the same time make progress together, as after a barrier of the whole grid that a kernel
 * makes by hand. If all blocks that can run wait, and are where they were before with nothing changed, none will ever
 * go on: the launch fails.
 *
 * Easiest to break: a block begins once in the whole launch, on whichever thread. launch->progress has a bit for
 * each. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "ptx/run/fault.h"
#include "ptx/run/run.h"
#include "ptx/run/spin.h"
#include "ptx/watch/watch.h"

typedef struct {
    const mr_ptx_launch *launch;
    uint64_t next, end; /* blocks of this call that have not been tried */
    uint64_t ahead;     /* later ones, likewise */
    uint64_t blocks;    /* of the grid */
    MR_VEC(ptx_run_state *) waiting;
    size_t turns_left;    /* of the round in which each waiting one has a turn */
    ptx_run_state *spare; /* whose block is done */
    uint64_t done;        /* blocks */
    uint64_t local_taken; /* by all runs */
    bool is_whole;        /* the call is for all blocks */
    bool is_stuck;        /* counted in progress->epoch */
    uint64_t seen_epoch, seen_changes, seen_done; /* at the end of the last round */
    uint64_t state, rounds,
        saved_at; /* of the waiting ones at round `saved_at` of those without a change */
    mr_status failure;
} grid_run;

/* ---- which block begins */

static bool claim(const grid_run *g, uint64_t block) {
    mr_ptx_progress *progress = g->launch->progress;
    if (!progress) return true;
    uint8_t bit = (uint8_t)(1u << (block % 8));
    return !(__atomic_fetch_or(&progress->begun[block / 8], bit, __ATOMIC_ACQ_REL) & bit);
}

static uint64_t resident(const grid_run *g) {
    return g->launch->device.resident_blocks ? g->launch->device.resident_blocks : 1;
}

static ptx_run_state *lowest_waiting(const grid_run *g) {
    ptx_run_state *lowest = g->waiting.items[0];
    for (size_t i = 1; i < g->waiting.count; i++)
        if (g->waiting.items[i]->block.linear < lowest->block.linear) lowest = g->waiting.items[i];
    return lowest;
}

/* The next block that may begin; false: none. Later ones than those of the call only help blocks that wait. */
static bool claim_next(grid_run *g, uint64_t *out_block) {
    if (g->waiting.count >= resident(g)) return false;
    for (; g->next < g->end; g->next++) {
        if (!claim(g, g->next)) continue;
        *out_block = g->next++;
        return true;
    }
    if (!g->waiting.count || !g->launch->progress || g->ahead == g->blocks) return false;
    uint64_t last = lowest_waiting(g)->block.linear + resident(g);
    for (; g->ahead < g->blocks && g->ahead < last; g->ahead++) {
        if (!claim(g, g->ahead)) continue;
        *out_block = g->ahead++;
        return true;
    }
    return false;
}

/* ---- runs */

static void destroy_run(ptx_run_state *run) {
    if (!run) return;
    ptx_run_finish(run);
    free(run);
}

static ptx_run_state *take_run(grid_run *g) {
    ptx_run_state *run = g->spare;
    g->spare = NULL;
    if (run) return run;
    run = calloc(1, sizeof *run);
    if (run) run->local_taken = &g->local_taken;
    if (run && ptx_run_begin(run, g->launch)) return run;
    destroy_run(run);
    return NULL;
}

static void give_run(grid_run *g, ptx_run_state *run) {
    if (g->spare) destroy_run(run);
    else g->spare = run;
}

static void fail(grid_run *g, mr_status failure) {
    if (g->failure) mr_error_destroy(failure);
    else g->failure = failure;
}

static void no_memory(grid_run *g) {
    fail(g, mr_no_memory("for the blocks of a launch"));
}

/* ---- who waits */

/* progress->epoch: the number of changes so far, and below it how many calls have seen since the last change that their
 * blocks go round in a circle. */
#define STUCK_BITS 16

static uint64_t epoch_of(const grid_run *g) {
    const mr_ptx_progress *progress = g->launch->progress;
    return progress ? __atomic_load_n(&progress->epoch, __ATOMIC_ACQUIRE) >> STUCK_BITS : 0;
}

static void add_epoch(grid_run *g) {
    mr_ptx_progress *progress = g->launch->progress;
    g->rounds = g->saved_at = 0;
    g->is_stuck = false;
    if (!progress) return;
    uint64_t seen = __atomic_load_n(&progress->epoch, __ATOMIC_ACQUIRE), next;
    do {
        next = ((seen >> STUCK_BITS) + 1) << STUCK_BITS;
    } while (!__atomic_compare_exchange_n(&progress->epoch, &seen, next, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
}

/* Counts this call as one that only memory can free, unless something has changed since `epoch`. */
static void set_stuck(grid_run *g, uint64_t epoch) {
    mr_ptx_progress *progress = g->launch->progress;
    uint64_t seen = progress ? __atomic_load_n(&progress->epoch, __ATOMIC_ACQUIRE) : 0;
    do {
        if (seen >> STUCK_BITS != epoch) return;
    } while (progress && !__atomic_compare_exchange_n(&progress->epoch, &seen, seen + 1, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    g->is_stuck = true;
}

/* Whether all running calls are stuck. All have seen the same epoch, and a call that changes memory begins a new one
 * before it can be stuck itself. So none will free another. */
static bool all_are_stuck(const grid_run *g) {
    const mr_ptx_progress *progress = g->launch->progress;
    if (!g->is_stuck || !progress) return g->is_stuck && g->is_whole;
    uint64_t word = __atomic_load_n(&progress->epoch, __ATOMIC_ACQUIRE);
    return word >> STUCK_BITS == g->seen_epoch &&
           (word & ((1u << STUCK_BITS) - 1)) ==
               __atomic_load_n(&progress->active, __ATOMIC_ACQUIRE);
}

static uint64_t changes_of(const grid_run *g) {
    uint64_t sum = 0;
    for (size_t i = 0; i < g->waiting.count; i++) sum += g->waiting.items[i]->changes;
    return sum;
}

static uint64_t state_of(const grid_run *g) {
    uint64_t state = 0;
    for (size_t i = 0; i < g->waiting.count; i++)
        state = state * 0x9e3779b97f4a7c15u + ptx_block_state(g->waiting.items[i]);
    return state;
}

/* Lanes that ask in a loop; others of their warp may wait for them at a barrier of the block. */
static const ptx_path *asking_path(ptx_run_state *run, ptx_warp **out_warp) {
    for (uint32_t w = 0; w < run->warp_count; w++) {
        ptx_warp *warp = *out_warp = &run->warps[w];
        for (uint32_t i = warp->path_count; warp->state == PTX_WARP_READY && i-- > 0;)
            if (warp->paths[i].state == PTX_PATH_READY) return &warp->paths[i];
    }
    return NULL;
}

static void fail_waiting(grid_run *g) {
    ptx_run_state *run = lowest_waiting(g);
    uint64_t begun = 0;
    for (uint64_t b = 0; g->launch->progress && b < g->blocks; b++)
        begun +=
            __atomic_load_n(&g->launch->progress->begun[b / 8], __ATOMIC_RELAXED) >> (b % 8) & 1;
    char more[200] = "";
    if (g->launch->progress && begun < g->blocks)
        snprintf(more, sizeof more,
                 "; %llu blocks have not begun, as the device runs at most %llu of this kernel at "
                 "once: launch no more than that if blocks wait for each other",
                 (unsigned long long)(g->blocks - begun), (unsigned long long)resident(g));
    ptx_warp *warp;
    const ptx_path *path = asking_path(run, &warp);
    if (!path) return;
    const char *barrier =
        g->launch->workspace
            ? "; if it waits in grid.sync(), not all blocks of the grid reach that: "
              "move it out of the condition"
            : "";
    ptx_fault(warp, path->code, ptx_first_lane(path->mask), MR_CODE_LAUNCH_TIMEOUT,
              "waits for ever: what it asks for is not written by any thread that can still "
              "run%s%s",
              barrier, more);
    fail(g, run->failure);
    run->failure = MR_OK;
}

/* All waiting blocks have had a turn. Compares with a round that is a power of two back (Brent). */
static void end_round(grid_run *g) {
    uint64_t epoch = epoch_of(g), changes = changes_of(g);
    if (changes != g->seen_changes || g->done != g->seen_done) {
        g->seen_changes = changes;
        g->seen_done = g->done;
        add_epoch(g);
        return;
    }
    if (epoch != g->seen_epoch) { /* another call has changed memory */
        g->seen_epoch = epoch;
        g->rounds = g->saved_at = 0;
        g->is_stuck = false;
        return;
    }
    if (!g->is_stuck) {
        uint64_t state = state_of(g);
        if (g->rounds && state == g->state) set_stuck(g, epoch);
        if (++g->rounds >= 2 * g->saved_at) {
            g->saved_at = g->rounds;
            g->state = state;
        }
    }
    if (all_are_stuck(g)) fail_waiting(g);
    else sched_yield(); /* another thread may have to act */
}

/* ---- turns */

static void take_turn(grid_run *g, ptx_run_state *run) {
    switch (ptx_block_turn(run)) {
    case PTX_TURN_DONE:
        if (g->launch->watch) ptx_watch_block_done(g->launch->watch, run->block.linear);
        g->done++;
        add_epoch(g);
        give_run(g, run);
        return;
    case PTX_TURN_WAITS:
        if (mr_vec_push(&g->waiting, run)) return;
        no_memory(g);
        break;
    case PTX_TURN_FAILED:
        fail(g, run->failure);
        run->failure = MR_OK;
        break;
    }
    destroy_run(run);
}

/* The one that has waited for longest. If it waits again, it goes to the end. */
static ptx_run_state *next_waiting(grid_run *g) {
    if (!g->turns_left) {
        g->turns_left = g->waiting.count;
        end_round(g);
        if (g->failure) return NULL;
    }
    g->turns_left--;
    ptx_run_state *run = g->waiting.items[0];
    g->waiting.count--;
    memmove(g->waiting.items, g->waiting.items + 1, g->waiting.count * sizeof(ptx_run_state *));
    return run;
}

static void begin_block(grid_run *g, uint64_t block) {
    ptx_run_state *run = take_run(g);
    if (!run || !ptx_block_begin(run, block)) {
        if (run && run->failure) fail(g, run->failure);
        else no_memory(g);
        if (run) run->failure = MR_OK;
        destroy_run(run);
        return;
    }
    take_turn(g, run);
    g->turns_left = g->waiting.count;
}

static void run_all(grid_run *g) {
    uint64_t block;
    while (!g->failure) {
        if (claim_next(g, &block)) {
            begin_block(g, block);
        } else if (g->waiting.count) {
            ptx_run_state *run = next_waiting(g);
            if (run) take_turn(g, run);
        } else {
            return;
        }
    }
}

mr_status mr_ptx_run(const mr_ptx_launch *launch, uint64_t first, uint64_t end) {
    if (launch->kernel->problem)
        return mr_fail(MR_CODE_NOT_SUPPORTED, "%s", launch->kernel->problem);
    grid_run g = {.launch = launch,
                  .next = first,
                  .end = end,
                  .ahead = end,
                  .is_whole = first == 0 &&
                              end == (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2],
                  .blocks = (uint64_t)launch->grid[0] * launch->grid[1] * launch->grid[2]};
    mr_ptx_progress *progress = launch->progress;
    if (progress) __atomic_fetch_add(&progress->active, 1, __ATOMIC_ACQ_REL);
    run_all(&g);
    if (progress) __atomic_fetch_sub(&progress->active, 1, __ATOMIC_ACQ_REL);
    add_epoch(&g);
    for (size_t i = 0; i < g.waiting.count; i++) destroy_run(g.waiting.items[i]);
    mr_vec_free(&g.waiting);
    destroy_run(g.spare);
    return g.failure;
}
