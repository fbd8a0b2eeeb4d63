/* Objects of one size, handed out from chunks and put back on a free list. An allocation costs a
 * few instructions and no memory is returned before the slab is destroyed. */
#ifndef MR_BASE_SLAB_H
#define MR_BASE_SLAB_H

#include "base/region.h"

/* Tells AddressSanitizer which objects are in use. Otherwise it would not find a use after free. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define MR_SLAB_UNPOISON(slab, object) ASAN_UNPOISON_MEMORY_REGION(object, (slab)->object_size)
#define MR_SLAB_HIDE(slab, object)     ASAN_POISON_MEMORY_REGION(object, (slab)->object_size)
#else
#define MR_SLAB_UNPOISON(slab, object) ((void)0)
#define MR_SLAB_HIDE(slab, object)     ((void)0)
#endif

typedef struct {
    size_t object_size; /* rounded up to 16 */
    size_t per_chunk;   /* at most, in a region */
    void *free;         /* first free object; its first word links to the next */
    void *chunks;       /* list of chunks, for destruction */
    mr_region *region;  /* where chunks come from; NULL: malloc */
    size_t live;        /* objects handed out */
} mr_slab;

void mr_slab_init(mr_slab *slab, size_t object_size, size_t per_chunk);
/* Objects in a region: chunks begin small and double up to `per_chunk`; they go with the region. */
void mr_slab_init_in(mr_slab *slab, mr_region *region, size_t object_size, size_t per_chunk);
/* Call this after the region's bytes were copied: under AddressSanitizer, hides all free objects again. */
void mr_slab_hide_free(const mr_slab *slab);
void *mr_slab_refill(mr_slab *slab); /* the slow path of mr_slab_alloc */
void mr_slab_destroy(mr_slab *slab); /* objects still handed out are gone too */

/* Uninitialised memory, 16-byte aligned; NULL when memory is out. */
static inline void *mr_slab_alloc(mr_slab *slab) {
    void *object = slab->free;
    if (!object) return mr_slab_refill(slab);
    MR_SLAB_UNPOISON(slab, object);
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
