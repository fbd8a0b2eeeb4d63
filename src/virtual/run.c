/* Bodies: the real work of operations and copies, done in slices of their items.
 *
 * A body reads and writes the bytes as they are at the moment of the slice; that is what makes an
 * unordered reader see half of a tensor. It never waits and never looks at a clock. */
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "virtual/state.h"

/* R59: a kernel that follows a pointer into another device's memory needs access to it. */
static mr_status check_reach(const work *w, const mr_action *action) {
    const vdevice *device = w->queue->device;
    for (uint32_t i = 0; i < action->operand_count; i++) {
        const mr_device *owner = action->operands[i].tensor->storage->device;
        if (!owner || owner == device->device || (device->peers >> owner->index & 1)) continue;
        return mr_fail(MR_CODE_ILLEGAL_ADDRESS,
                       "%s ran on device %d and touched memory of device %d without access to it: "
                       "call enable_peer_access first, or copy the tensor over",
                       action->name, device->device->index, owner->index);
    }
    return MR_OK;
}

static mr_status begin(work *w, mr_action *action) {
    body *b = w->body;
    if (action->kind == MR_ACTION_OP) {
        if (w->queue->device->gpu->device_count > 1) MR_TRY(check_reach(w, action));
        const mr_op *row = action->u.op.row;
        if (row->begin) MR_TRY(row->begin(action, &b->scratch));
    }
    b->begun = true;
    w->state = WORK_STARTED;
    return MR_OK;
}

mr_status mr_virtual_body_run(work *w, int64_t *io_first, int64_t end) {
    mr_action *action = action_of(w);
    body *b = w->body;
    if (!b->begun) MR_TRY(begin(w, action));
    if (*io_first >= end) return MR_OK;
    if (action->kind == MR_ACTION_OP)
        return mr_op_run_items(action, b->scratch, io_first, end,
                               w->queue->device->gpu->interruptible);
    const char *source = w->staged ? w->staged : mr_tensor_data(action->operands[1].tensor);
    char *target = mr_tensor_data(action->operands[0].tensor);
    memmove(target + *io_first, source + *io_first, (size_t)(end - *io_first));
    *io_first = end;
    return MR_OK;
}

void mr_virtual_body_finish(work *w) {
    mr_action *action = action_of(w);
    body *b = w->body;
    if (b->begun && action->kind == MR_ACTION_OP && action->u.op.row->finish)
        action->u.op.row->finish(action, b->scratch);
    b->begun = false;
}

void mr_virtual_body_free(work *w) {
    vgpu *gpu = w->queue->device->gpu;
    body *b = w->body;
    /* Dropped half way: `finish` is also what frees the scratch memory. */
    if (b->begun) mr_virtual_body_finish(w);
    for (chunk *c = b->chunks, *next; c; c = next) {
        next = c->next;
        if (c != &b->first_chunk) mr_slab_free(&gpu->chunks, c);
    }
    mr_slab_free(&gpu->bodies, b);
    w->body = NULL;
}

/* The text that every later call will show too: which failure it was, and what ends it. */
static mr_status with_remedy(mr_status error) {
    if (!mr_code_sticky(error->code)) return error;
    mr_status full = mr_fail(error->code, "%s (%s): every call fails until mr.reset()",
                             error->message, mr_code_text(error->code));
    mr_error_destroy(error);
    return full;
}

mr_status mr_virtual_fail(work *w, mr_status error) {
    vgpu *gpu = w->queue->device->gpu;
    mr_action *action = action_of(w);
    error = with_remedy(error);
    snprintf(error->op, sizeof error->op, "%s", action->name);
    mr_stream_describe(action->stream, error->stream, sizeof error->stream);
    error->where = action->where;
    error = mr_machine_lose(gpu->machine, error);
    mr_virtual_drop_pending(gpu);
    return error;
}
