/* Events: the driver's own. A wait is bound to the latest record at its call (R12). So an event can be recorded again,
 * or its handle reused for another event, while a wait for it is pending. */
#include "cuda/objects/objects.h"
#include "cuda/wait/wait.h"

/* ---- handles */

static mr_status make_handle(const mr_event *event, cuda_device *device, CUevent *out_handle) {
    if (!event->timing && !event->blocking && !event->interprocess) {
        *out_handle = mr_cuda_event_take(device);
        if (*out_handle) return MR_OK;
    }
    unsigned flags = (event->timing ? 0 : CU_EVENT_DISABLE_TIMING) |
                     (event->blocking ? CU_EVENT_BLOCKING_SYNC : 0) |
                     (event->interprocess ? CU_EVENT_INTERPROCESS : 0);
    MR_CUDA_TRY(device, mr_cu.EventCreate(out_handle, flags), "event");
    return MR_OK;
}

static void drop_handle(cuda_event *e) {
    if (!e->handle || e->generation != e->device->generation) return;
    if (e->plain) mr_cuda_event_give(e->device, e->handle);
    else mr_cu.EventDestroy(e->handle);
}

/* ---- the slots */

mr_status mr_cuda_event_open(mr_event *event) {
    cuda_event *e = mr_slab_alloc(&mr_cuda_of(event->machine)->events);
    if (!e) return mr_no_memory("for an event");
    *e = (cuda_event){.plain = !event->timing && !event->blocking && !event->interprocess};
    event->impl = e;
    return MR_OK;
}

void mr_cuda_event_close(mr_event *event) {
    cuda_event *e = event->impl;
    drop_handle(e);
    if (e->stream) mr_cuda_stream_release(e->stream);
    mr_slab_free(&mr_cuda_of(event->machine)->events, e);
}

mr_status mr_cuda_event_prepare(mr_event *event, cuda_device *device) {
    cuda_event *e = event->impl;
    if (e->handle && e->device != device) { /* of a record elsewhere that failed */
        drop_handle(e);
        e->handle = NULL;
    }
    if (e->handle) return MR_OK;
    MR_TRY(make_handle(event, device, &e->handle));
    e->device = device;
    e->generation = device->generation;
    return MR_OK;
}

static void note_record(cuda_event *e, cuda_stream *stream, uint64_t seq) {
    if (e->stream != stream) {
        stream->refs++;
        if (e->stream) mr_cuda_stream_release(e->stream);
        e->stream = stream;
    }
    e->seq = seq;
}

mr_status mr_cuda_event_record(const mr_command *command) {
    mr_event *event = command->u.event.event;
    cuda_event *e = event->impl;
    cuda_stream *s = command->stream->impl;
    MR_TRY(mr_cuda_event_prepare(event, s->device));
    MR_CUDA_TRY(s->device, mr_cu.EventRecord(e->handle, s->handle), "record_event in %s", s->text);
    note_record(e, s, command->seq);
    return MR_OK;
}

/* The record in force is still the one that the command was bound to: nothing lies between the call and
 * here. An event of another device is waited for in the same way (R58). */
mr_status mr_cuda_event_wait(const mr_command *command) {
    cuda_event *e = command->u.event.event->impl;
    cuda_stream *s = command->stream->impl;
    /* R13; another process may have recorded the event. */
    if (!command->u.event.record_seq && !command->u.event.event->shared) return MR_OK;
    MR_CUDA_TRY(s->device, mr_cu.StreamWaitEvent(s->handle, e->handle, 0), "wait_event in %s",
                s->text);
    return MR_OK;
}

/* The handle is the graph's from now on: no other event gets it. */
mr_status mr_cuda_event_capture(const mr_command *command, cuda_device *device, CUstream lane) {
    cuda_event *e = command->u.event.event->impl;
    MR_TRY(mr_cuda_event_prepare(command->u.event.event, device));
    e->plain = false;
    CUresult result = command->kind == MR_COMMAND_RECORD
                          ? mr_cu.EventRecordWithFlags(e->handle, lane, CU_EVENT_RECORD_EXTERNAL)
                          : mr_cu.StreamWaitEvent(lane, e->handle, CU_EVENT_WAIT_EXTERNAL);
    MR_CUDA_TRY(device, result, "%s", command->name);
    return MR_OK;
}

/* If it is complete, only the stream's work before the launch is known to be complete. */
void mr_cuda_event_in_launch(mr_event *event, cuda_stream *stream) {
    note_record(event->impl, stream, stream->last_seq);
}

mr_status mr_cuda_event_query(mr_event *event, bool *out_done) {
    cuda_event *e = event->impl;
    MR_TRY(mr_cuda_use(e->device));
    mr_cuda_host_run_ready(e->device->machine);
    CUresult result = mr_cu.EventQuery(e->handle);
    *out_done = result == CUDA_SUCCESS;
    if (*out_done && !event->shared) mr_cuda_stream_done(e->stream, e->seq);
    if (*out_done || result == CUDA_ERROR_NOT_READY) return MR_OK;
    return mr_cuda_fail(e->device, result, "query of an event");
}

mr_status mr_cuda_event_synchronize(mr_event *event) {
    return mr_cuda_wait_event(event->impl, event->blocking, !event->shared);
}

static mr_status check_done(mr_event *event) {
    bool done;
    char text[80];
    MR_TRY(mr_cuda_event_query(event, &done));
    if (done) return MR_OK;
    return mr_fail(MR_CODE_NOT_READY,
                   "elapsed_time: %s is not complete: synchronize it, or a later event",
                   mr_event_describe(event, text, sizeof text));
}

mr_status mr_cuda_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds) {
    cuda_event *first = from->impl, *second = to->impl;
    float milliseconds = 0;
    MR_TRY(check_done(from));
    MR_TRY(check_done(to));
    MR_CUDA_TRY(second->device,
                mr_cu.EventElapsedTime(&milliseconds, first->handle, second->handle),
                "elapsed_time");
    *out_milliseconds = milliseconds;
    return MR_OK;
}
