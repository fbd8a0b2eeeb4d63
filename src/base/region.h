/* Memory for the whole state of a machine: chunks at addresses that never change. So the state can be
 * copied as bytes and copied back, and every pointer in it stays valid. Single objects cannot be freed; a
 * slab (slab.h) on top of a region can reuse them. The cost of a copy is the largest size that the state
 * has ever had, so chunks start small and double in size. */
#ifndef MR_BASE_REGION_H
#define MR_BASE_REGION_H

#include <stdbool.h>
#include <stddef.h>

#define MR_REGION_CHUNKS 40 /* of 8 KiB, 16 KiB, 32 KiB, ...: more than there is memory */

typedef struct {
    struct {
        char *base;
        size_t size, used;
    } chunks[MR_REGION_CHUNKS];
    int count;   /* chunks there are */
    int current; /* the one that is being filled; the following ones are empty */
} mr_region;

/* Zeroed and 16-byte aligned; NULL when memory is out. */
void *mr_region_alloc(mr_region *region, size_t bytes);
/* Moves an array of `bytes` to twice as much, or `first` bytes when it is NULL; the old one stays as waste. */
bool mr_region_double(mr_region *region, void *items_address, size_t *bytes, size_t first);
void mr_region_free(mr_region *region);

/* The size of a copy. */
size_t mr_region_size(const mr_region *region);
void mr_region_save(const mr_region *region, void *out_copy);
/* Restores the state at the time of `copy`. Anything allocated since then is gone. */
void mr_region_load(mr_region *region, const void *copy);

#endif
