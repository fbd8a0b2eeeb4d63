/* Bodies: the computation of operations and copies, in slices of their items.
 *
 * A body reads and writes the bytes as they are at the time of the slice, so a reader that is not ordered
 * can see a half-written tensor. A body never waits and never reads a clock. */
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "virtual/state.h"

/* R59: a kernel that follows a pointer into another device's memory needs access to it. */
static mr_status check_reach(const work *w, const mr_command *command) {
    const vdevice *device = w->queue->device;
    for (uint32_t i = 0; i < command->operand_count; i++) {
        const mr_device *owner = command->operands[i].tensor->storage->device;
        if (!owner || owner == device->device || (device->peers >> owner->index & 1)) continue;
        return mr_fail(MR_CODE_ILLEGAL_ADDRESS,
                       "%s ran on device %d and accessed memory of device %d without peer access: "
                       "call enable_peer_access first, or copy the tensor",
                       command->name, device->device->index, owner->index);
    }
    return MR_OK;
}

static mr_status begin(work *w, const mr_command *command) {
    body *b = w->body;
    b->begun = true;
    w->state = WORK_STARTED;
    if (command->kind == MR_COMMAND_OP) {
        bool reaches = w->queue->device->gpu->device_count > 1 && !command->meeting;
        if (reaches) MR_TRY(check_reach(w, command));
        MR_TRY(mr_op_begin(command, &b->scratch));
    }
    return MR_OK;
}

/* ---- what checkpoints must know before a byte changes */

void mr_virtual_born(const vgpu *gpu, mr_storage *storage) {
    storage->impl = (void *)(uintptr_t)gpu->undo.generation;
}

/* Whether no checkpoint covers this host memory, if checkpoints do not restore memory of the host. */
bool mr_virtual_is_new(mr_machine *machine, const mr_storage *storage) {
    const vgpu *gpu = vgpu_of(machine);
    return gpu->undo.host_stays && storage->kind != MR_MEMORY_DEVICE &&
           (uintptr_t)storage->impl >= gpu->undo.generation;
}

void mr_virtual_keep_bytes(vgpu *gpu, const mr_storage *storage, uint64_t first, uint64_t end) {
    char *base = storage->host;
    if (first >= end || !base || mr_virtual_is_new(gpu->machine, storage)) return;
    char *low = base, *high = base + storage->bytes;
    if (storage->kind == MR_MEMORY_DEVICE) { /* whole pages: the device's memory is all ours */
        const arena *a = &((vdevice *)storage->device->impl)->pool.space->arena;
        low = a->base;
        high = a->base + a->mapped;
    }
    mr_undo_save(&gpu->undo, low, high, base + first, base + end);
}

static void before_write_of(vgpu *gpu, const mr_command *command) {
    for (uint32_t i = 0; mr_undo_is_on(&gpu->undo) && i < command->operand_count; i++) {
        const mr_tensor *t = command->operands[i].tensor;
        uint64_t first, end;
        if (!(command->operands[i].access & MR_WRITE)) continue;
        mr_tensor_extent(t, &first, &end);
        mr_virtual_before_write(gpu, t->storage, first, end);
    }
}

/* All of it at the first slice: a page is kept once for each checkpoint. */
static void before_write(vgpu *gpu, const mr_command *command) {
    if (__builtin_expect(command->meeting != NULL, 0) &&
        !mr_command_waits_for_others(command)) /* it writes for all */
        for (uint32_t k = 0; k < command->meeting->size; k++)
            if (k != command->member) before_write_of(gpu, command->meeting->members[k].command);
    before_write_of(gpu, command);
}

/* ---- running */

static mr_status run_items(work *w, int64_t *io_first, int64_t end) {
    const mr_command *command = w->command;
    body *b = w->body;
    if (!b->begun) MR_TRY(begin(w, command));
    before_write(w->queue->device->gpu, command); /* `finish` writes, too, also after no items */
    if (*io_first >= end) return MR_OK;
    if (command->kind == MR_COMMAND_OP)
        return mr_op_run_items(command, b->scratch, io_first, end,
                               w->queue->device->gpu->interruptible);
    const char *source = w->staged ? w->staged->bytes : mr_tensor_data(command->operands[1].tensor);
    char *target = mr_tensor_data(command->operands[0].tensor);
    memmove(target + *io_first, source + *io_first, (size_t)(end - *io_first));
    *io_first = end;
    return MR_OK;
}

static void free_scratch(body *b) {
    free(b->scratch);
    b->scratch = NULL;
}

mr_status mr_virtual_body_run(work *w, int64_t *io_first, int64_t end) {
    body *b = w->body;
    bool skip = b->failed || w->command->machine->bodies.skipped;
    mr_status status = skip ? MR_OK : run_items(w, io_first, end);
    if (status && status->code == MR_CODE_INTERRUPTED) return status;
    *io_first = end;
    if (!status) return MR_OK;
    bool is_begun = b->begun && !b->failed;
    b->failed = true;
    if (is_begun && w->command->kind == MR_COMMAND_OP) mr_op_fail(w->command, b->scratch);
    free_scratch(b);
    return status;
}

void mr_virtual_body_finish(work *w) {
    body *b = w->body;
    if (w->command->kind == MR_COMMAND_OP && !b->failed && !w->command->machine->bodies.skipped)
        mr_op_finish(w->command, b->scratch);
    free_scratch(b);
}

void mr_virtual_body_free(work *w) {
    vgpu *gpu = w->queue->device->gpu;
    body *b = w->body;
    free_scratch(b);
    for (chunk *c = b->chunks, *next; c; c = next) {
        next = c->next;
        if (c != &b->first_chunk) mr_slab_free(&gpu->chunks, c);
    }
    mr_slab_free(&gpu->bodies, b);
    w->body = NULL;
}

int64_t mr_virtual_scratch_bytes(const work *w) {
    return w->body && w->body->scratch ? mr_op_state_bytes(w->command) : 0;
}
