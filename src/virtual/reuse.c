/* Reuse of freed memory: the policies of R29 and R30, guards (R9, R33), and the return to the system (R31).
 *
 * The order: memory freed in the same stream, at once; memory freed in another one, when an event orders the free
 * before; memory free for everyone; new memory. Last comes memory that another stream is about to free, with a wait.
 * The invariant easiest to break: block->free_work is valid only while that FREE is pending, and leads to all blocks
 * that it freed. So every block must leave a cache by take(). */
#include <string.h>

#include "virtual/state.h"

#define LOOK             8    /* entries of a bin that are looked at for the best fit */
#define LOOK_AT_WORKS    1024 /* newest works whose memory is compared */
#define EVENT_CANDIDATES 4    /* blocks for which the order of events is searched, an allocation */

/* ---- a stream's own cache */

static int cache_bin(uint64_t size) {
    return 63 - __builtin_clzll(size / BLOCK_GRANULE);
}

static void stream_insert(block *b) {
    queue *q = b->freed_in;
    if (!q->cached) {
        q->cached = mr_slab_alloc(&b->device->gpu->caches);
        if (!q->cached) { /* out of memory: not for same-stream reuse, then */
            b->freed_in = NULL;
            return;
        }
        memset(q->cached, 0, sizeof *q->cached);
    }
    int bin = cache_bin(b->size);
    b->with_stream = true;
    b->queue_previous = NULL;
    b->queue_next = q->cached->first[bin];
    if (b->queue_next) b->queue_next->queue_previous = b;
    q->cached->first[bin] = b;
    q->cached->occupied |= (uint64_t)1 << bin;
}

static void stream_remove(block *b) {
    if (!b->with_stream) return;
    cache_bins *cached = b->freed_in->cached;
    int bin = cache_bin(b->size);
    b->with_stream = false;
    if (b->queue_next) b->queue_next->queue_previous = b->queue_previous;
    if (b->queue_previous) b->queue_previous->queue_next = b->queue_next;
    else cached->first[bin] = b->queue_next;
    if (!cached->first[bin]) cached->occupied &= ~((uint64_t)1 << bin);
}

/* Pending work of another stream touches it. */
static bool is_used(const queue *q, const block *b) {
    const char *first = q->device->pool.space->arena.base + b->offset, *end = first + b->size;
    const vgpu *gpu = q->device->gpu;
    int looked = 0;
    for (const work *w = gpu->newest; w && looked < LOOK_AT_WORKS; w = w->older, looked++)
        for (uint32_t i = 0; w->queue != q && i < w->command->operand_count; i++) {
            const mr_storage *s = w->command->operands[i].tensor->storage;
            const char *at = s->host;
            if (s->kind == MR_MEMORY_DEVICE && at < end && first < at + s->bytes) return true;
        }
    return false;
}

/* For a chooser that wants mistakes to show: the newest block of this size that is still in use; else the newest. */
static block *find_used(const queue *q, uint64_t size) {
    block *newest = NULL;
    for (block *b = q->cached->first[cache_bin(size)]; b; b = b->queue_next) {
        if (b->size != size) continue;
        if (is_used(q, b)) return b;
        if (!newest) newest = b;
    }
    return newest;
}

static block *stream_find(const queue *q, uint64_t size) {
    if (!q->cached || !q->cached->occupied) return NULL;
    int bin = cache_bin(size), looked = 0;
    block *best = q->device->gpu->chooser->seeks_used_memory ? find_used(q, size) : NULL;
    if (best) return best;
    for (block *b = q->cached->first[bin]; b && looked < LOOK; b = b->queue_next, looked++) {
        if (b->size == size) return b;
        if (b->size > size && (!best || b->size < best->size)) best = b;
    }
    if (best || bin == CACHE_BIN_COUNT - 1) return best;
    uint64_t larger = q->cached->occupied & ~(uint64_t)0 << (bin + 1);
    return larger ? q->cached->first[__builtin_ctzll(larger)] : NULL;
}

/* ---- into and out of the caches */

static pool *pool_of(const block *b) {
    return &b->device->pool;
}

static void cache(block *b, block_state state) {
    pool *p = pool_of(b);
    b->state = state;
    if (state == BLOCK_PENDING) {
        p->pending_count++;
        mr_bins_insert(&p->space->pending, b);
    } else {
        mr_bins_insert(&p->space->cached, b);
    }
    stream_insert(b);
}

static void uncache(block *b) {
    pool *p = pool_of(b);
    if (b->state == BLOCK_PENDING) {
        p->pending_count--;
        mr_bins_remove(&p->space->pending, b);
    } else {
        mr_bins_remove(&p->space->cached, b);
    }
    stream_remove(b);
}

static void attach(block *b, work *freeing) {
    b->free_work = freeing;
    b->sibling_previous = NULL;
    b->sibling = freeing->u.freed;
    if (b->sibling) b->sibling->sibling_previous = b;
    freeing->u.freed = b;
}

