/* Submission: gives a command to the driver. The driver copies what it needs (R26), so the command need
 * not be kept. Only host memory that the device may still be using (hold.c) and the name of the operation
 * (error.c) are kept. This is the hot path: no allocation, no system call. */
#include "cuda/backend/parts.h"
#include "cuda/family/family.h"
#include "cuda/objects/objects.h"
#include "cuda/runs/nvtx.h"
#include "cuda/runs/runs.h"
#include "cuda/wait/wait.h"

/* Pinned tensors may be operands: mapped memory. Device memory has an order of its own (R28). */
static void hold_operands(cuda_stream *stream, const mr_command *command) {
    for (uint32_t i = 0; i < command->operand_count; i++) {
        mr_storage *storage = command->operands[i].tensor->storage;
        if (storage->kind == MR_MEMORY_PINNED) mr_cuda_hold(stream, storage);
    }
}

static mr_status launch(cuda_stream *stream, const mr_command *command) {
    if (command->meeting) MR_TRY(mr_cuda_meet(command));
    else MR_TRY(mr_cuda_launch(command, stream->handle));
    mr_cuda_trail_add(stream->device, command);
    stream->last_seq = command->seq;
    hold_operands(stream, command);
    return MR_OK;
}

static mr_status carry_out(const mr_command *command, bool *out_taken) {
    cuda_stream *stream = command->stream->impl;
    if (command->kind == MR_COMMAND_FREE) {
        /* An interruption is not lost: the next call returns it, too. */
        mr_error_destroy(mr_cuda_unblock(stream->device->machine));
        if (!command->u.at_once) stream->last_seq = command->seq;
        mr_cuda_memory_free(command);
        *out_taken = true;
        return MR_OK;
    }
    MR_TRY(mr_cuda_unblock(stream->device->machine));
    MR_TRY(mr_cuda_use(stream->device)); /* a host function that ran may have used another one */
    switch (command->kind) {
    case MR_COMMAND_OP: MR_TRY(launch(stream, command)); break;
    case MR_COMMAND_COPY: MR_TRY(mr_cuda_copy(command, out_taken)); break;
    case MR_COMMAND_RECORD: MR_TRY(mr_cuda_event_record(command)); break;
    case MR_COMMAND_WAIT: MR_TRY(mr_cuda_event_wait(command)); break;
    case MR_COMMAND_HOST_FUNCTION: MR_TRY(mr_cuda_host_submit(command)); break;
    case MR_COMMAND_ALLOC: break; /* done by memory_alloc */
    case MR_COMMAND_FAULT:
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "fault: a real GPU does not fail on demand; --device virtual does");
    case MR_COMMAND_FREE: /* above */
        MR_HOST_LIST(MR_COMMAND_CASE)
        MR_ACCOUNT_LIST(MR_COMMAND_CASE) break;
    }
    stream->last_seq = command->seq;
    *out_taken = true;
    return MR_OK;
}

/* A host function that runs in a wait of the call may end the interest in times. */
static mr_status carry_out_watched(cuda_machine *cuda, const mr_command *command, bool *out_taken) {
    bool has_time = !mr_command_waits_for_others(command); /* the last member's call launches all */
    cuda_runs *runs = cuda->give_up_runs || !has_time ? NULL : cuda->runs;
    MR_TRY(mr_cuda_use(((cuda_stream *)command->stream->impl)->device));
    if (cuda->ranges) mr_cuda_nvtx_push(cuda->ranges, command);
    if (runs) mr_cuda_run_enter(runs, command);
    mr_status status = carry_out(command, out_taken);
    if (runs && cuda->runs == runs) mr_cuda_run_leave(runs, command, *out_taken);
    if (cuda->ranges) mr_cuda_nvtx_pop(cuda->ranges);
    return status;
}

mr_status mr_cuda_submit(const mr_command *command, bool *out_taken) {
    cuda_machine *cuda = mr_cuda_of(command->machine);
    bool is_watched = cuda->runs || cuda->ranges;
    if (__builtin_expect(is_watched, 0) && mr_command_is(command, MR_TRAIT_WORK))
        return carry_out_watched(cuda, command, out_taken);
    return carry_out(command, out_taken);
}
