/* Pinned host memory (R22): pages of our own that the driver registers, so that their values outlive the
 * context (mr.reset keeps host tensors). Registering costs as much as some hundred launches, so released memory stays
 * registered and serves later requests of its size class. There are eight classes for each doubling, which wastes an
 * eighth at most. Small ones share a slab of SLAB_BYTES. This file never waits, so that a wait may return blocks;
 * pinning.c waits if there is none. */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/wait/wait.h"

#define SMALLEST   256 /* bytes; the alignment of all, too */
#define SLAB_BYTES ((uint64_t)1 << 20)
#define HUGE_PAGE  ((uint64_t)2 << 20)
#define CLASSES    (8 * 48)

typedef struct region region;
typedef struct block block;

/* A range of pages, registered as a whole. */
struct region {
    region *previous, *next;
    char *host;
    CUdeviceptr device;
    uint64_t bytes;
    uint64_t block_bytes;
    uint32_t block_count, used;
    bool registered;
    block *blocks;
};

/* The object of mr_storage.impl of pinned memory. */
struct block {
    block *next; /* free ones of the class */
    region *region;
};

struct cuda_pinned {
    region *regions;
    block *free[CLASSES];
};

/* ---- size classes */

/* The class, and its size in *out_bytes; CLASSES when it is beyond all of them. */
static unsigned class_of(uint64_t bytes, uint64_t *out_bytes) {
    uint64_t size = SMALLEST;
    unsigned class = 0;
    for (; class < CLASSES; class += 8, size *= 2) {
        if (bytes > size * 2) continue;
        uint64_t step = size / 8 < SMALLEST ? SMALLEST : size / 8;
        uint64_t over = bytes > size ? (bytes - size + step - 1) / step : 0;
        *out_bytes = size + over * step;
        return class + (unsigned)over; /* the eighth is the first of the next doubling */
    }
    return CLASSES;
}

/* ---- regions */

static CUresult register_region(region *r) {
    CUresult result = mr_cu.MemHostRegister(
        r->host, r->bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) result = CUDA_SUCCESS;
    if (result == CUDA_SUCCESS) result = mr_cu.MemHostGetDevicePointer(&r->device, r->host, 0);
    r->registered = result == CUDA_SUCCESS;
    return result;
}

static void destroy_region(cuda_pinned *pinned, region *r) {
    if (r->previous) r->previous->next = r->next;
    else pinned->regions = r->next;
    if (r->next) r->next->previous = r->previous;
    if (r->registered) mr_cu.MemHostUnregister(r->host);
    munmap(r->host, r->bytes);
    free(r->blocks);
    free(r);
}

/* Linux promises more memory than there is; a registered page must be there. */
static bool plausible(uint64_t bytes) {
    return bytes <= (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) / 10 * 9;
}

static region *create_region(cuda_pinned *pinned, uint64_t block_bytes, CUresult *out_result) {
    uint64_t count = block_bytes < SLAB_BYTES ? SLAB_BYTES / block_bytes : 1;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = (count * block_bytes + page - 1) / page * page;
    *out_result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!plausible(bytes)) return NULL;
    region *r = calloc(1, sizeof *r);
    block *blocks = calloc(count, sizeof *blocks);
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!r || !blocks || host == MAP_FAILED) {
        if (host != MAP_FAILED) munmap(host, bytes);
        free(blocks);
        free(r);
        return NULL;
    }
    if (bytes >= HUGE_PAGE)
        madvise(host, bytes, MADV_HUGEPAGE); /* fewer pages to pin; only a wish */
    *r = (region){.host = host,
                  .bytes = bytes,
                  .block_bytes = block_bytes,
                  .block_count = (uint32_t)count,
                  .blocks = blocks,
                  .next = pinned->regions};
    if (r->next) r->next->previous = r;
    pinned->regions = r;
    *out_result = register_region(r);
    if (r->registered) return r;
    destroy_region(pinned, r);
    return NULL;
}

