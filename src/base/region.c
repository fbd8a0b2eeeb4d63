/* See region.h. A copy is: the number of chunks in use, how much of each is, and then their bytes. */
#include "base/region.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CHUNK ((size_t)8 << 10)
#define ALIGNMENT   ((size_t)16)

/* AddressSanitizer: what a slab has hidden is copied like the rest. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#define UNCOVER(base, size) ASAN_UNPOISON_MEMORY_REGION(base, size)
#else
#define UNCOVER(base, size) ((void)0)
#endif

static bool add_chunk(mr_region *region, size_t bytes) {
    if (region->count == MR_REGION_CHUNKS) return false;
    size_t size = FIRST_CHUNK << region->count;
    while (size < bytes) size *= 2;
    char *base = malloc(size);
    if (!base) return false;
    region->chunks[region->count].base = base;
    region->chunks[region->count].size = size;
    region->chunks[region->count].used = 0;
    region->count++;
    return true;
}

void *mr_region_alloc(mr_region *region, size_t bytes) {
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    for (;; region->current++) {
        if (region->current == region->count && !add_chunk(region, bytes)) return NULL;
        if (bytes <= region->chunks[region->current].size - region->chunks[region->current].used)
            break;
    }
    void *memory = region->chunks[region->current].base + region->chunks[region->current].used;
    region->chunks[region->current].used += bytes;
    UNCOVER(memory, bytes);
    memset(memory, 0, bytes);
    return memory;
}

bool mr_region_double(mr_region *region, void *items_address, size_t *bytes, size_t first) {
    void **items = items_address;
    size_t wanted = *bytes ? 2 * *bytes : first;
    void *grown = mr_region_alloc(region, wanted);
    if (!grown) return false;
    if (*bytes) memcpy(grown, *items, *bytes);
    *items = grown;
    *bytes = wanted;
    return true;
}

void mr_region_free(mr_region *region) {
    for (int i = 0; i < region->count; i++) {
        UNCOVER(region->chunks[i].base, region->chunks[i].size);
        free(region->chunks[i].base);
    }
    *region = (mr_region){0};
}

static int chunks_in_use(const mr_region *region) {
    return region->current < region->count ? region->current + 1 : region->count;
}

size_t mr_region_size(const mr_region *region) {
    int count = chunks_in_use(region);
    size_t size = (size_t)(count + 1) * sizeof(size_t);
    for (int i = 0; i < count; i++) size += region->chunks[i].used;
    return size;
}

void mr_region_save(const mr_region *region, void *out_copy) {
    size_t *head = out_copy, count = (size_t)chunks_in_use(region);
    char *bytes = (char *)(head + 1 + count);
    head[0] = count;
    for (size_t i = 0; i < count; i++) {
        size_t used = head[1 + i] = region->chunks[i].used;
        UNCOVER(region->chunks[i].base, used);
        memcpy(bytes, region->chunks[i].base, used);
        bytes += used;
    }
}

void mr_region_load(mr_region *region, const void *copy) {
    const size_t *head = copy;
    size_t count = head[0];
    const char *bytes = (const char *)(head + 1 + count);
    for (size_t i = 0; i < (size_t)region->count; i++) {
        size_t used = region->chunks[i].used = i < count ? head[1 + i] : 0;
        if (!used) continue;
        UNCOVER(region->chunks[i].base, used);
        memcpy(region->chunks[i].base, bytes, used);
        bytes += used;
    }
    region->current = count ? (int)count - 1 : 0;
}
