/* Submission: an action is handed to the driver and is done with, since the driver copies what it needs
 * (R26). What must stay is host memory that the device may still be using (hold.c), and the name of the
 * operation for the day that it fails (error.c). This is the hot path: no allocation, no system call. */
#include "cuda/launch.h"
#include "cuda/state.h"

/* Pinned tensors may be operands: mapped memory. Device memory has an order of its own (R28). */
static void hold_operands(cuda_stream *stream, const mr_action *action) {
    for (uint32_t i = 0; i < action->operand_count; i++) {
        mr_storage *storage = action->operands[i].tensor->storage;
        if (storage->kind == MR_MEMORY_PINNED) mr_cuda_hold(stream, storage);
    }
}

static mr_status launch(cuda_stream *stream, mr_action *action) {
    MR_TRY(mr_cuda_launch(action, stream->handle));
    mr_cuda_trail_add(stream->device, action);
    stream->last_seq = action->seq;
    hold_operands(stream, action);
    return MR_OK;
}

mr_status mr_cuda_submit(mr_action *action) {
    cuda_stream *stream = action->stream->impl;
    if (action->kind == MR_ACTION_FREE) { /* never fails */
        stream->last_seq = action->seq;
        mr_cuda_memory_free(action);
        mr_action_destroy(action);
        return MR_OK;
    }
    MR_TRY(mr_cuda_use(stream->device));
    switch (action->kind) {
    case MR_ACTION_OP:
        MR_TRY(mr_cuda_unblock(stream->device->machine));
        MR_TRY(launch(stream, action));
        break;
    case MR_ACTION_COPY:
        MR_TRY(mr_cuda_unblock(stream->device->machine));
        MR_TRY(mr_cuda_copy(action));
        break;
    case MR_ACTION_RECORD: MR_TRY(mr_cuda_event_record(action)); break;
    case MR_ACTION_WAIT: MR_TRY(mr_cuda_event_wait(action)); break;
    case MR_ACTION_HOST_FUNCTION:
        MR_TRY(mr_cuda_unblock(stream->device->machine));
        MR_TRY(mr_cuda_host_submit(action));
        stream->last_seq = action->seq;
        return MR_OK;            /* the queue owns it until it has run */
    case MR_ACTION_ALLOC: break; /* done by memory_alloc */
    default:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "fault: a real GPU does not fail on demand; --device virtual does");
    }
    stream->last_seq = action->seq;
    mr_action_destroy(action);
    return MR_OK;
}
