/* Actions: see action.h. This is the one door: everything that reaches a backend passes
 * mr_action_submit, and everything that an observer knows it has seen there or in announce. */
#include "model/action.h"

#include <stdlib.h>
#include <string.h>

#include "model/internal.h"

static const char *const kind_texts[] = {
#define X(name, text) text,
    MR_ACTION_LIST(X)
#undef X
};

const char *mr_action_kind_text(mr_action_kind kind) {
    return kind_texts[kind];
}

mr_status mr_action_create(mr_machine *machine, mr_action_kind kind, mr_stream *stream,
                           const char *name, uint32_t operand_count, mr_action **out_action) {
    mr_action *action = mr_slab_alloc(&machine->actions);
    *out_action = NULL;
    if (!action) return mr_fail(MR_CODE_OUT_OF_MEMORY, "no memory for one more pending operation");
    memset(action, 0, sizeof *action + machine->backend->action_extra);
    action->operands = action->inline_operands;
    if (operand_count > MR_INLINE_OPERANDS) {
        action->operands = calloc(operand_count, sizeof *action->operands);
        if (!action->operands) {
            mr_slab_free(&machine->actions, action);
            return mr_fail(MR_CODE_OUT_OF_MEMORY, "%s: no memory for %u operands", name,
                           operand_count);
        }
    }
    action->kind = kind;
    action->operand_count = operand_count;
    action->seq = machine->next_seq++;
    action->machine = machine;
    action->where = machine->where;
    bool is_work = kind == MR_ACTION_OP || kind == MR_ACTION_COPY;
    action->name = is_work && machine->called ? machine->called : name;
    action->stream = stream;
    if (stream) mr_stream_retain(stream);
    *out_action = action;
    return MR_OK;
}

void mr_action_set_operand(mr_action *action, uint32_t i, mr_tensor *tensor, uint8_t access) {
    mr_tensor_retain(tensor);
    action->operands[i] = (mr_operand){tensor, access};
}

static mr_status tell_observers(mr_machine *machine, const mr_action *action) {
    for (size_t i = 0; i < machine->observers.count; i++) {
        mr_observer *observer = machine->observers.items[i];
        MR_TRY(observer->action(observer, action));
    }
    return MR_OK;
}

/* For whoever looks at the tensor before the values are there. */
static void note_writer(const mr_action *action) {
    for (uint32_t i = 0; i < action->operand_count; i++) {
        if (!(action->operands[i].access & MR_WRITE)) continue;
        mr_storage *storage = mr_tensor_storage(action->operands[i].tensor);
        storage->writer = action->name;
        storage->writer_where = action->where;
    }
}

mr_status mr_action_submit(mr_action *action) {
    mr_machine *machine = action->machine;
    mr_stream *stream = action->stream;
    mr_status status = MR_OK;
    if (stream->closed)
        status = mr_stream_usable(stream); /* by a finalizer, since the caller looked */
    if (!status) status = tell_observers(machine, action);
    if (!status) {
        note_writer(action);
        uint64_t seq = action->seq;
        bool work = action->kind == MR_ACTION_OP || action->kind == MR_ACTION_COPY ||
                    action->kind == MR_ACTION_FAULT;
        bool memory = action->kind == MR_ACTION_ALLOC || action->kind == MR_ACTION_FREE;
        status = machine->backend->submit(action);
        if (!status) {
            stream->last_seq = seq;
            if (machine->launch_blocking && work)
                status = machine->backend->stream_synchronize(stream);
            /* The error of a host function that ran meanwhile is not that of an allocation: its caller
             * would take the memory for not allocated, or not freed. The next call has it. */
            return memory ? MR_OK : mr_machine_waited(machine, status);
        }
    }
    mr_action_destroy(action);
    return mr_machine_waited(machine, status);
}

mr_status mr_action_announce(mr_action *action) {
    mr_status status = tell_observers(action->machine, action);
    mr_action_destroy(action);
    return status;
}

void mr_action_destroy(mr_action *action) {
    mr_machine *machine = action->machine;
    for (uint32_t i = 0; i < action->operand_count; i++)
        if (action->operands[i].tensor) mr_tensor_release(action->operands[i].tensor);
    if (action->operands != action->inline_operands) free(action->operands);
    switch (action->kind) {
    case MR_ACTION_RECORD:
    case MR_ACTION_WAIT:
    case MR_ACTION_EVENT_SYNC:
    case MR_ACTION_EVENT_QUERY: mr_event_release(action->u.event.event); break;
    case MR_ACTION_ALLOC:
    case MR_ACTION_FREE: mr_storage_release(action->u.storage); break;
    case MR_ACTION_HOST_FUNCTION:
        if (action->u.host.drop) action->u.host.drop(action->u.host.context);
        break;
    default: break;
    }
    mr_stream_release(action->stream);
    mr_slab_free(&machine->actions, action);
}

mr_status mr_announce(mr_machine *machine, mr_action_kind kind, mr_stream *stream, mr_event *event,
                      mr_device *device, const char *name) {
    if (!machine->observers.count) return MR_OK;
    mr_action *action;
    MR_TRY(mr_action_create(machine, kind, stream, name, 0, &action));
    if (event) {
        mr_event_retain(event);
        action->u.event.event = event;
        action->u.event.record_seq = event->record_seq;
    } else if (kind == MR_ACTION_DEVICE_SYNC) {
        action->u.device = device;
    }
    return mr_action_announce(action);
}