static void detach(block *b) {
    if (!b->free_work) return;
    if (b->sibling) b->sibling->sibling_previous = b->sibling_previous;
    if (b->sibling_previous) b->sibling_previous->sibling = b->sibling;
    else b->free_work->u.freed = b->sibling;
    b->free_work = NULL;
}

/* Takes it out of the cache into use; the surplus stays there. */
static block *take(block *b, uint64_t size) {
    uncache(b);
    block *rest = mr_pool_split(pool_of(b), b, size);
    if (rest) {
        rest->freed_in = b->freed_in;
        rest->freed_index = b->freed_index;
        if (b->free_work) attach(rest, b->free_work);
        cache(rest, b->state);
    }
    detach(b);
    b->state = BLOCK_USED;
    return b;
}

static bool anyone_may_have(const block *b, bool opportunistic) {
    return opportunistic || !b->freed_in || b->freed_index <= b->freed_in->proven;
}

static void merge(pool *p, bool opportunistic) {
    for (int bin = 0; (bin = mr_bins_next(&p->space->cached, bin)) >= 0; bin++)
        for (block *b = p->space->cached.first[bin], *next; b; b = next) {
            next = b->next;
            if (!anyone_may_have(b, opportunistic)) continue;
            uncache(b);
            mr_pool_put(p, b);
        }
}

void mr_pool_merge(pool *p) {
    merge(p, p->device->gpu->set.reuse_opportunistic);
}

/* ---- freeing */

/* The block may not be reused before all earlier commands of `stream` are done. */
static void guard_against(block *b, const queue *freeing, const mr_stream *stream) {
    queue *user = mr_virtual_queue_of(stream);
    if (!user || user == freeing || !user->tail) return;
    edge *e = mr_slab_alloc(&b->device->gpu->edges);
    b->guards++;
    if (!e) return; /* then it is never reused: wasteful, but not wrong */
    *e = (edge){.from = user->tail, .next_out = user->tail->out, .u.guarded = b};
    user->tail->out = e;
}

void mr_pool_guard(const mr_storage *storage, const queue *freeing, mr_place from) {
    block *b = storage->impl;
    for (size_t i = 0; from == MR_PLACE_USERS && b && i < storage->used_by.count; i++)
        guard_against(b, freeing, storage->used_by.items[i]);
    if (from == MR_PLACE_OWNER && b && storage->stream->closed)
        guard_against(b, freeing, storage->stream);
}

static void hold_guarded(pool *p, block *b) {
    b->state = BLOCK_GUARDED;
    b->previous = NULL;
    b->next = p->guarded;
    if (b->next) b->next->previous = b;
    p->guarded = b;
    p->guarded_count++;
}

void mr_pool_free(work *w, mr_storage *storage) {
    queue *q = w->queue;
    block *b = storage->impl;
    if (!b) return;
    storage->impl = NULL;
    b->reuse_after = NULL;
    b->freed_in = q;
    b->freed_index = w->index;
    attach(b, w);
    if (b->guards) hold_guarded(pool_of(b), b);
    else cache(b, BLOCK_PENDING);
}

void mr_pool_free_now(mr_storage *storage) {
    block *b = storage->impl;
    if (!b) return;
    storage->impl = NULL;
    b->reuse_after = b->free_work = NULL;
    b->freed_in = NULL;
    if (b->guards) hold_guarded(pool_of(b), b);
    else mr_pool_put(pool_of(b), b);
}

void mr_pool_free_done(work *w) {
    for (block *b = w->u.freed, *next; b; b = next) {
        next = b->sibling;
        b->free_work = NULL;
        if (b->state != BLOCK_PENDING) continue; /* still guarded */
        pool *p = pool_of(b);
        p->pending_count--;
        mr_bins_remove(&p->space->pending, b);
        mr_bins_insert(&p->space->cached, b);
        b->state = BLOCK_CACHED;
    }
    w->u.freed = NULL;
}

void mr_pool_guard_done(block *b) {
    pool *p = pool_of(b);
    if (--b->guards) return;
    if (b->next) b->next->previous = b->previous;
    if (b->previous) b->previous->next = b->next;
    else p->guarded = b->next;
    p->guarded_count--;
    if (b->freed_in) cache(b, b->free_work ? BLOCK_PENDING : BLOCK_CACHED);
    else mr_pool_put(p, b);
}

void mr_pool_queue_gone(queue *q) {
    for (int i = 0; i < q->device->gpu->device_count; i++)
        for (block *b = q->device->gpu->devices[i].pool.guarded; b; b = b->next)
            if (b->freed_in == q) b->freed_in = NULL;
    if (!q->cached) return;
    for (; q->cached->occupied;) {
        block *b = q->cached->first[__builtin_ctzll(q->cached->occupied)];
        uncache(b);
        mr_pool_put(pool_of(b), b);
    }
    mr_slab_free(&q->device->gpu->caches, q->cached);
    q->cached = NULL;
}

