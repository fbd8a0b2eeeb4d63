/* Host memory that was freed and waits for an allocation of the same size: an explored function allocates the same
 * sizes in each call. New memory of the system costs more than the function's work on it, as the kernel clears each
 * page when it is first touched. */
#ifndef MR_VIRTUAL_SPARE_H
#define MR_VIRTUAL_SPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

typedef struct {
    void *at; /* for free() */
    uint64_t size;
} spare_block;

typedef struct {
    MR_VEC(spare_block) blocks;
    size_t bytes;
} spares;

/* A block of this size, with any bytes in it; NULL: there is none. */
void *mr_spares_take(spares *s, uint64_t size);
/* False: it is not kept, as it is small or there are too many. */
bool mr_spares_keep(spares *s, void *at, uint64_t size);
void mr_spares_drop(spares *s, size_t bytes); /* at least so many bytes, or all */

#endif
