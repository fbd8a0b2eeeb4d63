/* The order of threads: barriers, warp syncs, and chains of release and acquire, as PTX's memory model defines them.
 *
 * Each warp has a time, which goes on when the warp comes to something that orders it. A whole barrier moves the
 * block's floor: all accesses before it are ordered before all after it, in one compare. A sync of a whole warp does
 * the same for the warp. Everything else (part of a warp, part of a block, release and acquire) gives threads clocks. A
 * whole barrier joins these into one and drops its entries for the own block. So a block usually has none again.
 *
 * Release pattern: a release operation on M, or a fence, or an earlier release operation on M, followed by a strong
 * write to M. It publishes the thread's knowledge at its first part. Acquire pattern: a strong read of M that saw a
 * published value, followed by a fence or by an acquire operation on M, or itself an acquire operation. Scopes: the
 * first part of the one and the last part of the other must include each other's threads. Clusters count as blocks of
 * one, as no launch has others.
 *
 * The order in which two fence.sc happened to run orders nothing here: another run may choose the other one.
 *
 * Easiest to break: a clock must never cover more than the moment that it stands for. So each event that makes one also
 * lets the time of its warp go on. */
#include "ptx/watch/state.h"

#include <stdlib.h>
#include <string.h>

static ptx_running *find(const mr_ptx_watch *watch, uint64_t block) {
    ptx_running *r = atomic_load_explicit(&watch->hints[block & 63], memory_order_acquire);
    if (r && atomic_load_explicit(&r->block, memory_order_relaxed) == block) return r;
    r = atomic_load_explicit(&watch->all, memory_order_acquire);
    while (r && atomic_load_explicit(&r->block, memory_order_relaxed) != block) r = r->next;
    return r;
}

ptx_running *ptx_watch_running(const mr_ptx_watch *watch, uint64_t block) {
    if (atomic_load_explicit(&watch->is_stopped, memory_order_relaxed)) return NULL;
    return find(watch, block);
}

static uint64_t block_of(const ptx_running *r) {
    return atomic_load_explicit(&r->block, memory_order_relaxed);
}

static uint32_t lanes_of(const mr_ptx_watch *watch, uint32_t warp) {
    uint32_t left = watch->threads - 32 * warp;
    return left >= 32 ? UINT32_MAX : ((uint32_t)1 << left) - 1;
}

static void check_memory(mr_ptx_watch *watch, bool failed) {
    if (failed) ptx_watch_stop(watch, "memory is out");
}

/* ---- asking */

static bool block_is(const _Atomic uint8_t *bits, uint64_t block) {
    return atomic_load_explicit(&bits[block / 8], memory_order_acquire) >> block % 8 & 1;
}

static void block_set(_Atomic uint8_t *bits, uint64_t block) {
    atomic_fetch_or_explicit(&bits[block / 8], (uint8_t)(1 << block % 8), memory_order_acq_rel);
}

bool ptx_block_unheard(const mr_ptx_watch *watch, uint64_t epoch) {
    uint64_t block = (epoch >> watch->block_shift) - 1;
    return block_is(watch->ended, block) && !block_is(watch->heard, block);
}

uint32_t ptx_unordered(const ptx_turn *turn, uint32_t lane, uint64_t epoch, uint32_t lanes) {
    const ptx_running *r = turn->running;
    uint32_t shift = turn->watch->block_shift, warp = ptx_epoch_warp(epoch);
    uint64_t time = ptx_epoch_time(turn->watch, epoch);
    bool same_block = epoch >> shift == turn->block >> shift;
    if (same_block) {
        if (time < r->floor) return 0;
        if (warp == turn->warp) {
            if (time < r->warp_floor[warp]) return 0;
            lanes &= ~((uint32_t)1 << lane);
        }
    }
    const ptx_clock *known = r->known ? r->known[32 * turn->warp + lane] : NULL;
    if (!known) return lanes;
    uint64_t block = same_block ? block_of(r) : (epoch >> shift) - 1;
    uint32_t all = lanes;
    for (uint32_t rest = lanes; rest; rest &= rest - 1) {
        uint32_t l = (uint32_t)__builtin_ctz(rest);
        if (ptx_clock_at(known, block, warp, l) > time) lanes &= ~((uint32_t)1 << l);
    }
    bool by_update = atomic_load_explicit(&turn->watch->updates_tell, memory_order_relaxed);
    if (by_update && lanes != all) ptx_order_matters(turn->watch);
    return lanes;
}

