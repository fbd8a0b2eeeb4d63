/* Bytes that the host itself writes (a table of numbers into a new tensor).
 *
 * Easiest to break: the time of the copy. The bytes are complete only when the call that announced the access has
 * ended. So they are copied at the next event that the recorder is told of, or when the host function returns. */
#include "program/recorder.h"

static void take(mr_recorder *r, const capture *c) {
    mr_program *p = r->program;
    if (c->slot != NO_SLOT) {
        p->storages.items[c->slot].first = mr_record_storage_bytes(r, c->storage);
        return;
    }
    blob written;
    char *to = mr_record_bytes(r, mr_value_view_bytes(&c->view), &written);
    if (!to) return;
    mr_value_gather(&c->view, to);
    item *it = c->inner ? &p->inner.items[c->at] : &p->items.items[c->at];
    if (!it->bytes.size) it->bytes = written;
    else it->bytes.size += written.size; /* the next operand: its bytes lie right after */
}

/* An operation of the host, or a copy, that overwrites all of a new storage at once: its old contents cannot be
 * seen. */
static bool overwrites(const mr_command *command, const mr_storage *storage) {
    bool is_work = mr_command_has(command, MR_PART_COPY) ||
                   (command->kind == MR_COMMAND_HOST_ACCESS && command->u.op.row);
    bool all = false;
    for (uint32_t i = 0; is_work && i < command->operand_count; i++) {
        const mr_operand *o = &command->operands[i];
        if (o->tensor->storage != storage) continue;
        if (o->access != MR_WRITE) return false;
        all |= o->tensor->contiguous && mr_value_view_bytes(o->tensor) == storage->bytes;
    }
    return all;
}

void mr_record_flush(mr_recorder *r, const mr_command *command) {
    for (size_t i = 0; i < r->captures.count; i++) {
        const capture *c = &r->captures.items[i];
        if (c->slot != NO_SLOT) {
            storage_slot *slot = &r->program->storages.items[c->slot];
            slot->blank = c->storage->blank; /* bind says so only when the storage is there */
            slot->transient = c->storage->transient;
        }
        bool goes = command && command->kind == MR_COMMAND_HOST_FREE &&
                    command->u.account.storage == c->storage;
        if (c->slot == NO_SLOT || !command || (!goes && !overwrites(command, c->storage)))
            take(r, c);
    }
    r->captures.count = 0;
}

void mr_record_capture(mr_recorder *r, capture c) {
    if (!mr_vec_push(&r->captures, c)) r->failed = true;
}
