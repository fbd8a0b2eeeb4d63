/* Blocks of a device's arena: cutting, merging, and finding one of a size in constant time. reuse.c
 * decides which allocation may use which block.
 *
 * Invariants: the blocks tile the arena without gaps; two neighbours are never both FREE nor both
 * UNRESERVED; p->reserved is the sum of all that is not UNRESERVED. */
#include <stdlib.h>
#include <string.h>

#include "virtual/state.h"

#define GROWTH ((uint64_t)2 << 20) /* the pool grows by multiples of it where it can */
#define LOOK   16                  /* entries of a bin that are compared for the best fit */

static uint64_t round_up(uint64_t size, uint64_t to) {
    return (size + to - 1) / to * to;
}

/* ---- bins */

int mr_bin_of(uint64_t size) {
    uint64_t granules = size / BLOCK_GRANULE;
    if (granules < 8) return (int)granules;
    int log = 63 - __builtin_clzll(granules);
    return (log - 2) * 8 + (int)(granules >> (log - 3) & 7);
}

static block *bins_first(const bins *list, int bin) {
    return list->occupied[bin / 64] >> bin % 64 & 1 ? list->first[bin] : NULL;
}

void mr_bins_insert(bins *list, block *b) {
    int bin = mr_bin_of(b->size);
    b->previous = NULL;
    b->next = bins_first(list, bin);
    if (b->next) b->next->previous = b;
    list->first[bin] = b;
    list->occupied[bin / 64] |= (uint64_t)1 << bin % 64;
}

void mr_bins_remove(bins *list, block *b) {
    int bin = mr_bin_of(b->size);
    if (b->next) b->next->previous = b->previous;
    if (b->previous) b->previous->next = b->next;
    else list->first[bin] = b->next;
    if (!list->first[bin]) list->occupied[bin / 64] &= ~((uint64_t)1 << bin % 64);
}

int mr_bins_next(const bins *list, int bin) {
    if (bin >= BIN_COUNT) return -1;
    uint64_t word = list->occupied[bin / 64] & ~(uint64_t)0 << bin % 64;
    for (int i = bin / 64;; word = list->occupied[i]) {
        if (word) return i * 64 + __builtin_ctzll(word);
        if (++i == BIN_COUNT / 64) return -1;
    }
}

block *mr_bins_find(const bins *list, uint64_t size) {
    int bin = mr_bin_of(size), looked = 0;
    block *best = NULL;
    for (block *b = bins_first(list, bin); b && looked < LOOK; b = b->next, looked++)
        if (b->size >= size && (!best || b->size < best->size)) best = b;
    if (best) return best;
    bin = mr_bins_next(list, bin + 1); /* anything there is large enough */
    return bin < 0 ? NULL : list->first[bin];
}

/* ---- cutting and merging */

block *mr_pool_split(pool *p, block *b, uint64_t size) {
    if (b->size - size < BLOCK_GRANULE) return NULL;
    block *rest = mr_slab_alloc(&p->blocks);
    if (!rest) return NULL;
    *rest = (block){.offset = b->offset + size,
                    .size = b->size - size,
                    .below = b,
                    .above = b->above,
                    .device = b->device,
                    .state = b->state};
    if (b->above) b->above->below = rest;
    b->above = rest;
    b->size = size;
    return rest;
}

/* `b` takes in the block above it, which is in no list. */
static void absorb_above(pool *p, block *b) {
    block *gone = b->above;
    b->size += gone->size;
    b->above = gone->above;
    if (b->above) b->above->below = b;
    mr_slab_free(&p->blocks, gone);
}

/* Returns the block that it is now part of. */
static block *put(pool *p, bins *list, block *b, block_state state) {
    b->state = state;
    if (b->above && b->above->state == state) {
        mr_bins_remove(list, b->above);
        absorb_above(p, b);
    }
    if (b->below && b->below->state == state) {
        b = b->below;
        mr_bins_remove(list, b);
        absorb_above(p, b);
    }
    mr_bins_insert(list, b);
    return b;
}

void mr_pool_put(pool *p, block *b) {
    put(p, &p->space->free, b, BLOCK_FREE);
}

block *mr_pool_carve(pool *p, uint64_t size) {
    block *b = mr_bins_find(&p->space->free, size);
    if (!b) return NULL;
    mr_bins_remove(&p->space->free, b);
    block *rest = mr_pool_split(p, b, size);
    if (rest) mr_bins_insert(&p->space->free, rest);
    b->state = BLOCK_USED;
    return b;
}

/* ---- growing and shrinking */

static bool may_reserve(const pool *p, uint64_t size) {
    return p->backing->used <= p->backing->limit && size <= p->backing->limit - p->backing->used;
}