/* ---- what threads know */

static bool has_known(mr_ptx_watch *watch, ptx_running *r) {
    if (!r->known) r->known = calloc(32 * r->warps, sizeof(ptx_clock *));
    check_memory(watch, !r->known);
    return r->known != NULL;
}

static void forget_known(ptx_running *r) {
    if (!r->known) return;
    for (uint32_t i = 0; i < 32 * r->warps; i++) ptx_clock_release(r->known[i]);
    free(r->known);
    r->known = NULL;
}

/* Adds what the lanes know to *sum. */
static void gather(const ptx_running *r, uint32_t warp, uint32_t lanes, ptx_clock **sum,
                   bool *failed) {
    if (!r->known) return;
    for (; lanes; lanes &= lanes - 1)
        ptx_clock_add(sum, r->known[32 * warp + (uint32_t)__builtin_ctz(lanes)], failed);
}

static void hand_out(ptx_running *r, uint32_t warp, uint32_t lanes, ptx_clock *clock) {
    for (; lanes; lanes &= lanes - 1)
        ptx_clock_set(&r->known[32 * warp + (uint32_t)__builtin_ctz(lanes)], clock);
}

/* Adds times of the own block to *sum. */
static void add_own(const ptx_running *r, uint64_t floor, const ptx_clock_entry *entries,
                    uint32_t count, ptx_clock **sum, bool *failed) {
    ptx_clock *own = ptx_clock_of_block(block_of(r), floor, entries, count, failed);
    ptx_clock_add(sum, own, failed);
    ptx_clock_release(own);
}

/* ---- barriers */

static void whole_barrier(mr_ptx_watch *watch, ptx_running *r) {
    uint64_t latest = 0;
    for (uint32_t w = 0; w < r->warps; w++)
        if (r->now[w] > latest) latest = r->now[w];
    r->floor = latest + 1;
    for (uint32_t w = 0; w < r->warps; w++) r->now[w] = r->floor;
    if (r->floor > watch->time_limit) ptx_watch_stop(watch, "a block has too many barriers");
    if (!r->known) return;
    ptx_clock *sum = NULL;
    bool failed = false;
    for (uint32_t w = 0; w < r->warps; w++) gather(r, w, UINT32_MAX, &sum, &failed);
    ptx_clock *foreign = ptx_clock_without(sum, block_of(r), &failed);
    if (foreign)
        for (uint32_t w = 0; w < r->warps; w++) hand_out(r, w, UINT32_MAX, foreign);
    else forget_known(r);
    ptx_clock_release(foreign);
    ptx_clock_release(sum);
    check_memory(watch, failed);
}

static void tick(mr_ptx_watch *watch, ptx_running *r, uint32_t warp) {
    if (++r->now[warp] > watch->time_limit)
        ptx_watch_stop(watch, "a warp has too many synchronisations");
}

static void partial_barrier(mr_ptx_watch *watch, ptx_running *r, uint32_t warps) {
    if (!has_known(watch, r)) return;
    ptx_clock *sum = NULL;
    ptx_clock_entry entries[32];
    uint32_t count = 0;
    bool failed = false;
    for (uint32_t rest = warps; rest; rest &= rest - 1) {
        uint32_t w = (uint32_t)__builtin_ctz(rest);
        gather(r, w, UINT32_MAX, &sum, &failed);
        tick(watch, r, w);
        entries[count++] = (ptx_clock_entry){PTX_CLOCK_WARP(w), r->now[w]};
    }
    add_own(r, 0, entries, count, &sum, &failed);
    for (uint32_t rest = warps; rest; rest &= rest - 1)
        hand_out(r, (uint32_t)__builtin_ctz(rest), UINT32_MAX, sum);
    ptx_clock_release(sum);
    check_memory(watch, failed);
}

static uint32_t all_warps(const ptx_running *r) {
    return r->warps == 32 ? UINT32_MAX : ((uint32_t)1 << r->warps) - 1;
}

