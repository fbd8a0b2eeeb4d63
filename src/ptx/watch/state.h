/* Private to watch*.c: the state of a watch, of a block that runs, and of one access that is being judged.
 *
 * Files: copies.c takes accesses and knows of copies that are under way, watch.c judges accesses, strong.c atomic and
 * volatile ones. order.c knows the order of threads, report.c collects races; shadow.c and clock.c are containers. */
#ifndef MR_PTX_WATCH_STATE_H
#define MR_PTX_WATCH_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "ptx/watch/watch.h"
#include "ptx/watch/clock.h"
#include "ptx/watch/shadow.h"

enum { PTX_NARROW, PTX_WIDE, PTX_SCOPES }; /* scopes: within a block (or cluster), and beyond it */

/* The moment of a thread that a release pattern begins at. Its clock is made only if a write follows. */
typedef struct {
    uint64_t time; /* covers the thread at times before this; 0: there was none */
    uint64_t floor, warp_floor;
    ptx_clock *known;
    ptx_clock *clock; /* made of the above */
} ptx_moment;

/* For one lane and one location. In a warp's `pending`: times that its strong reads there have seen published, and that
 * no acquire has taken over. In `released`: times that its release operations there published. */
typedef struct {
    uint32_t lane;
    bool is_shared;
    bool is_of_update; /* of `pending`: an atomic operation has seen it */
    uint8_t bytes;
    uint64_t address;
    ptx_clock *clocks[PTX_SCOPES];
    uint64_t times[PTX_SCOPES]; /* of `released`: when */
} ptx_location;

/* Release and acquire in one warp; most have none. */
typedef struct {
    ptx_moment fences[PTX_SCOPES][32]; /* the last fence of any scope, the last wide one */
    MR_VEC(ptx_location) pending, released;
} ptx_warp_sync;

#define PTX_RECENT   64
#define PTX_BARRIERS 16

typedef struct ptx_running ptx_running;
/* A block that runs. Used by the thread that runs it; kept and used again for later blocks. Times never start anew, so
 * what an earlier block left in `shared` is before `floor`, and harmless. */
struct ptx_running {
    _Atomic uint64_t block; /* UINT64_MAX: none */
    ptx_running *next, *next_free;
    uint64_t now[32];        /* of each warp */
    uint64_t floor;          /* before this time all threads are ordered before all (a barrier) */
    uint64_t warp_floor[32]; /* the same inside a warp */
    uint32_t warps;
    bool has_released, has_fenced;
    /* by thread: its knowledge beyond the floors; NULL: no thread has any */
    ptx_clock **known;
    ptx_warp_sync *sync[32]; /* NULL: none */
    ptx_clock *arrived[PTX_BARRIERS];
    ptx_copies *copies;   /* cp.async; NULL: there was none */
    uint64_t grid_rounds; /* how often the block has come to the barrier of the grid */
    ptx_area shared;
    ptx_page *pages[PTX_RECENT];
    struct {
        const ptx_instruction *instruction;
        uint32_t number;
    } recent[PTX_RECENT];
};

/* Memory in which each accessed byte is marked. */
typedef struct {
    uint64_t address, bytes;
    ptx_scope least; /* of an atomic update */
    _Atomic uint8_t *marks;
} ptx_marked;

struct mr_ptx_watch {
    const mr_ptx_module *module;
    uint64_t blocks;
    uint32_t threads, block_shift;
    uint64_t time_limit;
    ptx_pages *pages;
    _Atomic uint8_t *ended,
        *heard; /* by block, bits: it is over; it has published something beyond itself */
    atomic_bool any_fence;
    atomic_bool is_stopped;
    atomic_bool order_matters; /* mr_ptx_watch_order_matters */
    /* a thread has acquired the knowledge of earlier atomic operations */
    atomic_bool updates_tell;
    atomic_ullong chains;

    _Atomic(ptx_running *) all, hints[64];
    pthread_mutex_t lock; /* of what follows; taken inside a page's lock, and takes none */
    ptx_running *unused;
    const char *why_stopped;
    MR_VEC(const ptx_instruction *) instructions; /* by number */
    MR_MAP(uint32_t) numbers;                     /* by instruction */
    MR_VEC(ptx_race *) races;
    MR_MAP(ptx_race *) pairs;  /* by both instructions and the space */
    MR_VEC(ptx_marked) marked; /* complete before the first block */

    pthread_mutex_t strong; /* ptx_watch_hold */
};

/* One access of a warp that is being judged. */
typedef struct {
    mr_ptx_watch *watch;
    ptx_running *running;
    const ptx_watched *access;
    uint64_t block;       /* + 1, shifted; 0 in shared memory */
    uint64_t span;        /* epochs from `block` on, fewer than this, are before the last barrier */
    uint64_t me;          /* the epoch of lane 0 */
    uint64_t same_thread; /* the bits in which epochs of one thread agree */
    uint32_t warp, at;
    uint32_t cell_bytes;      /* of the cells that are looked at now */
    uint64_t low, high, bits; /* of all addresses: the least, the greatest, all of their bits */
    bool is_shared, has_released, failed;
    bool is_exchange, is_spread, is_update; /* as of ptx_strong */
    /* of the pair that was counted last: the cells of one pair count once */
    uint64_t counted_epoch;
    uint32_t counted_at, counted_lane;
} ptx_turn;