void mr_pool_synchronized(vdevice *device) {
    uint64_t keep = (uint64_t)device->gpu->set.release_threshold;
    if (device->pool.reserved <= keep) return;
    mr_pool_merge(&device->pool);
    mr_pool_release(&device->pool, keep);
}

void mr_pool_reset(vdevice *device) {
    for (queue *q = device->first; q; q = q->next) {
        if (q->cached) mr_slab_free(&device->gpu->caches, q->cached);
        q->cached = NULL;
    }
    mr_pool_forget(&device->pool);
}

/* ---- allocating */

/* R30, policy 1: a block whose free is already ordered before the stream. */
static block *find_by_event(queue *q, uint64_t size) {
    const pool *p = &q->device->pool;
    int candidates = 0;
    for (int bin = mr_bin_of(size); (bin = mr_bins_next(&p->space->pending, bin)) >= 0; bin++)
        for (block *b = p->space->pending.first[bin]; b; b = b->next) {
            if (b->size < size || b->freed_in == q) continue;
            if (mr_virtual_ordered_after(q->tail, b->freed_in, b->freed_index)) return b;
            if (++candidates == EVENT_CANDIDATES) return NULL;
        }
    return NULL;
}

/* R30, policy 2, or proven free by a synchronisation. */
static block *find_complete(const pool *p, bool opportunistic, uint64_t size) {
    block *b = mr_bins_find(&p->space->cached, size);
    if (!b || opportunistic) return b;
    for (int looked = 0; b && looked < LOOK; b = b->next, looked++)
        if (b->size >= size && anyone_may_have(b, false)) return b;
    return NULL;
}

static block *find_shared(pool *p, bool opportunistic, uint64_t size) {
    block *b = find_complete(p, opportunistic, size);
    if (b) return take(b, size);
    return mr_pool_carve(p, size);
}

/* Whether a free that may be done by now would help, once the device is brought up to date. */
static bool worth_a_look(const pool *p, uint64_t size) {
    return p->guarded || (p->pending_count && mr_bins_find(&p->space->pending, size));
}

static block *find_reusable(queue *q, uint64_t size, bool opportunistic, bool looked) {
    vgpu *gpu = q->device->gpu;
    pool *p = &q->device->pool;
    block *b = stream_find(q, size);
    if (b) return take(b, size);
    if (!looked && p->pending_count && q->tail &&
        mr_virtual_decide(gpu, MR_OPEN_REUSE_EVENT, NULL, gpu->set.reuse_event)) {
        b = find_by_event(q, size);
        if (b) return take(b, size);
    }
    return find_shared(p, opportunistic, size);
}

/* R30, policy 3: the allocation waits for another stream's free. */
static block *find_to_come(pool *p, uint64_t size) {
    block *b = mr_bins_find(&p->space->pending, size);
    if (!b) return NULL;
    work *freeing = b->free_work;
    b = take(b, size);
    b->reuse_after = freeing;
    return b;
}

void mr_pool_give_back(vgpu *gpu) {
    for (int i = 0; i < gpu->device_count; i++) {
        pool *p = &gpu->devices[i].pool;
        mr_pool_merge(p);
        mr_pool_release(p, 0);
    }
}

static block *squeeze(vdevice *device, uint64_t size) {
    mr_pool_give_back(device->gpu);
    return mr_pool_grow(&device->pool, size);
}

/* Memory that is free, or that another stream is about to free. */
static block *find_other(vdevice *device, uint64_t size, bool opportunistic, bool internal) {
    pool *p = &device->pool;
    merge(p, opportunistic);
    block *b = mr_pool_carve(p, size);
    if (!b) b = mr_pool_grow(p, size);
    if (!b && internal) b = find_to_come(p, size);
    return b ? b : squeeze(device, size);
}

pool_answer mr_pool_alloc(queue *q, uint64_t size, pool_effort effort, block **out_block) {
    vdevice *device = q->device;
    vgpu *gpu = device->gpu;
    pool *p = &device->pool;
    bool opportunistic =
        mr_virtual_decide(gpu, MR_OPEN_REUSE_COMPLETE, NULL, gpu->set.reuse_opportunistic);
    bool short_of_it = p->pending_count || p->guarded_count;
    bool internal =
        short_of_it && mr_virtual_decide(gpu, MR_OPEN_REUSE_WAIT, NULL, gpu->set.reuse_internal);
    block *b = *out_block = NULL;
    if (effort < POOL_WAITED) {
        b = find_reusable(q, size, opportunistic, effort == POOL_LOOKED);
        if (!b && effort == POOL_FIRST && worth_a_look(p, size)) return POOL_LOOK;
        if (!b) b = find_other(device, size, opportunistic, internal);
        /* No single free is enough, but all of them together may be. */
        if (!b && internal) return POOL_WAIT;
    } else {
        b = squeeze(device, size);
    }
    *out_block = b;
    return b ? POOL_FOUND : POOL_NONE;
}
