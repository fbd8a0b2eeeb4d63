/* Streams: the driver's own. The two default streams of a device are handles that the driver knows
 * without our making them (R3, R6). */
#include "cuda/launch/launch.h"
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"
#include "order/order.h"

static mr_status make_handle(const mr_stream *stream, cuda_device *device, CUstream *out_handle) {
    switch (stream->kind) {
    case MR_STREAM_LEGACY: *out_handle = CU_STREAM_LEGACY; return MR_OK;
    case MR_STREAM_PER_THREAD: *out_handle = CU_STREAM_PER_THREAD; return MR_OK;
    case MR_STREAM_USER: break;
    }
    if (stream->foreign) {
        *out_handle = (CUstream)(uintptr_t)stream->foreign;
        return mr_cuda_use(device);
    }
    unsigned flags = stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
    /* A new stream may make the driver wait until the streams that share a hardware queue are idle. */
    MR_TRY(mr_cuda_may_wait(device, "a new stream"));
    MR_TRY(mr_cuda_use(device));
    MR_CUDA_TRY(device, mr_cu.StreamCreateWithPriority(out_handle, flags, stream->priority),
                "stream");
    if (!device->barrier) return MR_OK;
    CUresult result = mr_cu.StreamWaitEvent(*out_handle, device->barrier, 0);
    if (result != CUDA_SUCCESS) mr_cu.StreamDestroy(*out_handle);
    MR_CUDA_TRY(device, result, "stream");
    return MR_OK;
}

mr_status mr_cuda_stream_open(mr_stream *stream) {
    cuda_device *device = stream->device->impl;
    CUstream handle;
    MR_TRY(make_handle(stream, device, &handle));
    cuda_stream *s = mr_slab_alloc(&device->machine->streams);
    if (!s) {
        if (stream->kind == MR_STREAM_USER && !stream->foreign) mr_cu.StreamDestroy(handle);
        return mr_no_memory("for a stream");
    }
    mr_order_facts facts = mr_order_facts_of_stream(stream->kind, stream->blocking);
    *s = (cuda_stream){.handle = handle,
                       .stream = stream,
                       .foreign = stream->foreign != 0,
                       .device = device,
                       .previous = device->last,
                       .refs = 1,
                       .generation = device->generation,
                       .gathers = mr_order_sync_gathers(facts),
                       .gathered = mr_order_is_gathered(facts)};
    if (device->last) device->last->next = s;
    else device->first = s;
    device->last = s;
    mr_stream_describe(stream, s->text, sizeof s->text);
    mr_stream_title(stream, s->title, sizeof s->title);
    stream->impl = s;
    return MR_OK;
}

/* R9: pending work continues. Later waits for this stream (a free, a synchronise of the device) use the reclaim stream
 * instead. */
void mr_cuda_stream_close(mr_stream *stream) {
    cuda_stream *s = stream->impl;
    cuda_device *device = s->device;
    mr_cuda_stream_shut(s);
    if (s->generation == device->generation && device->context) {
        mr_status status = mr_cuda_use(device);
        if (!status) mr_cuda_hold_fence(s);
        if (!status && s->last_seq > s->done_seq)
            status = mr_cuda_reclaim_after(device, device, s->handle);
        mr_error_destroy(status); /* the device is lost, and with it the stream's pending work */
        if (stream->kind == MR_STREAM_USER) {
            mr_cuda_kernels_forget_stream(device, s->handle);
            if (!stream->foreign) mr_cu.StreamDestroy(s->handle);
        }
    }
    mr_cuda_hold_release(s); /* memory that a lost device will not touch again */
    mr_cuda_stream_release(s);
}

mr_status mr_cuda_stream_query(mr_stream *stream, bool *out_done) {
    cuda_stream *s = stream->impl;
    cuda_device *device = s->device;
    MR_TRY(mr_cuda_use(device));
    mr_cuda_host_run_ready(device->machine);
    CUresult result = mr_cu.StreamQuery(s->handle);
    *out_done = result == CUDA_SUCCESS;
    if (*out_done) mr_cuda_stream_idle(s);
    mr_cuda_hold_poll(device);
    if (*out_done || result == CUDA_ERROR_NOT_READY) return MR_OK;
    return mr_cuda_fail(device, result, "query of %s", s->text);
}

mr_status mr_cuda_stream_synchronize(mr_stream *stream) {
    return mr_cuda_wait_stream(stream->impl);
}
