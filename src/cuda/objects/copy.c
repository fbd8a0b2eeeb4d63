/* Copies. When the host waits is the table of R20-R24. The driver follows the same table, but its waits
 * cannot be interrupted, and pending host functions would never run. So if the driver would wait for the
 * stream, this file waits instead. It does so after the copy if all memory is pinned, otherwise before it, so that
 * the driver waits only for the copy itself. */
#include <string.h>

#include "cuda/launch/launch.h"
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"
#include "order/order.h"

/* Pageable memory up to this size is staged and the call returns; more waits for the stream, since the
 * driver's staging buffer is finite (P4). */
#define STAGED_BYTES ((uint64_t)1 << 20)

/* Up to this size the driver takes the values along with the call. */
#define INLINE_BYTES ((uint64_t)64 << 10)

/* The stream may be another device's (R58), but the driver knows memory of a pool in the context of its own device. */
static mr_status use_memory_of(const mr_tensor *t) {
    return mr_cuda_use(t->storage->device->impl);
}

/* Nothing can be submitted while we wait, so the stream is idle afterwards. */
static mr_status wait_first(cuda_stream *stream) {
    if (!stream->gathers && stream->last_seq <= stream->done_seq) return MR_OK;
    return mr_cuda_wait_stream(stream);
}

/* Before a call that may block inside the driver: another stream's host function may be in front of it in a hardware
 * queue that they share. */
static mr_status wait_for_all_in_front(cuda_stream *stream) {
    MR_TRY(wait_first(stream));
    return mr_cuda_may_wait(stream->device, "a copy of pageable memory");
}

static mr_status host_to_device(cuda_stream *stream, const mr_command *command) {
    mr_tensor *to = command->operands[0].tensor, *from = command->operands[1].tensor;
    uint64_t bytes = command->u.copy.bytes;
    bool pinned = from->storage->kind == MR_MEMORY_PINNED;
    bool held = !pinned && stream->device->machine->calls;
    /* The staging buffer may be full of what waits for a host function. */
    if (command->u.copy.synchronous || (!pinned && bytes > STAGED_BYTES) ||
        (held && bytes > INLINE_BYTES))
        MR_TRY(wait_for_all_in_front(stream));
    else if (held) MR_TRY(wait_first(stream));
    MR_TRY(use_memory_of(to));
    if (command->u.copy.synchronous) {
        MR_CUDA_TRY(stream->device, mr_cu.MemcpyHtoD(mr_cuda_data(to), mr_tensor_data(from), bytes),
                    "%s", command->name);
        return MR_OK;
    }
    MR_CUDA_TRY(
        stream->device,
        mr_cu.MemcpyHtoDAsync(mr_cuda_data(to), mr_tensor_data(from), bytes, stream->handle), "%s",
        command->name);
    if (pinned) mr_cuda_hold(stream, from->storage);
    return MR_OK;
}

/* If the wait after it is interrupted, the copy is still running, so the stream must not count as idle. */
static mr_status to_host(cuda_stream *stream, const mr_command *command, void *to,
                         bool *out_taken) {
    MR_TRY(use_memory_of(command->operands[1].tensor));
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyDtoHAsync(to, mr_cuda_data(command->operands[1].tensor),
                                      command->u.copy.bytes, stream->handle),
                "%s", command->name);
    stream->last_seq = command->seq;
    *out_taken = true;
    return MR_OK;
}

static mr_status bounce(cuda_stream *stream, const mr_command *command, void *to,
                        const cuda_pinned_block *pinned, bool *out_taken) {
    cuda_machine *cuda = stream->device->machine;
    mr_status status = to_host(stream, command, pinned->host, out_taken);
    if (!status) {
        status = mr_cuda_wait_stream(stream);
        if (status) {
            mr_cuda_hold_block(stream, pinned->block);
            return status;
        }
        memcpy(to, pinned->host, command->u.copy.bytes);
    }
    mr_cuda_pinned_give(cuda, pinned->block);
    return status;
}

/* Pinning pages waits for all host functions, which is more than a copy may do. */
static bool may_bounce(const cuda_machine *cuda, uint64_t bytes) {
    return bytes <= BOUNCED_BYTES && (!cuda->calls || mr_cuda_pinned_has(cuda, BOUNCED_BYTES));
}

