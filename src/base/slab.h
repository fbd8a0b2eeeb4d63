/* Objects of one size, handed out from chunks and put back on a free list: an allocation costs a
 * few instructions and no memory is returned before the slab is destroyed. */
#ifndef MR_BASE_SLAB_H
#define MR_BASE_SLAB_H

#include <stddef.h>

/* AddressSanitizer is told which objects are handed out: else it would see no use of one that was put back. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define MR_SLAB_LEND(slab, object) ASAN_UNPOISON_MEMORY_REGION(object, (slab)->object_size)
#define MR_SLAB_HIDE(slab, object) ASAN_POISON_MEMORY_REGION(object, (slab)->object_size)
#else
#define MR_SLAB_LEND(slab, object) ((void)0)
#define MR_SLAB_HIDE(slab, object) ((void)0)
#endif

typedef struct {
    size_t object_size; /* rounded up to 16 */
    size_t per_chunk;
    void *free;   /* first free object; its first word links to the next */
    void *chunks; /* list of chunks, for destruction */
    size_t live;  /* objects handed out */
} mr_slab;

void mr_slab_init(mr_slab *slab, size_t object_size, size_t per_chunk);
void *mr_slab_refill(mr_slab *slab); /* the slow path of mr_slab_alloc */
void mr_slab_destroy(mr_slab *slab); /* objects still handed out are gone too */

/* Uninitialised memory, 16-byte aligned; NULL when memory is out. */
static inline void *mr_slab_alloc(mr_slab *slab) {
    void *object = slab->free;
    if (!object) return mr_slab_refill(slab);
    MR_SLAB_LEND(slab, object);
    slab->free = *(void **)object;
    slab->live++;
    return object;
}

static inline void mr_slab_free(mr_slab *slab, void *object) {
    *(void **)object = slab->free;
    slab->free = object;
    slab->live--;
    MR_SLAB_HIDE(slab, object);
}

#endif