CUresult mr_cuda_pinned_refill(cuda_machine *cuda, uint64_t wanted) {
    cuda_pinned *pinned = cuda->pinned;
    CUresult result;
    uint64_t block_bytes;
    unsigned class = class_of(wanted, &block_bytes);
    region *r = create_region(pinned, block_bytes, &result);
    if (!r) return result;
    for (uint32_t i = r->block_count; i-- > 0;) {
        r->blocks[i] = (block){.next = pinned->free[class], .region = r};
        pinned->free[class] = &r->blocks[i];
    }
    return CUDA_SUCCESS;
}

/* ---- blocks */

bool mr_cuda_pinned_is_possible(uint64_t bytes) {
    uint64_t size;
    return class_of(bytes, &size) < CLASSES;
}

bool mr_cuda_pinned_has(const cuda_machine *cuda, uint64_t wanted) {
    uint64_t bytes;
    unsigned class = class_of(wanted, &bytes);
    return class < CLASSES && cuda->pinned->free[class];
}

bool mr_cuda_pinned_find(cuda_machine *cuda, uint64_t wanted, cuda_pinned_block *out_block) {
    uint64_t bytes;
    if (!mr_cuda_pinned_has(cuda, wanted)) return false;
    unsigned class = class_of(wanted, &bytes);
    block *b = cuda->pinned->free[class];
    region *r = b->region;
    uint64_t offset = (uint64_t)(b - r->blocks) * r->block_bytes;
    cuda->pinned->free[class] = b->next;
    r->used++;
    *out_block = (cuda_pinned_block){b, r->host + offset, r->device + offset};
    return true;
}

void mr_cuda_pinned_give(cuda_machine *cuda, void *taken) {
    block *b = taken;
    uint64_t bytes;
    unsigned class = class_of(b->region->block_bytes, &bytes);
    b->next = cuda->pinned->free[class];
    cuda->pinned->free[class] = b;
    b->region->used--;
}

void mr_cuda_pinned_release(mr_storage *storage) {
    mr_cuda_pinned_give(mr_cuda_of(storage->machine), storage->impl);
}

bool mr_cuda_pinned_has_unused(const cuda_machine *cuda) {
    for (const region *r = cuda->pinned->regions; r; r = r->next)
        if (!r->used) return true;
    return false;
}

void mr_cuda_pinned_drop_unused(cuda_machine *cuda) {
    cuda_pinned *pinned = cuda->pinned;
    for (unsigned i = 0; i < CLASSES; i++) {
        for (block **link = &pinned->free[i]; *link;) {
            if ((*link)->region->used) link = &(*link)->next;
            else *link = (*link)->next;
        }
    }
    for (region *r = pinned->regions, *next; r; r = next) {
        next = r->next;
        if (!r->used) destroy_region(pinned, r);
    }
}

/* ---- the pool's life */

mr_status mr_cuda_pinned_open(cuda_machine *cuda) {
    cuda->pinned = calloc(1, sizeof *cuda->pinned);
    if (!cuda->pinned) return mr_no_memory("for a pool of pinned memory");
    return MR_OK;
}

void mr_cuda_pinned_close(cuda_machine *cuda) {
    if (!cuda->pinned) return;
    while (cuda->pinned->regions) destroy_region(cuda->pinned, cuda->pinned->regions);
    free(cuda->pinned);
    cuda->pinned = NULL;
}

void mr_cuda_pinned_suspend(cuda_machine *cuda) {
    for (region *r = cuda->pinned->regions; r; r = r->next) {
        if (r->registered) mr_cu.MemHostUnregister(r->host);
        r->registered = false;
    }
}

mr_status mr_cuda_pinned_resume(cuda_machine *cuda) {
    mr_status status = MR_OK;
    for (region *r = cuda->pinned->regions; r; r = r->next) {
        CUresult result = register_region(r);
        if (result != CUDA_SUCCESS)
            status = mr_error_first(status, mr_cuda_complain(result, "reset: pinned host memory"));
    }
    return status;
}
