/* R60: a synchronous copy between two devices is ordered after all earlier work and before all later work
 * of both devices; the host does not wait. The documents guarantee this, but on an H200, later work of
 * non-blocking streams was seen to start at once. So this file creates the order with events. */
#include "cuda/objects/objects.h"

static mr_status wait_for_one(cuda_device *device, CUstream waiter, cuda_device *of,
                              CUstream awaited) {
    MR_TRY(mr_cuda_use(of));
    CUevent event = mr_cuda_event_take(of);
    if (!event) return mr_fail(MR_CODE_OUT_OF_MEMORY, "memcpy: the driver has no event left");
    CUresult result = mr_cu.EventRecord(event, awaited);
    mr_status status = result == CUDA_SUCCESS ? mr_cuda_use(device) : MR_OK;
    if (result == CUDA_SUCCESS && !status) result = mr_cu.StreamWaitEvent(waiter, event, 0);
    mr_cuda_event_give(of, event); /* the wait keeps the record that it found */
    MR_TRY(status);
    MR_CUDA_TRY(device, result, "memcpy");
    return MR_OK;
}

mr_status mr_cuda_barrier_before(cuda_stream *copy, cuda_device *device) {
    for (cuda_stream *s = device->first; s; s = s->next)
        if (s != copy) MR_TRY(wait_for_one(copy->device, copy->handle, device, s->handle));
    return wait_for_one(copy->device, copy->handle, device, device->reclaim);
}

mr_status mr_cuda_barrier_after(cuda_stream *copy, cuda_device *device) {
    for (cuda_stream *s = device->first; s; s = s->next)
        if (s != copy) MR_TRY(wait_for_one(device, s->handle, copy->device, copy->handle));
    MR_TRY(wait_for_one(device, device->reclaim, copy->device, copy->handle));
    MR_TRY(mr_cuda_use(device));
    if (!device->barrier) device->barrier = mr_cuda_event_take(device);
    if (!device->barrier)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "memcpy: the driver has no event left");
    MR_CUDA_TRY(device, mr_cu.EventRecord(device->barrier, device->reclaim), "memcpy");
    return MR_OK;
}