void ptx_watch_barrier(mr_ptx_watch *watch, uint64_t block, const uint64_t *warps,
                       uint32_t warp_count) {
    ptx_running *r = ptx_watch_running(watch, block);
    if (!r) return;
    uint32_t set = warps && warp_count ? (uint32_t)warps[0] & all_warps(r) : all_warps(r);
    if (set == all_warps(r)) whole_barrier(watch, r);
    else if (set) partial_barrier(watch, r, set);
}

void ptx_watch_arrive(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t barrier) {
    ptx_running *r = ptx_watch_running(watch, block);
    if (!r) return;
    bool failed = false;
    tick(watch, r, warp);
    ptx_clock_entry entry = {PTX_CLOCK_WARP(warp), r->now[warp]};
    ptx_clock **sum = &r->arrived[barrier % PTX_BARRIERS];
    gather(r, warp, UINT32_MAX, sum, &failed);
    add_own(r, 0, &entry, 1, sum, &failed);
    check_memory(watch, failed);
}

void ptx_watch_arrived(mr_ptx_watch *watch, uint64_t block, uint32_t barrier, const uint64_t *warps,
                       uint32_t warp_count) {
    ptx_running *r = ptx_watch_running(watch, block);
    if (!r || !r->arrived[barrier % PTX_BARRIERS] || !has_known(watch, r)) return;
    ptx_clock **sum = &r->arrived[barrier % PTX_BARRIERS];
    bool failed = false;
    uint32_t set = warps && warp_count ? (uint32_t)warps[0] & all_warps(r) : all_warps(r);
    for (uint32_t i = 0; i < 32 * r->warps; i++)
        if (set >> i / 32 & 1) ptx_clock_add(&r->known[i], *sum, &failed);
    ptx_clock_set(sum, NULL);
    check_memory(watch, failed);
}

void ptx_watch_warp_sync(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask) {
    ptx_running *r = ptx_watch_running(watch, block);
    if (!r || !(mask & (mask - 1))) return;
    uint32_t there = lanes_of(watch, warp);
    bool whole = (mask & there) == there, failed = false;
    tick(watch, r, warp);
    if (whole) r->warp_floor[warp] = r->now[warp];
    if (whole && !r->known) return;
    if (!has_known(watch, r)) return;
    ptx_clock *sum = NULL;
    gather(r, warp, mask, &sum, &failed);
    if (!whole) {
        ptx_clock_entry entries[32];
        uint32_t count = 0;
        for (uint32_t rest = mask; rest; rest &= rest - 1)
            entries[count++] = (ptx_clock_entry){
                PTX_CLOCK_LANE(warp, (uint32_t)__builtin_ctz(rest)), r->now[warp]};
        add_own(r, 0, entries, count, &sum, &failed);
    }
    hand_out(r, warp, mask, sum);
    ptx_clock_release(sum);
    check_memory(watch, failed);
}

/* ---- release and acquire */

static ptx_warp_sync *sync_of(mr_ptx_watch *watch, ptx_running *r, uint32_t warp) {
    if (!r->sync[warp]) r->sync[warp] = calloc(1, sizeof *r->sync[warp]);
    check_memory(watch, !r->sync[warp]);
    return r->sync[warp];
}

static void moment_set(const ptx_running *r, uint32_t warp, uint32_t lane, ptx_moment *m) {
    m->time = r->now[warp] + 1;
    m->floor = r->floor;
    m->warp_floor = r->warp_floor[warp];
    ptx_clock_set(&m->known, r->known ? r->known[32 * warp + lane] : NULL);
    ptx_clock_set(&m->clock, NULL);
}

static void moment_clear(ptx_moment *m) {
    ptx_clock_release(m->known);
    ptx_clock_release(m->clock);
    *m = (ptx_moment){0};
}

