/* The memory of one device: an arena of address space, cut into blocks, with the stream-ordered
 * reuse of R28-R31 and R33. A page takes no memory until its first access.
 *
 * A block is in use, cached, guarded or free for everyone. A cached block was freed in a stream;
 * that stream may have it back at once, others by the policies of R30. A guarded one was freed, too, but may still be
 * in use: by a stream that record_stream named, or by its own stream, which is closed. Neighbours are merged only in
 * the last state. */
#ifndef MR_VIRTUAL_POOL_H
#define MR_VIRTUAL_POOL_H

#include "base/slab.h"
#include "model/storage.h"
#include "order/order.h"
#include "virtual/arena.h"
#include "virtual/undo.h"

#define BLOCK_GRANULE 512

typedef enum {
    BLOCK_UNRESERVED, /* address space only: what the pool may still grow into */
    BLOCK_FREE,
    BLOCK_CACHED,  /* its free is done */
    BLOCK_PENDING, /* its free is submitted */
    BLOCK_GUARDED,
    BLOCK_USED,
} block_state;

typedef struct block block;
struct block {
    uint64_t offset, size; /* of the arena; multiples of BLOCK_GRANULE */
    uint64_t asked;        /* used: bytes that the storage has */
    block *below, *above;  /* neighbours by address */
    struct vdevice *device;
    block_state state;
    bool with_stream;       /* in a bin of freed_in */
    uint32_t guards;        /* works that must be done first (R9, R33) */
    block *previous, *next; /* in a bin of the pool */
    /* Cached, pending and guarded ones. */
    struct queue *freed_in;             /* NULL: that stream is gone */
    uint64_t freed_index;               /* of the FREE in it */
    struct work *free_work;             /* the FREE while it is pending */
    block *sibling_previous, *sibling;  /* the other blocks of the same FREE (it has been split) */
    block *queue_previous, *queue_next; /* in a bin of freed_in */
    struct work *reuse_after; /* used: the ALLOC must wait for this FREE (R30, policy 3) */
};

/* Lists by size: 8 bins for each power of two. */
#define BIN_COUNT 512
typedef struct {
    uint64_t occupied[BIN_COUNT / 64];
    block *first[BIN_COUNT]; /* valid if `occupied` has its bit */
} bins;

/* The same, coarser, one bin for each power of two: there is one of these for each stream. */
#define CACHE_BIN_COUNT 64
typedef struct {
    uint64_t occupied;
    block *first[CACHE_BIN_COUNT];
} cache_bins;

/* The memory that this computer really has, for all devices and the host: beyond it, the system would kill the process
 * instead of refusing. */
typedef struct {
    uint64_t limit, used;
    uint64_t of_host; /* of `used`: the host's memory */
    char source[80];  /* the source of the limit, in words */
} backing;

/* `most`: a bound that the embedder sets, 0: none. */
void mr_backing_open(backing *b, uint64_t most);

/* The part of a pool that a checkpoint does not copy as it is: the address space, which is the process's, and the
 * bins; most of them are empty. */
typedef struct {
    arena arena;
    bins unreserved, free, cached, pending;
} pool_space;

typedef struct {
    pool_space *space;
    uint64_t address; /* the address that scripts see for its base */
    uint64_t spread; /* bytes of address that go with each byte of the arena: see mr_pool_address */
    uint64_t reserved;
    backing *backing;
    undo *undo;
    struct vdevice *device;
    block *lowest; /* all blocks by address */
    block *guarded;
    size_t guarded_count, pending_count;
    mr_slab blocks;
} pool;

/* Addresses lie farther apart than the blocks. With a spread of n, a block of k bytes has n * k bytes of address;
 * only the first k can be accessed. So a gap that is never handed out lies after each allocation and before the
 * next one, as large as the allocation n - 1 times, and takes no memory. */
static inline uint64_t mr_pool_address(const pool *p, const block *b) {
    return p->address + b->offset * p->spread;
}
/* The same in reverse, rounded down; `address` is one of the pool's. */
static inline uint64_t mr_pool_offset(const pool *p, uint64_t address) {
    return (address - p->address) / p->spread;
}

/* ---- blocks.c: ranges and their lists; no policy */

mr_status mr_pool_open(pool *p, struct vdevice *device); /* of no bytes */
void mr_pool_close(pool *p);                             /* its blocks are the region's */
/* Begins anew with so many bytes. */
mr_status mr_pool_set_limit(pool *p, uint64_t address, uint64_t spread, uint64_t limit);
void mr_pool_forget(pool *p);                 /* all blocks are gone; contents too */
block *mr_pool_carve(pool *p, uint64_t size); /* from free memory; NULL: none fits */
block *mr_pool_grow(pool *p, uint64_t size);  /* from address space; NULL: the limit is reached */
void mr_pool_put(pool *p, block *b);          /* free for everyone: merges */
void mr_pool_release(pool *p,
                     uint64_t keep); /* free memory beyond `keep` reserved bytes goes back */
/* Shortens a block in no list to `size`; NULL: it was not worth splitting, or memory is out. The
 * rest has the same state and is in no list. */
block *mr_pool_split(pool *p, block *b, uint64_t size);
void mr_bins_insert(bins *list, block *b);
void mr_bins_remove(bins *list, block *b);
block *mr_bins_find(const bins *list, uint64_t size); /* one that fits, NULL: none */
int mr_bins_next(const bins *list, int bin);          /* first occupied from `bin` on, or -1 */
int mr_bin_of(uint64_t size);

/* ---- reuse.c: the policies */

/* The allocator does not advance the device. It asks its caller to do so, and is called again with the effort made so
 * far. */
typedef enum { POOL_FIRST, POOL_LOOKED, POOL_WAITED } pool_effort;
typedef enum {
    POOL_FOUND,
    POOL_NONE,
    POOL_LOOK, /* bring the device to the host's present: a free may be done by now */
    POOL_WAIT, /* wait until no free is pending (R30, policy 3) */
} pool_answer;
/* A block for an allocation in `q`, of a multiple of BLOCK_GRANULE bytes; NULL unless FOUND. */
pool_answer mr_pool_alloc(struct queue *q, uint64_t size, pool_effort effort, block **out_block);
/* The memory that is free for everyone goes back to the system, on all devices. */
struct vgpu;
void mr_pool_give_back(struct vgpu *gpu);
void mr_pool_merge(pool *p); /* blocks that all streams may use become free, and are merged */
/* The FREE of these blocks is done; the command that `w` belongs to is about to go. */
void mr_pool_free_done(struct work *w);
void mr_pool_guard_done(block *b);
/* The memory may not be reused before the commands of that place are done (order/order.h): USERS, OWNER. Call it before
 * the free; `freeing`: NULL for an immediate free. */
void mr_pool_guard(const mr_storage *storage, const struct queue *freeing, mr_place from);
/* FREE of the storage is being submitted as `w`, which is linked into its queue already. */
void mr_pool_free(struct work *w, mr_storage *storage);
/* An immediate free (R27): all streams may use the memory at once, except for its guards. */
void mr_pool_free_now(mr_storage *storage);
void mr_pool_queue_gone(struct queue *q);          /* what it had cached is free for everyone */
void mr_pool_synchronized(struct vdevice *device); /* R31 */
void mr_pool_reset(struct vdevice *device);

#endif
