/* Device memory: a pool of the driver for each device (R28-R31), which keeps memory once it has allocated
 * it. The driver does the reuse. This file does record_stream (R33), counts live memory (for a reset), and
 * writes error messages.
 *
 * A free that must wait for other streams must not delay its own stream. So it is submitted to the
 * device's reclaim stream, which is used for nothing else and waits for all of these streams. */
#include <inttypes.h>
#include <stdlib.h>

#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"
#include "order/order.h"

/* ---- the pool */

/* The first allocation takes the driver some milliseconds, which would look like a wait in a script. */
static mr_status warm_up(cuda_device *device) {
    CUdeviceptr address;
    MR_CUDA_TRY(device, mr_cu.MemAllocFromPoolAsync(&address, 1, device->pool, device->reclaim),
                "memory pool");
    MR_CUDA_TRY(device, mr_cu.MemFreeAsync(address, device->reclaim), "memory pool");
    return MR_OK;
}

mr_status mr_cuda_pool_open(cuda_device *device) {
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device->handle},
    };
    cuuint64_t keep = UINT64_MAX;
    MR_CUDA_TRY(device, mr_cu.MemPoolCreate(&device->pool, &properties), "memory pool");
    MR_CUDA_TRY(device,
                mr_cu.MemPoolSetAttribute(device->pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
                "memory pool");
    MR_CUDA_TRY(device, mr_cu.StreamCreateWithPriority(&device->reclaim, CU_STREAM_NON_BLOCKING, 0),
                "memory pool");
    return warm_up(device);
}

/* The pool itself goes with its last block. A lost device refuses all of this, and has lost the rest. */
void mr_cuda_pool_close(cuda_device *device) {
    cuda_machine *cuda = device->machine;
    while (device->blocks) {
        cuda_block *block = device->blocks;
        device->blocks = block->next;
        mr_cu.MemFreeAsync(block->address, device->reclaim);
        mr_slab_free(&cuda->blocks, block);
    }
    if (device->reclaim) mr_cu.StreamDestroy(device->reclaim);
    if (device->pool) mr_cu.MemPoolDestroy(device->pool);
    device->reclaim = NULL;
    device->pool = NULL;
}

static uint64_t pool_bytes(const cuda_device *device, CUmemPool_attribute which) {
    cuuint64_t bytes = 0;
    if (device->pool && mr_cu.MemPoolGetAttribute(device->pool, which, &bytes) != CUDA_SUCCESS)
        return 0;
    return bytes;
}

/* ---- allocation */

static mr_status out_of_memory(cuda_device *device, const mr_storage *storage) {
    size_t free_bytes = 0, total = 0;
    mr_cu.MemGetInfo(&free_bytes, &total);
    if (storage->bytes > device->device->properties.total_memory)
        return mr_fail(
            MR_CODE_OUT_OF_MEMORY,
            "out of memory on device %d: %" PRIu64 " bytes wanted, more than all of its %" PRIu64,
            device->device->index, storage->bytes, device->device->properties.total_memory);
    return mr_fail(MR_CODE_OUT_OF_MEMORY,
                   "out of memory on device %d: %" PRIu64 " bytes wanted, %" PRIu64
                   " live, %" PRIu64 " reserved, %zu of %zu free for all processes",
                   device->device->index, storage->bytes, device->device->memory.live,
                   pool_bytes(device, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), free_bytes, total);
}

/* The pool may hold enough, but in pieces, or in frees that are still pending. */
static mr_status make_room(cuda_device *device) {
    MR_TRY(mr_cuda_wait_device(device));
    MR_CUDA_TRY(device, mr_cu.MemPoolTrimTo(device->pool, 0), "alloc");
    return MR_OK;
}