block *mr_pool_grow(pool *p, uint64_t size) {
    block *space = mr_bins_find(&p->space->unreserved, size);
    if (!space) return NULL;
    block *below = space->below && space->below->state == BLOCK_FREE ? space->below : NULL;
    uint64_t missing = below && below->size < size ? size - below->size : size;
    uint64_t growth = round_up(missing, GROWTH);
    if (growth > space->size || !may_reserve(p, growth)) growth = missing;
    if (!may_reserve(p, growth) || !mr_arena_extend(&p->space->arena, space->offset + growth))
        return NULL;

    mr_bins_remove(&p->space->unreserved, space);
    block *rest = mr_pool_split(p, space, growth);
    if (rest) mr_bins_insert(&p->space->unreserved, rest);
    p->reserved += space->size; /* all of it, if it could not be split */
    p->backing->used += space->size;
    mr_pool_put(p, space); /* merges with `below` */
    return mr_pool_carve(p, size);
}

/* Returns its pages to the system; they read as zero. */
static void give_back(pool *p, const block *b) {
    arena *a = &p->space->arena;
    mr_undo_save(p->undo, a->base, a->base + a->mapped, a->base + b->offset,
                 a->base + b->offset + b->size);
    mr_arena_clear(a, b->offset, b->offset + b->size, !mr_undo_is_on(p->undo));
}

void mr_pool_release(pool *p, uint64_t keep) {
    for (block *b = p->lowest; b && p->reserved > keep; b = b->above) {
        if (b->state != BLOCK_FREE) continue;
        uint64_t excess = round_up(p->reserved - keep, BLOCK_GRANULE);
        mr_bins_remove(&p->space->free, b);
        if (b->size > excess) {
            block *rest = mr_pool_split(p, b, b->size - excess);
            if (rest) {
                mr_bins_insert(&p->space->free, b);
                b = rest;
            }
        }
        give_back(p, b);
        p->reserved -= b->size;
        p->backing->used -= b->size;
        /* Its neighbour below may be the block that remains, so go on from that one's neighbour. */
        block *below = b->below;
        b = put(p, &p->space->unreserved, b, BLOCK_UNRESERVED);
        if (!b->above && !mr_undo_is_on(p->undo)) mr_arena_shrink(&p->space->arena, b->offset);
        b = below ? below : p->lowest;
    }
}

/* ---- life */

static void lay_out(pool *p) {
    block *b = mr_slab_alloc(&p->blocks);
    p->lowest = b;
    if (!b) return;
    *b = (block){.size = p->space->arena.limit, .device = p->device, .state = BLOCK_UNRESERVED};
    mr_bins_insert(&p->space->unreserved, b);
}

mr_status mr_pool_open(pool *p, vdevice *device) {
    vgpu *gpu = device->gpu;
    *p = (pool){.space = calloc(1, sizeof *p->space),
                .backing = &gpu->backing,
                .undo = &gpu->undo,
                .device = device};
    mr_slab_init_in(&p->blocks, &gpu->region, sizeof(block), 64);
    return p->space ? MR_OK : mr_no_memory("for a memory pool");
}

static void drop_blocks(pool *p) {
    for (block *b = p->lowest, *above; b; b = above) {
        above = b->above;
        mr_slab_free(&p->blocks, b);
    }
    p->lowest = NULL;
}

mr_status mr_pool_set_limit(pool *p, uint64_t address, uint64_t spread, uint64_t limit) {
    mr_pool_forget(p);
    drop_blocks(p);
    mr_arena_close(&p->space->arena);
    p->address = address;
    p->spread = spread;
    p->space->arena.limit = limit / BLOCK_GRANULE * BLOCK_GRANULE;
    memset(&p->space->unreserved, 0, sizeof p->space->unreserved);
    lay_out(p);
    return p->lowest ? MR_OK : mr_no_memory("for a memory pool");
}

void mr_pool_forget(pool *p) {
    if (p->reserved) {
        mr_arena_clear(&p->space->arena, 0, p->space->arena.mapped, !mr_undo_is_on(p->undo));
        mr_arena_shrink(&p->space->arena, 0);
    }
    p->backing->used -= p->reserved;
    p->reserved = 0;
    p->guarded = NULL;
    p->guarded_count = p->pending_count = 0;
    memset(&p->space->unreserved, 0, sizeof p->space->unreserved);
    memset(&p->space->free, 0, sizeof p->space->free);
    memset(&p->space->cached, 0, sizeof p->space->cached);
    memset(&p->space->pending, 0, sizeof p->space->pending);
    drop_blocks(p);
    lay_out(p);
}

void mr_pool_close(pool *p) {
    if (!p->space) return;
    mr_arena_close(&p->space->arena);
    free(p->space);
    p->space = NULL;
}
