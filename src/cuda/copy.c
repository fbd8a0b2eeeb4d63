/* Copies, with the host's part in them by the table of R20-R24. The driver has the same table, but where
 * it blocks it cannot be interrupted, and a host function that is pending would never run. So whenever
 * the host would wait for the stream inside the driver, it waits here instead: behind the copy where that needs
 * pinned memory only, else before it, and what is then left is the time of the copy itself. */
#include <string.h>

#include "cuda/launch.h"
#include "cuda/state.h"

/* Pageable memory up to this size is staged and the call returns; more waits for the stream, since the
 * driver's staging buffer is finite (P4). */
#define STAGED_BYTES ((uint64_t)1 << 20)

/* Values for pageable memory up to this size come by pinned memory of ours: the copy is then behind the stream's
 * work before that has ended, which takes a quarter off an item() that has to wait. Beyond, copying once more
 * costs more than that. */
#define BOUNCED_BYTES ((uint64_t)64 << 10)

/* Nothing can be submitted while we wait, so the stream is idle afterwards. */
static mr_status wait_first(cuda_stream *stream) {
    if (!stream->legacy && stream->last_seq <= stream->done_seq) return MR_OK;
    return mr_cuda_wait_stream(stream);
}

static mr_status host_to_device(cuda_stream *stream, const mr_action *action) {
    mr_tensor *to = action->operands[0].tensor, *from = action->operands[1].tensor;
    uint64_t bytes = action->u.copy.bytes;
    bool pinned = from->storage->kind == MR_MEMORY_PINNED;
    bool waits = action->u.copy.synchronous || (!pinned && bytes > STAGED_BYTES);
    /* The staging buffer may be full of what waits for a host function. */
    if (waits || (!pinned && stream->device->machine->calls)) MR_TRY(wait_first(stream));
    if (action->u.copy.synchronous) {
        MR_CUDA_TRY(stream->device, mr_cu.MemcpyHtoD(mr_cuda_data(to), mr_tensor_data(from), bytes),
                    "%s", action->name);
        return MR_OK;
    }
    MR_CUDA_TRY(
        stream->device,
        mr_cu.MemcpyHtoDAsync(mr_cuda_data(to), mr_tensor_data(from), bytes, stream->handle), "%s",
        action->name);
    if (pinned) mr_cuda_hold(stream, from->storage);
    return MR_OK;
}

/* Whoever interrupts the wait behind it leaves the copy under way, so the stream must not pass for idle. */
static mr_status to_host(cuda_stream *stream, const mr_action *action, void *to) {
    MR_TRY(mr_cuda_use(stream->device)); /* looking for memory may have used another one */
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyDtoHAsync(to, mr_cuda_data(action->operands[1].tensor),
                                      action->u.copy.bytes, stream->handle),
                "%s", action->name);
    stream->last_seq = action->seq;
    return MR_OK;
}

static mr_status bounce(cuda_stream *stream, const mr_action *action, void *to,
                        const cuda_pinned_block *pinned) {
    cuda_machine *cuda = stream->device->machine;
    mr_status status = to_host(stream, action, pinned->host);
    if (!status) {
        status = mr_cuda_wait_stream(stream);
        if (status) {
            mr_cuda_hold_block(stream, pinned->block);
            return status;
        }
        memcpy(to, pinned->host, action->u.copy.bytes);
    }
    mr_cuda_pinned_give(cuda, pinned->block);
    return status;
}

/* Pinning pages waits for all host functions, which is more than a copy may do. */
static bool may_bounce(const cuda_machine *cuda, uint64_t bytes) {
    return bytes <= BOUNCED_BYTES && (!cuda->calls || mr_cuda_pinned_has(cuda, BOUNCED_BYTES));
}

static mr_status device_to_host(cuda_stream *stream, const mr_action *action) {
    mr_tensor *to = action->operands[0].tensor;
    void *data = mr_tensor_data(to);
    cuda_pinned_block pinned;
    if (to->storage->kind == MR_MEMORY_PINNED) {
        MR_TRY(to_host(stream, action, data));
        mr_cuda_hold(stream, to->storage);
        return action->u.copy.synchronous ? mr_cuda_wait_stream(stream) : MR_OK;
    }
    if (may_bounce(stream->device->machine, action->u.copy.bytes)) {
        mr_status status = mr_cuda_pinned_take(stream->device->machine, BOUNCED_BYTES, &pinned);
        if (!status) return bounce(stream, action, data, &pinned);
        mr_error_destroy(status); /* none to be had: by the driver, then */
    }
    MR_TRY(wait_first(stream));
    return to_host(stream, action, data);
}

/* R21: no wait, not even in the synchronous form, which the driver orders on the legacy stream. */
static mr_status inside_device(cuda_stream *stream, const mr_action *action) {
    mr_tensor *to = action->operands[0].tensor, *from = action->operands[1].tensor;
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyDtoDAsync(mr_cuda_data(to), mr_cuda_data(from), action->u.copy.bytes,
                                      stream->handle),
                "%s", action->name);
    return MR_OK;
}

static mr_status copy_async(cuda_stream *stream, const mr_action *action, cuda_device *target,
                            cuda_device *source) {
    MR_TRY(mr_cuda_use(stream->device));
    MR_CUDA_TRY(stream->device,
                mr_cu.MemcpyPeerAsync(mr_cuda_data(action->operands[0].tensor), target->context,
                                      mr_cuda_data(action->operands[1].tensor), source->context,
                                      action->u.copy.bytes, stream->handle),
                "%s", action->name);
    return MR_OK;
}

/* Without access the driver takes it through the host, with the same order. */
static mr_status between_devices(cuda_stream *stream, const mr_action *action) {
    cuda_device *target = action->operands[0].tensor->storage->device->impl,
                *source = action->operands[1].tensor->storage->device->impl;
    if (!action->u.copy.synchronous) return copy_async(stream, action, target, source);
    MR_TRY(mr_cuda_host_settle(stream->device->machine)); /* no stream may come to wait for us */
    MR_TRY(mr_cuda_barrier_before(stream, target));
    MR_TRY(mr_cuda_barrier_before(stream, source));
    MR_TRY(copy_async(stream, action, target, source));
    MR_TRY(mr_cuda_barrier_after(stream, target));
    MR_TRY(mr_cuda_barrier_after(stream, source));
    return mr_cuda_use(stream->device);
}

/* Done on return, after what the stream has (R23). */
static mr_status inside_host(cuda_stream *stream, const mr_action *action) {
    MR_TRY(wait_first(stream));
    memmove(mr_tensor_data(action->operands[0].tensor), mr_tensor_data(action->operands[1].tensor),
            action->u.copy.bytes);
    return MR_OK;
}

mr_status mr_cuda_copy(mr_action *action) {
    cuda_stream *stream = action->stream->impl;
    if (!action->u.copy.bytes) return MR_OK;
    switch (action->u.copy.direction) {
    case MR_COPY_H2D: return host_to_device(stream, action);
    case MR_COPY_D2H: return device_to_host(stream, action);
    case MR_COPY_D2D: return inside_device(stream, action);
    case MR_COPY_PEER: return between_devices(stream, action);
    case MR_COPY_H2H: return inside_host(stream, action);
    }
    return MR_OK;
}