static mr_status find_address(cuda_stream *stream, mr_storage *storage, CUdeviceptr *out_address) {
    cuda_device *device = stream->device;
    size_t bytes = storage->bytes ? storage->bytes : 1;
    if (bytes > device->device->properties.total_memory) return out_of_memory(device, storage);
    CUresult result = mr_cu.MemAllocFromPoolAsync(out_address, bytes, device->pool, stream->handle);
    if (result == CUDA_ERROR_OUT_OF_MEMORY &&
        pool_bytes(device, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > device->device->memory.live) {
        MR_TRY(make_room(device));
        result = mr_cu.MemAllocFromPoolAsync(out_address, bytes, device->pool, stream->handle);
    }
    if (result == CUDA_ERROR_OUT_OF_MEMORY) {
        /* Returns memory that the attempt reserved, and other processes may need. */
        if (!device->machine->calls) mr_cu.MemPoolTrimTo(device->pool, 0);
        return out_of_memory(device, storage);
    }
    MR_CUDA_TRY(device, result, "alloc of %" PRIu64 " bytes in %s", storage->bytes, stream->text);
    return MR_OK;
}

static mr_status alloc_on_device(mr_storage *storage) {
    cuda_stream *stream = storage->stream->impl;
    if (storage->fixed_address) {
        storage->address = storage->fixed_address;
        return MR_OK;
    }
    cuda_device *device = stream->device;
    MR_TRY(mr_cuda_unblock(device->machine));
    cuda_block *block = mr_slab_alloc(&device->machine->blocks);
    if (!block) return mr_no_memory("for a tensor's record");
    mr_status status = mr_cuda_use(device);
    if (!status) status = find_address(stream, storage, &block->address);
    if (status) {
        mr_slab_free(&device->machine->blocks, block);
        return status;
    }
    block->previous = NULL;
    block->next = device->blocks;
    if (block->next) block->next->previous = block;
    device->blocks = block;
    storage->impl = block;
    storage->address = block->address;
    return MR_OK;
}

#define HOST_ALIGNMENT 64

static mr_status alloc_pageable(mr_storage *storage) {
    uint64_t bytes = storage->bytes ? storage->bytes : 1;
    if (bytes <= SIZE_MAX - HOST_ALIGNMENT)
        storage->host = aligned_alloc(HOST_ALIGNMENT, (bytes + HOST_ALIGNMENT - 1) /
                                                          HOST_ALIGNMENT * HOST_ALIGNMENT);
    if (!storage->host)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "out of host memory: %" PRIu64 " bytes wanted",
                       storage->bytes);
    storage->address = (uint64_t)(uintptr_t)storage->host;
    return MR_OK;
}

mr_status mr_cuda_memory_alloc(mr_storage *storage) {
    switch (storage->kind) {
    case MR_MEMORY_DEVICE: return alloc_on_device(storage);
    case MR_MEMORY_PINNED: return mr_cuda_pinned_alloc(storage);
    case MR_MEMORY_PAGEABLE: break;
    }
    return alloc_pageable(storage);
}

void mr_cuda_memory_release(mr_storage *storage) {
    if (storage->kind == MR_MEMORY_PINNED) mr_cuda_pinned_release(storage);
    else free(storage->host);
    storage->host = NULL;
}

/* ---- free */

mr_status mr_cuda_reclaim_after(cuda_device *device, cuda_device *owner, CUstream stream) {
    MR_TRY(mr_cuda_use(owner));
    device->machine->submissions++;
    CUevent event = mr_cuda_event_take(owner);
    if (!event) return mr_cuda_wait_device(owner);
    CUresult result = mr_cu.EventRecord(event, stream);
    if (result == CUDA_SUCCESS) {
        MR_TRY(mr_cuda_use(device));
        result = mr_cu.StreamWaitEvent(device->reclaim, event, 0);
    }
    mr_cuda_event_give(owner, event);
    MR_CUDA_TRY(owner, result, "free");
    return MR_OK;
}

/* After MR_PLACE_USERS. The reclaim stream comes after closed streams of its device, so also after MR_PLACE_OWNER. */
static mr_status reclaim_after_users(cuda_device *device, const mr_storage *storage) {
    for (size_t i = 0; i < storage->used_by.count; i++) {
        mr_stream *user = storage->used_by.items[i];
        cuda_device *owner = user->device->impl;
        cuda_stream *s = user->impl;
        if (s && !user->closed) MR_TRY(mr_cuda_reclaim_after(device, owner, s->handle));
        else if (owner != device) MR_TRY(mr_cuda_reclaim_after(device, owner, owner->reclaim));
    }
    return MR_OK;
}

