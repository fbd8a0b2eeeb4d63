/* The memory slots of the backend: device memory from the pools, host memory from the C library, and
 * both within what this computer can really back. Addresses that the script sees are numbers of our
 * own, the same on every run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "virtual/state.h"

/* ---- what this computer can back */

#define BACKED_SHARE    0.7 /* of the memory that is available when the machine is opened */
#define UNKNOWN_BACKING ((uint64_t)2 << 30)

static uint64_t available_memory(void) {
    char line[128];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    if (!file) return UNKNOWN_BACKING;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %llu kB", &kib) == 1) break;
    fclose(file);
    return kib ? (uint64_t)kib * 1024 : UNKNOWN_BACKING;
}

/* A number in a file of its own; UINT64_MAX when there is none ("max", or no such file). */
static uint64_t number_in(const char *path) {
    unsigned long long number;
    FILE *file = fopen(path, "r");
    if (!file) return UINT64_MAX;
    int found = fscanf(file, "%llu", &number);
    fclose(file);
    return found == 1 ? (uint64_t)number : UINT64_MAX;
}

/* A container may have less than the system: control groups, version 2, then version 1. */
static uint64_t group_memory(void) {
    uint64_t most = number_in("/sys/fs/cgroup/memory.max");
    uint64_t used = number_in("/sys/fs/cgroup/memory.current");
    if (most == UINT64_MAX) {
        most = number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes");
        used = number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes");
    }
    if (most == UINT64_MAX || used == UINT64_MAX) return most;
    return used < most ? most - used : 0;
}

void mr_backing_open(backing *b) {
    uint64_t available = available_memory(), group = group_memory();
    if (group < available) available = group;
    /* Batch systems bound the address space (ulimit -v), of which each arena takes its limit at once. */
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < available) available = space.rlim_cur;
    *b = (backing){.limit = (uint64_t)((double)available * BACKED_SHARE)};
}

/* ---- device memory */

static mr_status out_of_memory(const mr_storage *storage) {
    vdevice *device = storage->device->impl;
    vgpu *gpu = device->gpu;
    const pool *p = &device->pool;
    uint64_t backed = gpu->backing.limit - gpu->backing.used + p->reserved;
    const char *whose = backed < p->limit ? "what this computer can back" : "the device's limit";
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of memory on device %d: %" PRIu64 " bytes wanted, %" PRIu64
                   " live, %" PRIu64 " reserved, %s is %" PRIu64,
                   device->device->index, storage->bytes, storage->device->memory.live, p->reserved,
                   whose, backed < p->limit ? backed : p->limit);
}

static mr_status alloc_on_device(mr_storage *storage) {
    vdevice *device = storage->device->impl;
    queue *q = storage->stream->impl;
    block *b = NULL;
    uint64_t size = storage->bytes ? storage->bytes : 1;
    if (size <= device->pool.limit) {
        size = (size + BLOCK_GRANULE - 1) / BLOCK_GRANULE * BLOCK_GRANULE;
        MR_TRY(mr_pool_alloc(q, size, &b));
    }
    if (!b) return out_of_memory(storage);
    storage->impl = b;
    storage->host = device->pool.base + b->offset;
    storage->address = device->pool.address + b->offset;
    return MR_OK;
}

/* ---- host memory */

#define HOST_ALIGNMENT    64
#define HOST_ADDRESS_STEP 256

static mr_status alloc_on_host(vgpu *gpu, mr_storage *storage) {
    backing *b = &gpu->backing;
    uint64_t size = storage->bytes ? storage->bytes : 1;
    if (b->used <= b->limit && size <= b->limit - b->used) {
        size_t rounded = (size + HOST_ALIGNMENT - 1) / HOST_ALIGNMENT * HOST_ALIGNMENT;
        storage->host = aligned_alloc(HOST_ALIGNMENT, rounded);
    }
    if (!storage->host)
        return mr_fail(MR_CODE_OUT_OF_MEMORY,
                       "out of host memory: %" PRIu64 " bytes wanted, %" PRIu64
                       " in use by host and devices, what this computer can back is %" PRIu64,
                       storage->bytes, b->used, b->limit);
    b->used += size;
    storage->address = gpu->next_host_address;
    gpu->next_host_address +=
        (size + HOST_ADDRESS_STEP - 1) / HOST_ADDRESS_STEP * HOST_ADDRESS_STEP;
    return MR_OK;
}

void mr_virtual_memory_release(mr_storage *storage) {
    vgpu_of(storage->machine)->backing.used -= storage->bytes ? storage->bytes : 1;
    free(storage->host);
    storage->host = NULL;
}

mr_status mr_virtual_memory_alloc(mr_storage *storage, mr_action *alloc) {
    (void)alloc; /* it finds what to wait for in block->reuse_after */
    if (storage->kind == MR_MEMORY_DEVICE) return alloc_on_device(storage);
    return alloc_on_host(vgpu_of(storage->machine), storage);
}

uint64_t mr_virtual_memory_reserved(mr_device *device) {
    vdevice *d = device->impl;
    return d->pool.reserved;
}

mr_status mr_virtual_memory_trim(mr_device *device) {
    vdevice *d = device->impl;
    MR_TRY(mr_virtual_attend(d->gpu, MR_CHOICE_ACCESS, NULL));
    mr_pool_merge(&d->pool);
    mr_pool_release(&d->pool, 0);
    return MR_OK;
}

mr_status mr_virtual_memory_free_wait(mr_storage *storage) {
    vdevice *device = storage->device->impl;
    return device->gpu->set.free_waits ? mr_virtual_wait_device(device) : MR_OK;
}
