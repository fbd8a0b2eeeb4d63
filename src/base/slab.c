/* The slow path of a slab: see slab.h. */
#include "base/slab.h"

#include <stdlib.h>

#define CHUNK_HEADER 16 /* keeps the objects aligned behind the link to the next chunk */

void mr_slab_init(mr_slab *slab, size_t object_size, size_t per_chunk) {
    *slab = (mr_slab){.object_size = (object_size + 15) & ~(size_t)15, .per_chunk = per_chunk};
}

void *mr_slab_refill(mr_slab *slab) {
    char *chunk = malloc(CHUNK_HEADER + slab->object_size * slab->per_chunk);
    if (!chunk) return NULL;
    *(void **)chunk = slab->chunks;
    slab->chunks = chunk;
    /* Linked so that objects come out in ascending order: neighbours in time are neighbours. */
    for (size_t i = slab->per_chunk; i-- > 0;) {
        void *object = chunk + CHUNK_HEADER + i * slab->object_size;
        *(void **)object = slab->free;
        slab->free = object;
        MR_SLAB_HIDE(slab, object);
    }
    return mr_slab_alloc(slab);
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
