/* Submission: what a call costs the host, and where it blocks: a full launch queue (R56), and copies
 * by the table of R20-R24.
 *
 * An action that was enqueued must not come back as failed, unless it can be taken out again: a copy
 * that the host waits for stays gpu->keep until it is done. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "virtual/state.h"

#define ATTEND_EVERY 64 /* submissions after which the device is brought to the host's present */

/* Lets the device catch up, so that what is done is gone; a failure is for a later call (R49). */
static void attend_sometimes(vgpu *gpu) {
    if (++gpu->unattended < ATTEND_EVERY) return;
    mr_error_destroy(mr_virtual_attend(gpu, MR_CHOICE_SUBMIT, NULL));
}

/* What a kernel's launch costs beyond that of others: a library that chooses among kernels of its own. */
static uint64_t library_ns(const device_model *model, const mr_action *action) {
    if (action->u.op.row->family != MR_FAMILY_MATMUL ||
        mr_dtype_category((mr_dtype)action->operands[0].tensor->dtype) < 2 ||
        mr_matmul_is_small(action))
        return 0;
    double beyond = model->product_ns - model->launch_ns;
    return beyond > 0 ? (uint64_t)beyond : 0;
}

/* When the device may start it, and the host's clock after the call. A kernel starts `launch_latency`
 * after its call began (a library's: after the library got to its launch), a marker after its call ended:
 * so nothing lies between an event and the kernel launched right after it, and events around a kernel show
 * its duration. */
static uint64_t charge_call(vgpu *gpu, const mr_action *action) {
    const device_model *model = &gpu->model;
    uint64_t begin = gpu->host_ns, latency = (uint64_t)model->launch_latency_ns;
    double cost = 0;
    switch (action->kind) {
    case MR_ACTION_OP: begin = gpu->host_ns += library_ns(model, action); /* fall through */
    case MR_ACTION_HOST_FUNCTION:
    case MR_ACTION_FAULT: gpu->host_ns += (uint64_t)model->launch_ns; return begin + latency;
    case MR_ACTION_COPY: gpu->host_ns += (uint64_t)model->copy_call_ns; return begin + latency;
    case MR_ACTION_RECORD:
        cost = action->u.event.event->timing ? model->record_timed_ns : model->record_ns;
        break;
    case MR_ACTION_WAIT: cost = model->wait_event_ns; break;
    case MR_ACTION_ALLOC: cost = model->alloc_ns; break;
    case MR_ACTION_FREE: cost = model->free_ns; break;
    default: break;
    }
    gpu->host_ns += (uint64_t)cost;
    return gpu->host_ns + latency;
}

static mr_status enqueue(vgpu *gpu, mr_action *action) {
    uint64_t earliest = charge_call(gpu, action);
    MR_TRY(mr_virtual_enqueue(action, earliest));
    mr_virtual_settle(gpu, gpu->device_ns);
    return MR_OK;
}

/* ---- copies: R20-R24 */

typedef struct {
    bool stream_first; /* the host waits for what the stream has so far */
    bool stage;        /* the source is read during the call */
    bool until_done;   /* the host waits for the copy itself */
} host_synchrony;

static host_synchrony synchrony_of(const vgpu *gpu, const mr_action *action) {
    const settings *set = &gpu->set;
    bool synchronous = action->u.copy.synchronous;
    mr_memory_kind to = action->operands[0].tensor->storage->kind;
    mr_memory_kind from = action->operands[1].tensor->storage->kind;
    switch (action->u.copy.direction) {
    case MR_COPY_D2D:
    case MR_COPY_PEER: return (host_synchrony){0}; /* R21, R60: not even the synchronous forms */
    case MR_COPY_H2H: return (host_synchrony){.until_done = true};
    case MR_COPY_D2H:
        return (host_synchrony){
            .until_done = synchronous || (to == MR_MEMORY_PAGEABLE && !set->pageable_d2h_async)};
    case MR_COPY_H2D:
        if (from == MR_MEMORY_PINNED) return (host_synchrony){.until_done = synchronous};
        /* The staging buffer is finite: what does not fit is copied piece by piece. */
        if (action->u.copy.bytes > (uint64_t)set->staging_bytes ||
            (!synchronous && !set->pageable_h2d_async))
            return (host_synchrony){.until_done = true};
        return (host_synchrony){.stream_first = synchronous, .stage = true};
    }
    return (host_synchrony){0};
}

static mr_status stage(vgpu *gpu, mr_action *action) {
    uint64_t bytes = action->u.copy.bytes;
    work *w = work_of(action);
    w->staged = malloc(bytes ? bytes : 1);
    if (!w->staged)
        return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: no memory to stage %" PRIu64 " bytes",
                       action->name, bytes);
    memcpy(w->staged, mr_tensor_data(action->operands[1].tensor), bytes);
    gpu->host_ns += mr_virtual_bytes_ns(bytes, gpu->model.staging_gbs);
    return MR_OK;
}

static mr_status submit_copy(vgpu *gpu, mr_action *action) {
    host_synchrony host = synchrony_of(gpu, action);
    work *w = work_of(action);
    if (host.stream_first) MR_TRY(mr_virtual_wait_stream(action->stream->impl));
    if (host.stage) MR_TRY(stage(gpu, action));
    if (host.until_done) gpu->keep = w;
    mr_status status = enqueue(gpu, action);
    if (status) {
        gpu->keep = NULL;
        free(w->staged);
        return status;
    }
    return host.until_done ? mr_virtual_wait_kept(w) : MR_OK;
}

mr_status mr_virtual_submit(mr_action *action) {
    vgpu *gpu = vgpu_of(action->machine);
    queue *q = action->stream->impl;
    if (is_launch(action) && q->launches >= (uint64_t)gpu->set.launch_queue_depth)
        MR_TRY(mr_virtual_wait_launch(q));
    MR_TRY(action->kind == MR_ACTION_COPY ? submit_copy(gpu, action) : enqueue(gpu, action));
    attend_sometimes(gpu);
    return MR_OK;
}
