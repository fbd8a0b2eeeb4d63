/* The memory slots of the backend: device memory from the pools, host memory from the C library, and
 * both within what this computer can really provide. Addresses that the script sees are numbers of our
 * own, the same on every run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/number.h"
#include "virtual/state.h"

/* ---- the memory that this computer can provide */

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

/* The rest of a limit that batch systems set (ulimit). `field`: the number in /proc/self/statm that counts against
 * it. */
static uint64_t left_of(int resource, int field) {
    struct rlimit bound;
    unsigned long long pages[7] = {0};
    if (getrlimit(resource, &bound) != 0 || bound.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file) {
        for (int i = 0; i <= field && fscanf(file, "%llu", &pages[i]) == 1; i++) {}
        fclose(file);
    }
    uint64_t taken = (uint64_t)pages[field] * (uint64_t)sysconf(_SC_PAGESIZE);
    return taken < bound.rlim_cur ? bound.rlim_cur - taken : 0;
}

void mr_backing_open(backing *b, uint64_t most) {
    const struct {
        uint64_t bytes;
        const char *what;
    } bounds[] = {{available_memory(), "available memory"},
                  {group_memory(), "memory left in the control group"},
                  {left_of(RLIMIT_AS, 0), "address space left by ulimit -v"},
                  {left_of(RLIMIT_DATA, 5), "memory left by ulimit -d"}};
    int least = 0;
    for (int i = 1; i < (int)(sizeof bounds / sizeof *bounds); i++)
        if (bounds[i].bytes < bounds[least].bytes) least = i;
    *b = (backing){.limit = (uint64_t)((double)bounds[least].bytes * BACKED_SHARE)};
    mr_number_format(b->source, sizeof b->source, "%.0f %% of the %s at the start",
                     BACKED_SHARE * 100, bounds[least].what);
    if (!most || most >= b->limit) return;
    b->limit = most;
    snprintf(b->source, sizeof b->source, "the limit of this sandbox");
}

/* ---- device memory */

static mr_status out_of_memory(const mr_storage *storage) {
    vdevice *device = storage->device->impl;
    const pool *p = &device->pool;
    const backing *b = &device->gpu->backing;
    uint64_t backed = b->limit - b->used + p->reserved;
    char limit[160];
    if (storage->bytes <= b->limit - b->used &&
        p->reserved + storage->bytes <= p->space->arena.limit)
        snprintf(limit, sizeof limit,
                 "no free block is large enough, and the system provides no more memory");
    else if (backed < p->space->arena.limit)
        snprintf(limit, sizeof limit, "this computer can provide %" PRIu64 " (%s)", backed,
                 b->source);
    else
        snprintf(limit, sizeof limit, "the limit of the device is %" PRIu64 " (%s)",
                 p->space->arena.limit, device->device->properties.memory_limit_source);
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of memory on device %d: %" PRIu64 " bytes wanted, %" PRIu64
                   " live, %" PRIu64 " reserved, %s",
                   device->device->index, storage->bytes, storage->device->memory.live, p->reserved,
                   limit);
}

static mr_status find_block(queue *q, uint64_t size, block **out_block) {
    vdevice *device = q->device;
    pool_answer answer = mr_pool_alloc(q, size, POOL_FIRST, out_block);
    if (answer == POOL_LOOK) { /* R49: a later call returns an error that occurs meanwhile */
        mr_error_destroy(mr_virtual_advance(device->gpu, MR_CHOICE_SUBMIT, NULL));
        answer = mr_pool_alloc(q, size, POOL_LOOKED, out_block);
    }
    if (answer == POOL_WAIT) {
        MR_TRY(mr_virtual_wait_frees(device));
        mr_pool_alloc(q, size, POOL_WAITED, out_block);
    }
    return MR_OK;
}

static mr_status alloc_on_device(mr_storage *storage) {
    vdevice *device = storage->device->impl;
    queue *q = storage->stream->impl;
    block *b = NULL;
    uint64_t size = storage->bytes ? storage->bytes : 1;
    if (size <= device->pool.space->arena.limit) {
        size = (size + BLOCK_GRANULE - 1) / BLOCK_GRANULE * BLOCK_GRANULE;
        MR_TRY(find_block(q, size, &b));
    }
    if (!b) return out_of_memory(storage);
    b->asked = storage->bytes;
    mr_arena_touch(&device->pool.space->arena, b->offset, b->offset + b->size);
    storage->impl = b;
    storage->host = device->pool.space->arena.base + b->offset;
    storage->address = mr_pool_address(&device->pool, b);
    return MR_OK;
}

/* ---- host memory */

#define HOST_ALIGNMENT    64
#define HUGE_PAGE         ((uint64_t)2 << 20)
#define HOST_ADDRESS_STEP 256

static uint64_t host_alignment(uint64_t size) {
    return size < 2 * HUGE_PAGE ? HOST_ALIGNMENT : HUGE_PAGE;
}

static uint64_t whole_host_size(uint64_t size) {
    uint64_t to = host_alignment(size);
    return (size + to - 1) / to * to;
}

static void *host_bytes(vgpu *gpu, uint64_t size) {
    const backing *b = &gpu->backing;
    if (b->used > b->limit || size > b->limit - b->used) return NULL;
    uint64_t whole = whole_host_size(size);
    void *host = mr_spares_take(&gpu->spares, whole);
    if (host) return host;
    if (whole > b->limit - b->used - gpu->spares.bytes) mr_spares_drop(&gpu->spares, SIZE_MAX);
    host = aligned_alloc(host_alignment(size), whole);
    if (host && whole >= 2 * HUGE_PAGE) mr_arena_wish_huge(host, whole);
    return host;
}

