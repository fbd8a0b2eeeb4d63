/* Keeps host memory that the device may still be using after the script has released its last tensor. Each
 * stream collects the memory that its copies and kernels use. A fence (an event) from time to time, or a
 * wait that found the stream idle, shows when it can be released. There is only one event for
 * HOLDS_A_FENCE uses, so a copy costs little more than the driver's call. */
#include "cuda/wait/wait.h"

void mr_cuda_hold(cuda_stream *stream, mr_storage *storage) {
    cuda_hold *hold = stream->holds;
    if (hold && hold->storages[hold->count - 1] == storage) return;
    if (!hold) {
        hold = mr_slab_alloc(&stream->device->machine->holds);
        if (!hold) { /* it costs time, not correctness */
            mr_error_destroy(mr_cuda_wait_stream(stream));
            return;
        }
        hold->next = NULL;
        hold->fence = NULL;
        hold->count = 0;
        stream->holds = hold;
    }
    mr_storage_retain(storage);
    hold->storages[hold->count++] = storage;
    if (hold->count == HOLDS_A_FENCE) mr_cuda_hold_fence(stream);
}

void mr_cuda_hold_block(cuda_stream *stream, void *block) {
    cuda_device *device = stream->device;
    cuda_left left = {block, mr_cuda_event_take(device)};
    if (left.fence) mr_cu.EventRecord(left.fence, stream->handle); /* as in mr_cuda_hold_fence */
    if (!mr_vec_push(&device->left, left) && left.fence) mr_cuda_event_give(device, left.fence);
}

void mr_cuda_hold_fence(cuda_stream *stream) {
    cuda_device *device = stream->device;
    cuda_hold *hold = stream->holds;
    if (!hold) return;
    hold->fence = mr_cuda_event_take(device);
    if (!hold->fence) {
        mr_error_destroy(mr_cuda_wait_stream(stream));
        if (stream->holds) mr_cuda_hold_release(stream);
        return;
    }
    /* If it fails the device is lost: the fence is then never passed, and a reset drops it. */
    mr_cu.EventRecord(hold->fence, stream->handle);
    stream->holds = NULL;
    *device->fenced_end = hold;
    device->fenced_end = &hold->next;
    mr_cuda_hold_poll(device);
}

void mr_cuda_hold_collect(cuda_machine *cuda) {
    if (cuda->machine->lost) return;
    for (int i = 0; i < cuda->device_count; i++) {
        cuda_device *device = &cuda->devices[i];
        mr_status status = device->context ? mr_cuda_use(device) : MR_OK;
        for (cuda_stream *s = device->first; s && !status; s = s->next)
            if (s->holds) mr_cuda_hold_fence(s);
        mr_error_destroy(status);
        mr_cuda_hold_poll(device);
    }
}