static inline bool ptx_is_wide(ptx_order order, ptx_scope scope) {
    return order == PTX_VOLATILE || scope == PTX_SCOPE_NONE || scope >= PTX_SCOPE_DEVICE;
}
static inline uint64_t ptx_epoch_time(const mr_ptx_watch *w, uint64_t epoch) {
    return (epoch & (((uint64_t)1 << w->block_shift) - 1)) >> PTX_TIME_SHIFT;
}
static inline uint32_t ptx_epoch_warp(uint64_t epoch) {
    return epoch >> PTX_LANE_BITS & 31;
}
static inline uint64_t ptx_lowest_bit(uint64_t x) {
    return x & -x;
}

/* Is the word at `address` one in which the blocks of a cooperative launch meet? */
static inline bool ptx_is_grid_barrier(const ptx_turn *turn, uint64_t address) {
    return !turn->is_shared && address - MR_PTX_WORKSPACE < MR_PTX_WORKSPACE_WORDS * 4;
}

void ptx_watch_stop(mr_ptx_watch *watch, const char *why);

/* ---- order.c */

/* The lanes that were at `epoch` and are not ordered before what `lane` of the turn does now. */
uint32_t ptx_unordered(const ptx_turn *turn, uint32_t lane, uint64_t epoch, uint32_t lanes);
/* A strong write, as part of `chain`: publishes what a release operation, or a fence before it, releases. */
void ptx_publish(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes, ptx_chain *chain);
/* A strong read that saw the last write of `chain` (NULL: one that published nothing). */
void ptx_observe(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes, ptx_chain *chain);
/* Whether no thread outside the block can ever be ordered after its accesses. */
bool ptx_block_unheard(const mr_ptx_watch *watch, uint64_t epoch);

ptx_running *ptx_watch_running(const mr_ptx_watch *watch, uint64_t block); /* NULL: stopped */
void ptx_running_free(ptx_running *running);

/* ---- check.c: one access of a lane to one cell against what the cell remembers */

/* `bytes` at `address`: of the whole access (of an element of a vector, if it is strong). */
typedef struct {
    uint32_t lane, bytes;
    uint64_t address;
    bool writes, strong;
    uint32_t cell;
    uint64_t cell_address;
} ptx_judged;
void ptx_after_write(ptx_turn *turn, const ptx_cells *cells, const ptx_judged *j);
void ptx_after_cell_readers(ptx_turn *turn, const ptx_cells *cells, const ptx_judged *j);
void ptx_after_readers(ptx_turn *turn, ptx_history *h, const ptx_judged *j);
void ptx_after_strong(ptx_turn *turn, ptx_history *h, const ptx_judged *j);
void ptx_compact_strong(ptx_turn *turn, ptx_history *h);
/* A strong access against strong ones of other threads: does their order decide values? */
void ptx_note_order(ptx_turn *turn, const ptx_history *h, const ptx_judged *j);

/* ---- weak.c: weak accesses to cells */

/* The lanes' accesses, all within the area, which begins at address `start`. */
void ptx_weak_access(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lanes);
/* Bytes of one lane that do not make up its whole access. */
void ptx_weak_part(ptx_turn *turn, ptx_area *area, uint64_t start, uint32_t lane, uint64_t address,
                   uint32_t bytes);
/* Divides rows and cells until [address, address + bytes) consists of whole cells. */
bool ptx_fit(ptx_turn *turn, ptx_area *area, uint64_t start, uint64_t address, uint32_t bytes);

/* ---- mark.c */

void ptx_mark(mr_ptx_watch *watch, const ptx_watched *access);

/* ---- watch.c */

/* An access of a block that runs, by itself: without a look at copies. */
void ptx_judge(mr_ptx_watch *watch, ptx_running *running, const ptx_watched *access);

/* ---- row.c */

/* An access of a whole warp that covers whole rows: judges it row by row. False: it is of another kind. */
bool ptx_row_access(ptx_turn *turn, ptx_area *area, uint64_t start);

/* ---- strong.c */

/* One element of a strong access, all of whose bytes lie in `cells`, which begin at `start`. */
void ptx_strong_access(ptx_turn *turn, ptx_cells *cells, uint64_t start, uint32_t lane,
                       uint64_t address, uint32_t bytes);

/* ---- report.c */

/* Two threads meet in the order in which they happened to run, and not at a barrier of the grid. */
void ptx_order_matters(mr_ptx_watch *watch);
uint32_t ptx_instruction_number(mr_ptx_watch *watch, ptx_running *running,
                                const ptx_instruction *instruction);
typedef struct {
    uint64_t epoch;
    uint32_t lanes, named, at; /* named: the lane that a report names, if it is one of them */
    uint8_t access;
    bool atomic, same_value, sizes_differ;
    bool exchanged; /* by lanes of a warp in volatile shared memory */
    bool copies;    /* it is a cp.async without a wait so far */
} ptx_earlier;
/* The cell `bytes` wide at `address`. */
void ptx_report(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes,
                const ptx_earlier *earlier);

/* ---- races.c */

/* A pair of accesses that race, with the watch's lock held; `found->count` is 0. `is_new`: it was not counted yet, at
 * another cell. False: memory is out. */
bool ptx_race_collect(ptx_turn *turn, const ptx_race *found, const ptx_earlier *earlier,
                      bool is_new);
void ptx_races_free(mr_ptx_watch *watch);

#endif