/* The pools may still hold memory that was freed. */
static mr_status empty_pools(vgpu *gpu) {
    for (int i = 0; i < gpu->device_count; i++) {
        const pool *p = &gpu->devices[i].pool;
        if (p->pending_count || p->guarded_count) MR_TRY(mr_virtual_wait_frees(&gpu->devices[i]));
    }
    mr_pool_give_back(gpu);
    return MR_OK;
}

static mr_status alloc_on_host(vgpu *gpu, mr_storage *storage) {
    backing *b = &gpu->backing;
    uint64_t size = storage->bytes ? storage->bytes : 1;
    storage->host = host_bytes(gpu, size);
    if (!storage->host && size <= b->limit) {
        MR_TRY(empty_pools(gpu));
        storage->host = host_bytes(gpu, size);
    }
    if (!storage->host)
        return mr_fail(MR_CODE_OUT_OF_MEMORY,
                       "out of host memory: %" PRIu64 " bytes wanted, %" PRIu64
                       " in use by host and devices, this computer can provide %" PRIu64 " (%s)",
                       storage->bytes, b->used, b->limit, b->source);
    if (!mr_undo_allocated(&gpu->undo, storage->host)) {
        free(storage->host);
        storage->host = NULL;
        return mr_no_memory("for a checkpoint");
    }
    mr_virtual_born(gpu, storage);
    b->used += size;
    b->of_host += size;
    storage->address = gpu->next_host_address;
    gpu->next_host_address +=
        (size + HOST_ADDRESS_STEP - 1) / HOST_ADDRESS_STEP * HOST_ADDRESS_STEP;
    return MR_OK;
}

void mr_virtual_memory_release(mr_storage *storage) {
    vgpu *gpu = vgpu_of(storage->machine);
    uint64_t size = storage->bytes ? storage->bytes : 1;
    gpu->backing.used -= size;
    gpu->backing.of_host -= size;
    bool keeps = storage->machine->memory.host_begins_zero && !mr_undo_is_on(&gpu->undo);
    if (!keeps || !mr_spares_keep(&gpu->spares, storage->host, whole_host_size(size)))
        mr_undo_free_later(&gpu->undo, storage->host);
    storage->host = NULL;
}

size_t mr_virtual_spare_bytes(mr_machine *machine) {
    return vgpu_of(machine)->spares.bytes;
}

void mr_virtual_drop_spares(mr_machine *machine, size_t bytes) {
    mr_spares_drop(&vgpu_of(machine)->spares, bytes);
}

mr_status mr_virtual_memory_alloc(mr_storage *storage) {
    if (storage->kind == MR_MEMORY_DEVICE) return alloc_on_device(storage);
    return alloc_on_host(vgpu_of(storage->machine), storage);
}

uint64_t mr_virtual_memory_reserved(mr_device *device) {
    vdevice *d = device->impl;
    return d->pool.reserved;
}

mr_status mr_virtual_memory_trim(mr_device *device) {
    vdevice *d = device->impl;
    MR_TRY(mr_virtual_advance(d->gpu, MR_CHOICE_ACCESS, NULL));
    mr_pool_merge(&d->pool);
    mr_pool_release(&d->pool, 0);
    return MR_OK;
}

mr_status mr_virtual_memory_free_wait(mr_storage *storage) {
    vdevice *device = storage->device->impl;
    vgpu *gpu = device->gpu;
    bool waits = mr_virtual_decide(gpu, MR_OPEN_FREE_WAITS, NULL, gpu->set.free_waits);
    return waits ? mr_virtual_wait_device(device) : MR_OK;
}

/* ---- memory that a kernel reaches through a pointer in memory */

bool mr_virtual_memory_at(mr_machine *machine, uint64_t address, mr_memory_block *out_block) {
    const vgpu *gpu = vgpu_of(machine);
    for (int i = 0; i < gpu->device_count; i++) {
        const pool *p = &gpu->devices[i].pool;
        uint64_t offset = mr_pool_offset(p, address);
        if (address < p->address || offset >= p->space->arena.limit) continue;
        for (const block *b = p->lowest; b && b->offset <= offset; b = b->above) {
            if (offset - b->offset >= b->size) continue;
            uint64_t first = mr_pool_address(p, b);
            bool is_there = b->state == BLOCK_USED || b->state == BLOCK_PENDING ||
                            b->state == BLOCK_GUARDED; /* a free that is submitted, but not done */
            if (!is_there || address - first >= b->asked) return false;
            *out_block = (mr_memory_block){
                .first = first, .end = first + b->asked, .host = p->space->arena.base + b->offset};
            return true;
        }
    }
    return false;
}

void mr_virtual_will_write(mr_machine *machine, const mr_memory_block *piece) {
    vgpu *gpu = vgpu_of(machine);
    char *first = piece->host, *end = first + (piece->end - piece->first);
    char *low = first, *high = end; /* host memory: only these bytes are known to be ours */
    for (int i = 0; i < gpu->device_count; i++) {
        const arena *a = &gpu->devices[i].pool.space->arena;
        if (first < a->base || first >= a->base + a->mapped) continue;
        low = a->base;
        high = a->base + a->mapped;
    }
    mr_undo_save(&gpu->undo, low, high, first, end);
}