static ptx_clock *moment_clock(const ptx_running *r, uint32_t warp, uint32_t lane, ptx_moment *m,
                               bool *failed) {
    if (m->clock) return m->clock;
    ptx_clock_entry entries[2];
    uint32_t count = 0;
    if (m->warp_floor > m->floor)
        entries[count++] = (ptx_clock_entry){PTX_CLOCK_WARP(warp), m->warp_floor};
    entries[count++] = (ptx_clock_entry){PTX_CLOCK_LANE(warp, lane), m->time};
    ptx_clock_set(&m->clock, m->known);
    add_own(r, m->floor, entries, count, &m->clock, failed);
    return m->clock;
}

static void location_clear(ptx_location *l) {
    for (int s = 0; s < PTX_SCOPES; s++) ptx_clock_release(l->clocks[s]);
}

typedef MR_VEC(ptx_location) location_list; /* as both lists of ptx_warp_sync */

static ptx_location *location_find(const void *list_address, uint32_t lane, bool is_shared,
                                   uint64_t address, uint32_t bytes) {
    const location_list *list = list_address;
    for (size_t i = list->count; i-- > 0;) {
        ptx_location *l = &list->items[i];
        if (l->address == address && l->lane == lane && l->is_shared == is_shared &&
            l->bytes == bytes)
            return l;
    }
    return NULL;
}

static ptx_location *location_get(void *list_address, uint32_t lane, bool is_shared,
                                  uint64_t address, uint32_t bytes) {
    location_list *list = list_address;
    ptx_location *l = location_find(list, lane, is_shared, address, bytes);
    if (l) return l;
    ptx_location fresh = {.lane = lane, .is_shared = is_shared, .address = address};
    fresh.bytes = (uint8_t)bytes;
    return mr_vec_push(list, fresh) ? &list->items[list->count - 1] : NULL;
}

static void learn(mr_ptx_watch *watch, ptx_running *r, uint32_t warp, uint32_t lane,
                  ptx_clock *clock) {
    if (!clock || !has_known(watch, r)) return;
    bool failed = false;
    ptx_clock_add(&r->known[32 * warp + lane], clock, &failed);
    check_memory(watch, failed);
}

/* An acquire of what `l` has seen. A narrow one leaves what other blocks published to a wide one. */
static void acquire(mr_ptx_watch *watch, ptx_running *r, uint32_t warp, ptx_location *l,
                    bool wide) {
    for (int s = PTX_NARROW; s <= (wide ? PTX_WIDE : PTX_NARROW); s++) {
        if (l->is_of_update && l->clocks[s]) atomic_store(&watch->updates_tell, true);
        learn(watch, r, warp, l->lane, l->clocks[s]);
        ptx_clock_set(&l->clocks[s], NULL);
    }
}

void ptx_watch_fence(mr_ptx_watch *watch, uint64_t block, uint32_t warp, uint32_t mask,
                     ptx_order order, ptx_scope scope) {
    ptx_running *r = ptx_watch_running(watch, block);
    ptx_warp_sync *sync = r ? sync_of(watch, r, warp) : NULL;
    if (!sync) return;
    bool wide = ptx_is_wide(order, scope);
    atomic_store_explicit(&watch->any_fence, true, memory_order_relaxed);
    if (order != PTX_RELEASE) {
        size_t kept = 0;
        for (size_t i = 0; i < sync->pending.count; i++) {
            ptx_location l = sync->pending.items[i];
            if (mask >> l.lane & 1) acquire(watch, r, warp, &l, wide);
            if (l.clocks[PTX_NARROW] || l.clocks[PTX_WIDE]) sync->pending.items[kept++] = l;
        }
        sync->pending.count = kept;
    }
    if (order == PTX_ACQUIRE) return;
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
        uint32_t lane = (uint32_t)__builtin_ctz(rest);
        moment_set(r, warp, lane, &sync->fences[PTX_NARROW][lane]);
        if (wide) moment_set(r, warp, lane, &sync->fences[PTX_WIDE][lane]);
    }
    tick(watch, r, warp);
}

/* The parts of a release pattern on one location, by scope: the later part includes the earlier one. */
typedef struct {
    ptx_clock *clocks[PTX_SCOPES];
    uint64_t times[PTX_SCOPES];
} release_parts;

static void later_part(release_parts *p, int scope, ptx_clock *clock, uint64_t time) {
    if (!clock || time <= p->times[scope]) return;
    p->clocks[scope] = clock;
    p->times[scope] = time;
}