/* The places that the memory comes after besides the free itself (order/order.h), as far as they hold something. */
static mr_place_set guards_of(const mr_command *command) {
    const mr_storage *storage = command->u.storage;
    const mr_stream *stream = command->stream;
    mr_place_set there = 0;
    if (storage->used_by.count) there |= 1u << MR_PLACE_USERS;
    if (storage->stream->closed) there |= 1u << MR_PLACE_OWNER;
    if (!there) return 0;
    mr_order_facts on = mr_order_facts_of_stream(stream->kind, stream->blocking);
    mr_order_facts facts = mr_order_facts_of_kind(MR_COMMAND_FREE, command->u.at_once ? 0 : on);
    return there & mr_order_put(facts, MR_PLACE_FREED, MR_GUARANTEED);
}

/* Memory of others goes back to them once the work on it is done. */
static void hold_borrowed(mr_storage *storage, const mr_stream *stream) {
    mr_cuda_hold(stream->impl, storage);
    mr_cuda_hold_fence(stream->impl);
    for (size_t i = 0; i < storage->used_by.count; i++) {
        const mr_stream *user = storage->used_by.items[i];
        if (!user->impl || user->closed) continue;
        cuda_stream *s = user->impl;
        mr_status status = mr_cuda_use(s->device);
        if (!status) mr_cuda_hold(s, storage);
        if (!status) mr_cuda_hold_fence(s);
        mr_error_destroy(status);
    }
}

void mr_cuda_memory_free(const mr_command *command) {
    mr_storage *storage = command->u.storage;
    cuda_stream *stream = command->stream->impl;
    cuda_device *device = stream->device;
    cuda_block *block = storage->impl;
    if (storage->fixed_address) {
        if (storage->shared && !command->u.at_once) hold_borrowed(storage, command->stream);
        return;
    }
    bool at_once = command->u.at_once;
    mr_status status = MR_OK;
    CUresult result = CUDA_ERROR_UNKNOWN;
    mr_place_set guards = guards_of(command);
    bool reclaims = guards != 0;
    if (reclaims && !at_once) status = mr_cuda_reclaim_after(device, device, stream->handle);
    if (!status && mr_place_in(guards, MR_PLACE_USERS))
        status = reclaim_after_users(device, storage);
    /* After a failure the block stays in the account: a reset, or the end, has it back. */
    if (!status) status = mr_cuda_use(device);
    if (!status && reclaims) result = mr_cu.MemFreeAsync(block->address, device->reclaim);
    else if (!status && at_once) result = mr_cu.MemFree(block->address);
    else if (!status) result = mr_cu.MemFreeAsync(block->address, stream->handle);
    if (result == CUDA_SUCCESS) {
        if (block->previous) block->previous->next = block->next;
        else device->blocks = block->next;
        if (block->next) block->next->previous = block->previous;
        mr_slab_free(&device->machine->blocks, block);
    }
    mr_error_destroy(status);
    storage->impl = NULL;
}

/* ---- the rest */

uint64_t mr_cuda_memory_reserved(mr_device *device) {
    return pool_bytes(device->impl, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
}

/* The pool lets go of memory whose free the host has seen complete, and a query does not count as seeing. Waits for
 * nothing: only streams that are known to be idle are asked. */
static void see_frees(cuda_device *device) {
    for (cuda_stream *s = device->first; s; s = s->next)
        if (s->done_seq >= s->last_seq && mr_cu.StreamQuery(s->handle) == CUDA_SUCCESS)
            mr_cu.StreamSynchronize(s->handle);
    if (mr_cu.StreamQuery(device->reclaim) == CUDA_SUCCESS)
        mr_cu.StreamSynchronize(device->reclaim);
}

mr_status mr_cuda_memory_trim(mr_device *device) {
    cuda_device *d = device->impl;
    mr_cuda_hold_collect(d->machine);
    MR_TRY(mr_cuda_may_wait(d, "empty_cache"));
    MR_TRY(mr_cuda_pinned_trim(d->machine));
    if (!d->context) return MR_OK;
    MR_TRY(mr_cuda_use(d));
    see_frees(d);
    if (mr_cuda_is_idle(d->machine)) mr_cuda_outside_trim(d);
    MR_TRY(mr_cuda_use(d));
    MR_CUDA_TRY(d, mr_cu.MemPoolTrimTo(d->pool, 0), "empty_cache");
    return MR_OK;
}

/* cudaFree does not wait for memory of a pool (R27). */
mr_status mr_cuda_memory_free_wait(mr_storage *storage) {
    (void)storage;
    return MR_OK;
}
