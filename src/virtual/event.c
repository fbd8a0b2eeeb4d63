/* Events: the marks that records leave. The event holds its latest mark; waits were bound to the
 * record after the mark when they were submitted (queue.c), and do not look here again (R12). */
#include "virtual/state.h"

mr_status mr_virtual_event_open(mr_event *event) {
    vgpu *gpu = vgpu_of(event->machine);
    gpu->host_ns += (uint64_t)gpu->model.event_create_ns;
    event->impl = NULL;
    return MR_OK;
}

void mr_virtual_event_close(mr_event *event) {
    vgpu *gpu = vgpu_of(event->machine);
    mark *m = event->impl;
    if (m && !mr_virtual_let_go_later(gpu, (closed_object){.mark = m}))
        mr_virtual_mark_drop(gpu, m);
}

mr_status mr_virtual_event_query(mr_event *event, bool *out_done) {
    vgpu *gpu = vgpu_of(event->machine);
    mark *m = event->impl;
    gpu->host_ns += (uint64_t)gpu->model.query_ns;
    MR_TRY(mr_virtual_advance(gpu, MR_CHOICE_QUERY, m->record));
    *out_done = m->done && mr_virtual_is_past(gpu, m->time) &&
                mr_virtual_decide(gpu, MR_OPEN_QUERY, NULL, true);
    return MR_OK;
}

mr_status mr_virtual_event_synchronize(mr_event *event) {
    vgpu *gpu = vgpu_of(event->machine);
    MR_TRY(mr_virtual_wait_mark(gpu, event->impl));
    if (event->device) mr_pool_synchronized(event->device->impl);
    return MR_OK;
}

static mr_status check_done(const vgpu *gpu, const mr_event *event) {
    const mark *m = event->impl;
    char text[80];
    if (m->done && mr_virtual_is_past(gpu, m->time) &&
        mr_virtual_decide(gpu, MR_OPEN_QUERY, NULL, true))
        return MR_OK;
    return mr_fail(MR_CODE_NOT_READY,
                   "elapsed_time: %s is not complete: call synchronize() on it first",
                   mr_event_describe(event, text, sizeof text));
}

mr_status mr_virtual_event_elapsed(mr_event *from, mr_event *to, double *out_milliseconds) {
    vgpu *gpu = vgpu_of(from->machine);
    const mark *first = from->impl, *second = to->impl;
    gpu->host_ns += (uint64_t)gpu->model.query_ns; /* so that a polling loop ends */
    MR_TRY(mr_virtual_advance(gpu, MR_CHOICE_QUERY, second->record));
    MR_TRY(check_done(gpu, from));
    MR_TRY(check_done(gpu, to));
    *out_milliseconds = (double)((int64_t)second->time - (int64_t)first->time) / 1e6;
    return MR_OK;
}