static void release_now(ptx_turn *turn, uint32_t lane, ptx_location *l, bool *failed) {
    ptx_moment m = {0};
    moment_set(turn->running, turn->warp, lane, &m);
    ptx_clock *clock = moment_clock(turn->running, turn->warp, lane, &m, failed);
    bool wide = ptx_is_wide(turn->access->order, turn->access->scope);
    for (int s = PTX_NARROW; s <= (wide ? PTX_WIDE : PTX_NARROW); s++) {
        ptx_clock_set(&l->clocks[s], clock);
        l->times[s] = m.time;
    }
    moment_clear(&m);
    turn->has_released = true;
}

static bool is_release(ptx_order order) {
    return order == PTX_RELEASE || order == PTX_ACQ_REL || order == PTX_SEQ_CST;
}

static void chain_add(mr_ptx_watch *watch, ptx_chain *chain, uint64_t block,
                      const release_parts *parts, bool *failed) {
    if (parts->clocks[PTX_WIDE]) {
        ptx_clock_add(&chain->wide, parts->clocks[PTX_WIDE], failed);
        if (!block_is(watch->heard, block)) block_set(watch->heard, block);
    }
    size_t i = chain->narrow.count;
    while (i > 0 && chain->narrow.items[i - 1].block != block) i--;
    if (i == 0 && chain->narrow.count == chain->narrow.capacity) {
        /* No block that is over will acquire. */
        size_t kept = 0;
        for (size_t k = 0; k < chain->narrow.count; k++)
            if (block_is(watch->ended, chain->narrow.items[k].block))
                ptx_clock_release(chain->narrow.items[k].clock);
            else chain->narrow.items[kept++] = chain->narrow.items[k];
        chain->narrow.count = kept;
    }
    if (i == 0 && !mr_vec_push(&chain->narrow, ((ptx_block_clock){block, NULL}))) {
        *failed = true;
        return;
    }
    if (i == 0) i = chain->narrow.count;
    ptx_clock_add(&chain->narrow.items[i - 1].clock, parts->clocks[PTX_NARROW], failed);
}

void ptx_publish(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes,
                 ptx_chain *chain) {
    ptx_running *r = turn->running;
    bool releases = is_release(turn->access->order), failed = false;
    ptx_warp_sync *sync = releases ? sync_of(turn->watch, r, turn->warp) : r->sync[turn->warp];
    if (!sync) return;
    ptx_location *l = releases
                          ? location_get(&sync->released, lane, turn->is_shared, address, bytes)
                          : location_find(&sync->released, lane, turn->is_shared, address, bytes);
    if (releases && l) release_now(turn, lane, l, &failed);
    release_parts parts = {0};
    for (int s = 0; s < PTX_SCOPES; s++) {
        ptx_moment *fence = &sync->fences[s][lane];
        if (fence->time)
            later_part(&parts, s, moment_clock(r, turn->warp, lane, fence, &failed), fence->time);
        if (l) later_part(&parts, s, l->clocks[s], l->times[s]);
    }
    if (parts.clocks[PTX_NARROW]) chain_add(turn->watch, chain, block_of(r), &parts, &failed);
    check_memory(turn->watch, failed || (releases && !l));
}

void ptx_observe(ptx_turn *turn, uint32_t lane, uint64_t address, uint32_t bytes,
                 ptx_chain *chain) {
    ptx_running *r = turn->running;
    ptx_order order = turn->access->order;
    bool acquires = order == PTX_ACQUIRE || order == PTX_ACQ_REL || order == PTX_SEQ_CST;
    bool failed = false;
    ptx_clock *narrow = NULL;
    for (size_t i = chain ? chain->narrow.count : 0; i-- > 0 && !narrow;)
        if (chain->narrow.items[i].block == block_of(r)) narrow = chain->narrow.items[i].clock;
    bool is_published = narrow || (chain && chain->wide);
    if (!is_published && !(acquires && r->sync[turn->warp])) return;
    ptx_warp_sync *sync = sync_of(turn->watch, r, turn->warp);
    if (!sync) return;
    ptx_location *l = is_published
                          ? location_get(&sync->pending, lane, turn->is_shared, address, bytes)
                          : location_find(&sync->pending, lane, turn->is_shared, address, bytes);
    if (l && is_published) {
        l->is_of_update |= turn->is_update && !ptx_is_grid_barrier(turn, address);
        ptx_clock_add(&l->clocks[PTX_NARROW], narrow, &failed);
        ptx_clock_add(&l->clocks[PTX_WIDE], chain->wide, &failed);
    }
    if (l && acquires)
        acquire(turn->watch, r, turn->warp, l, ptx_is_wide(order, turn->access->scope));
    check_memory(turn->watch, failed || (is_published && !l));
}