static mr_status device_to_host(cuda_stream *stream, const mr_command *command, bool *out_taken) {
    mr_tensor *to = command->operands[0].tensor;
    void *data = mr_tensor_data(to);
    cuda_pinned_block pinned;
    if (to->storage->kind == MR_MEMORY_PINNED) {
        MR_TRY(to_host(stream, command, data, out_taken));
        mr_cuda_hold(stream, to->storage);
        return command->u.copy.synchronous ? mr_cuda_wait_stream(stream) : MR_OK;
    }
    if (may_bounce(stream->device->machine, command->u.copy.bytes)) {
        mr_status status = mr_cuda_pinned_take(stream->device->machine, BOUNCED_BYTES, &pinned);
        if (!status) return bounce(stream, command, data, &pinned, out_taken);
        mr_error_destroy(status); /* none to be had: by the driver, then */
    }
    MR_TRY(wait_for_all_in_front(stream));
    return to_host(stream, command, data, out_taken);
}

/* R21: no wait, not even in the synchronous form, which the driver orders on the legacy stream. */
static mr_status inside_device(cuda_stream *stream, const mr_command *command) {
    mr_tensor *to = command->operands[0].tensor, *from = command->operands[1].tensor;
    MR_TRY(use_memory_of(to));
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyDtoDAsync(mr_cuda_data(to), mr_cuda_data(from), command->u.copy.bytes,
                                      stream->handle),
                "%s", command->name);
    return MR_OK;
}

static mr_status copy_async(cuda_stream *stream, const mr_command *command, cuda_device *target,
                            cuda_device *source) {
    MR_TRY(mr_cuda_use(stream->device));
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyPeerAsync(mr_cuda_data(command->operands[0].tensor), target->context,
                                      mr_cuda_data(command->operands[1].tensor), source->context,
                                      command->u.copy.bytes, stream->handle),
                "%s", command->name);
    return MR_OK;
}

static bool reaches(const cuda_device *from, const cuda_device *to) {
    return from == to || (from->peers >> to->device->index & 1);
}

/* Without access the driver takes it through the host, with the same order, and in as many pieces as it likes. */
static mr_status between_devices(cuda_stream *stream, const mr_command *command) {
    cuda_device *target = command->operands[0].tensor->storage->device->impl,
                *source = command->operands[1].tensor->storage->device->impl;
    bool access = reaches(stream->device, target) && reaches(stream->device, source);
    if (!command->u.copy.synchronous && access) return copy_async(stream, command, target, source);
    MR_TRY(mr_cuda_may_wait(stream->device, "a copy between devices"));
    if (!command->u.copy.synchronous) return copy_async(stream, command, target, source);
    cuda_device *devices = stream->device->machine->devices;
    for (uint64_t walls = mr_order_walls(command); walls; walls &= walls - 1)
        MR_TRY(mr_cuda_barrier_before(stream, &devices[__builtin_ctzll(walls)]));
    MR_TRY(copy_async(stream, command, target, source));
    for (uint64_t walls = mr_order_walls(command); walls; walls &= walls - 1)
        MR_TRY(mr_cuda_barrier_after(stream, &devices[__builtin_ctzll(walls)]));
    return mr_cuda_use(stream->device);
}

/* Complete on return, after the stream's earlier work (R23). */
static mr_status inside_host(cuda_stream *stream, const mr_command *command) {
    MR_TRY(wait_first(stream));
    memmove(mr_tensor_data(command->operands[0].tensor),
            mr_tensor_data(command->operands[1].tensor), command->u.copy.bytes);
    return MR_OK;
}

static mr_status copy(cuda_stream *stream, const mr_command *command, bool *out_taken) {
    switch (command->u.copy.direction) {
    case MR_COPY_H2D: return host_to_device(stream, command);
    case MR_COPY_D2H: return device_to_host(stream, command, out_taken);
    case MR_COPY_D2D: return inside_device(stream, command);
    case MR_COPY_PEER: return between_devices(stream, command);
    case MR_COPY_H2H: return inside_host(stream, command);
    }
    return MR_OK;
}

mr_status mr_cuda_copy(const mr_command *command, bool *out_taken) {
    cuda_stream *stream = command->stream->impl;
    if (!command->u.copy.bytes) return MR_OK;
    MR_TRY(copy(stream, command, out_taken));
    return mr_cuda_use(stream->device);
}
