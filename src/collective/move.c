/* The bytes of a meeting whose members are in several processes: see world.h. */
#include "collective/world_parts.h"

#include <stdlib.h>
#include <string.h>

#include "model/backend.h"
#include "tensor/tensor.h"

/* A piece of what one member sends to another. */
typedef void visit(void *context, char *bytes, size_t size);

static const mr_tensor *operand(const mr_command *command, int16_t which) {
    return which == MR_MEETING_NONE ? NULL : command->operands[which].tensor;
}

static void visit_part(const mr_tensor *t, uint64_t part, uint64_t parts, visit *see,
                       void *context) {
    size_t bytes = (size_t)t->numel * mr_dtype_size((mr_dtype)t->dtype) / parts;
    if (bytes) see(context, (char *)mr_tensor_data(t) + part * bytes, bytes);
}

static void visit_messages(const mr_meeting *meeting, mr_command *const *commands, uint32_t from,
                           uint32_t to, visit *see, void *context) {
    for (uint32_t i = 0; i < meeting->message_count; i++) {
        const mr_message *one = &meeting->messages[i];
        if (one->from == from && one->to == to)
            visit_part(operand(commands[from], one->in), 0, 1, see, context);
    }
}

/* Visits the pieces that member `to` needs from member `from`, in the same order on both. */
static void visit_pieces(const mr_meeting *meeting, mr_command *const *commands, uint32_t from,
                         uint32_t to, visit *see, void *context) {
    const mr_tensor *in = operand(commands[from], meeting->members[from].in);
    switch (meeting->what) {
    case MR_COLLECTIVE_ALL_REDUCE:
    case MR_COLLECTIVE_ALL_GATHER: visit_part(in, 0, 1, see, context); break;
    case MR_COLLECTIVE_BROADCAST:
        if (from == meeting->root) visit_part(in, 0, 1, see, context);
        break;
    case MR_COLLECTIVE_REDUCE:
        if (to == meeting->root) visit_part(in, 0, 1, see, context);
        break;
    case MR_COLLECTIVE_REDUCE_SCATTER:
    case MR_COLLECTIVE_ALL_TO_ALL: visit_part(in, to, meeting->size, see, context); break;
    case MR_COLLECTIVE_EXCHANGE: visit_messages(meeting, commands, from, to, see, context); break;
    }
}

static void append(void *context, char *bytes, size_t size) {
    mr_buffer_add(context, bytes, size);
}

static void take(void *context, char *bytes, size_t size) {
    message *in = context;
    if (in->size - in->at < size) in->fine = false;
    if (!in->fine) return;
    memcpy(bytes, in->bytes + in->at, size);
    in->at += size;
}

static mr_status take_from(mr_world *w, mr_meeting *meeting, mr_command *const *commands,
                           uint32_t host, uint32_t from, uint32_t own) {
    message in;
    MR_TRY(mr_world_receive(w, host - 1, &in));
    if (!in.bytes) {
        if (!w->failure)
            w->failure = mr_fail(MR_CODE_NO_PEER, "rank %u has ended in a collective", host - 1);
        return MR_OK;
    }
    mr_message_number(&in);
    meeting->members[from].begins = mr_message_number(&in);
    visit_pieces(meeting, commands, from, own, take, &in);
    bool fine = in.fine && in.at == in.size;
    free(in.bytes);
    if (fine) return MR_OK;
    return mr_fail(MR_CODE_UNKNOWN, "the data of rank %u do not fit the collective", host - 1);
}

/* If a rank has failed, the meeting still ends, with arbitrary values: the machine stays usable, and the call returns
 * the error. */
mr_status mr_world_meet(mr_collectives *c, mr_meeting *meeting, mr_command *const *commands,
                        const uint32_t *hosts, uint32_t own) {
    mr_world *w = c->world;
    uint64_t time;
    mr_status status = MR_OK;
    MR_TRY(c->machine->backend->simulator->begin_member(c->machine, commands[own], &time));
    for (uint32_t k = 0; k < meeting->size; k++) meeting->members[k].begins = time;
    for (uint32_t k = 0; k < meeting->size && !status && !w->failure; k++) {
        mr_buffer out = {0};
        if (k == own) continue;
        mr_message_add(&out, MESSAGE_DATA);
        mr_message_add(&out, time);
        visit_pieces(meeting, commands, own, k, append, &out);
        status = mr_world_send(w, hosts[k] - 1, &out);
    }
    for (uint32_t k = 0; k < meeting->size && !status && !w->failure; k++)
        if (k != own) status = take_from(w, meeting, commands, hosts[k], k, own);
    if (status && !w->failure) {
        w->failure = mr_error_copy(status);
        mr_world_tell_failure(w, status->code, status->message);
    }
    mr_error_destroy(status);
    return MR_OK;
}