/* ---- blocks */

static void forget_sync(ptx_running *r, uint32_t warp) {
    ptx_warp_sync *sync = r->sync[warp];
    if (!sync) return;
    for (int s = 0; s < PTX_SCOPES; s++)
        for (int lane = 0; lane < 32; lane++) moment_clear(&sync->fences[s][lane]);
    for (size_t i = 0; i < sync->pending.count; i++) location_clear(&sync->pending.items[i]);
    for (size_t i = 0; i < sync->released.count; i++) location_clear(&sync->released.items[i]);
    mr_vec_free(&sync->pending);
    mr_vec_free(&sync->released);
    free(sync);
    r->sync[warp] = NULL;
}

static void forget_order(ptx_running *r) {
    forget_known(r);
    ptx_copies_free(r->copies);
    r->copies = NULL;
    r->grid_rounds = 0;
    for (uint32_t w = 0; w < 32; w++) forget_sync(r, w);
    for (uint32_t b = 0; b < PTX_BARRIERS; b++) ptx_clock_set(&r->arrived[b], NULL);
}

void ptx_running_free(ptx_running *r) {
    forget_order(r);
    ptx_area_free(&r->shared);
    free(r);
}

static ptx_running *take_unused(mr_ptx_watch *watch) {
    pthread_mutex_lock(&watch->lock);
    ptx_running *r = watch->unused;
    if (r) watch->unused = r->next_free;
    pthread_mutex_unlock(&watch->lock);
    if (r) return r;
    r = calloc(1, sizeof *r);
    if (!r) return NULL;
    atomic_init(&r->block, UINT64_MAX);
    r->warps = (watch->threads + 31) / 32;
    r->next = atomic_load(&watch->all);
    while (!atomic_compare_exchange_weak(&watch->all, &r->next, r)) {}
    return r;
}

/* Enough shared memory, and times that have room for a block: else they start anew, with empty cells. */
static bool prepare_shared(const mr_ptx_watch *watch, ptx_running *r, uint32_t shared_bytes) {
    bool late = r->floor > watch->time_limit / 2;
    if (late) memset(r->now, 0, sizeof r->now);
    if (late) memset(r->warp_floor, 0, sizeof r->warp_floor);
    if (!late && r->shared.row_count * PTX_ROW_BYTES >= shared_bytes && r->shared.rows) return true;
    ptx_area_free(&r->shared);
    return ptx_area_init(&r->shared, shared_bytes);
}

void ptx_watch_block(mr_ptx_watch *watch, uint64_t block, uint32_t shared_bytes) {
    if (atomic_load_explicit(&watch->is_stopped, memory_order_relaxed) || block >= watch->blocks)
        return;
    ptx_running *r = find(watch, block);
    if (!r) r = take_unused(watch);
    if (!r || !prepare_shared(watch, r, shared_bytes)) {
        ptx_watch_stop(watch, "memory is out");
        return;
    }
    forget_order(r);
    atomic_store_explicit(&r->block, block, memory_order_relaxed);
    atomic_store_explicit(&watch->hints[block & 63], r, memory_order_release);
    whole_barrier(watch, r);
}

void ptx_watch_block_done(mr_ptx_watch *watch, uint64_t block) {
    ptx_running *r = find(watch, block);
    if (!r) return;
    forget_order(r);
    block_set(watch->ended, block);
    atomic_store_explicit(&r->block, UINT64_MAX, memory_order_relaxed);
    pthread_mutex_lock(&watch->lock);
    r->next_free = watch->unused;
    watch->unused = r;
    pthread_mutex_unlock(&watch->lock);
}
