/* Streams: a queue each. A queue outlives its stream while work is pending in it (R9). */
#include "virtual/state.h"

mr_status mr_virtual_stream_open(mr_stream *stream) {
    vdevice *device = stream->device->impl;
    vgpu *gpu = device->gpu;
    queue *q = mr_slab_alloc(&gpu->queues);
    if (!q) return mr_no_memory("for a stream");
    *q = (queue){.previous = device->last,
                 .device = device,
                 .stream_id = stream->id,
                 .priority = stream->priority};
    mr_order_lane_init(&q->lane, stream->kind, stream->blocking, MR_ALLOCATOR);
    mr_virtual_queue_rows(q);
    if (device->last) device->last->next = q;
    else device->first = q;
    device->last = q;
    if (stream->kind == MR_STREAM_LEGACY) device->legacy = q;
    if (stream->kind == MR_STREAM_USER) gpu->host_ns += (uint64_t)gpu->model.stream_create_ns;
    stream->impl = q;
    return MR_OK;
}

void mr_virtual_stream_close(mr_stream *stream) {
    queue *q = stream->impl;
    if (!mr_virtual_let_go_later(q->device->gpu, (closed_object){.queue = q}))
        mr_virtual_queue_close(q);
}

mr_status mr_virtual_stream_query(mr_stream *stream, bool *out_done) {
    queue *q = stream->impl;
    vdevice *device = q->device;
    vgpu *gpu = device->gpu;
    gpu->host_ns += (uint64_t)gpu->model.query_ns;
    MR_TRY(mr_virtual_advance(gpu, MR_CHOICE_QUERY, q->tail));
    bool is_over = !q->head && mr_virtual_is_past(gpu, q->last_end) &&
                   !(mr_order_sync_gathers(q->lane.facts) && device->busy_blocking);
    *out_done = is_over && mr_virtual_decide(gpu, MR_OPEN_QUERY, NULL, true);
    if (*out_done) q->proven = q->completed;
    return MR_OK;
}

mr_status mr_virtual_stream_synchronize(mr_stream *stream) {
    return mr_virtual_wait_stream(stream->impl);
}
