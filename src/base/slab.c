/* The slow path of a slab: see slab.h. */
#include "base/slab.h"

#include <stdlib.h>

#define CHUNK_HEADER  16 /* keeps the objects aligned after the link to the next chunk */
#define LEAST_OBJECTS 4  /* of the first chunk in a region */

void mr_slab_init(mr_slab *slab, size_t object_size, size_t per_chunk) {
    *slab = (mr_slab){.object_size = (object_size + 15) & ~(size_t)15, .per_chunk = per_chunk};
}

void mr_slab_init_in(mr_slab *slab, mr_region *region, size_t object_size, size_t per_chunk) {
    mr_slab_init(slab, object_size, per_chunk);
    slab->region = region;
}

/* Linked so that objects come out in ascending order: neighbours in time are neighbours. */
static void link_objects(mr_slab *slab, char *first, size_t count) {
    for (size_t i = count; i-- > 0;) {
        void *object = first + i * slab->object_size;
        *(void **)object = slab->free;
        slab->free = object;
        MR_SLAB_HIDE(slab, object);
    }
}

void *mr_slab_refill(mr_slab *slab) {
    if (slab->region) {
        size_t count = slab->live < LEAST_OBJECTS ? LEAST_OBJECTS : slab->live;
        if (count > slab->per_chunk) count = slab->per_chunk;
        char *objects = mr_region_alloc(slab->region, slab->object_size * count);
        if (!objects) return NULL;
        link_objects(slab, objects, count);
        return mr_slab_alloc(slab);
    }
    char *chunk = malloc(CHUNK_HEADER + slab->object_size * slab->per_chunk);
    if (!chunk) return NULL;
    *(void **)chunk = slab->chunks;
    slab->chunks = chunk;
    link_objects(slab, chunk + CHUNK_HEADER, slab->per_chunk);
    return mr_slab_alloc(slab);
}

void mr_slab_hide_free(const mr_slab *slab) {
#ifdef __SANITIZE_ADDRESS__
    for (void *object = slab->free, *next; object; object = next) {
        next = *(void **)object;
        MR_SLAB_HIDE(slab, object);
    }
#else
    (void)slab;
#endif
}

void mr_slab_destroy(mr_slab *slab) {
    while (slab->chunks) {
        void *next = *(void **)slab->chunks;
        free(slab->chunks);
        slab->chunks = next;
    }
    slab->free = NULL;
    slab->live = 0;
}
