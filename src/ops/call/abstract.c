/* The entry points of mr.op and mr.spin: operations on device tensors, and on pinned host tensors as the
 * mapped memory that they are. */
#include "ops/ids.h"
#include "ops/table/launch.h"

#include <stdlib.h>

/* FNV-1a: makes the values of different names differ. */
static uint64_t hash_name(const char *name) {
    uint64_t hash = 14695981039346656037u;
    for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 1099511628211u;
    return hash;
}

static const char *name_of(const mr_abstract *op) {
    return op->name ? op->name : "op";
}

/* Another device's memory is not an error here: whether the device can reach it is found out when the kernel
 * runs, as on hardware (R59). */
static mr_status check_operand(const mr_abstract *op, mr_machine *machine, mr_tensor *t,
                               bool written) {
    char text[160];
    if (t->storage->machine != machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s: the tensor belongs to another machine",
                       name_of(op));
    MR_TRY(mr_tensor_usable(t));
    mr_tensor_describe(t, text, sizeof text);
    if (t->storage->kind == MR_MEMORY_PAGEABLE)
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s: %s is in pageable host memory, which the device cannot reach; use pin_memory()",
            name_of(op), text);
    if (written && mr_tensor_self_overlaps(t))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: several elements of %s share one memory location; write to its clone()",
                       name_of(op), text);
    return MR_OK;
}

/* Where the operation runs when no stream is named: on the first device tensor's device. */
static mr_stream *default_stream(const mr_abstract *op, mr_machine *machine) {
    for (int pass = 0; pass < 2; pass++) {
        mr_tensor **list = pass == 0 ? op->writes : op->reads;
        int count = pass == 0 ? op->write_count : op->read_count;
        for (int i = 0; i < count; i++)
            if (!mr_tensor_on_host(list[i])) return list[i]->storage->device->current;
    }
    return machine->current_device->current;
}

mr_status mr_abstract_op(const mr_caller *caller, const mr_abstract *op) {
    mr_machine *machine = caller->machine;
    MR_TRY(mr_machine_ready(machine));
    mr_stream *stream = op->stream ? op->stream : default_stream(op, machine);
    MR_TRY(mr_stream_usable(stream));
    for (int i = 0; i < op->write_count; i++)
        MR_TRY(check_operand(op, machine, op->writes[i], true));
    for (int i = 0; i < op->read_count; i++)
        MR_TRY(check_operand(op, machine, op->reads[i], false));

    /* Writes first; a tensor that is in both lists is one operand. */
    size_t most = (size_t)op->write_count + (size_t)op->read_count;
    mr_operand *operands = malloc((most ? most : 1) * sizeof *operands);
    if (!operands) return mr_no_memory("for %s", name_of(op));
    uint32_t count = 0;
    for (size_t i = 0; i < most; i++) {
        bool write = i < (size_t)op->write_count;
        mr_tensor *t = write ? op->writes[i] : op->reads[i - (size_t)op->write_count];
        uint32_t k = 0;
        while (k < count && !mr_same_view(operands[k].tensor, t)) k++;
        if (k == count) operands[count++] = (mr_operand){t, 0};
        operands[k].access |= write ? MR_WRITE : MR_READ;
    }
    mr_command *command;
    mr_status status = mr_command_create(caller, MR_COMMAND_OP, stream, "op", count, &command);
    if (!status) {
        for (uint32_t k = 0; k < count; k++)
            mr_command_set_operand(command, k, operands[k].tensor, operands[k].access);
        command->u.op.row = &mr_ops[MR_OP_op];
        mr_params params = {0};
        params.abstract = (mr_abstract_params){
            .duration_ns = op->duration_ns, .mix = hash_name(name_of(op)), .blocks = op->blocks};
        mr_params_set(command, &params);
        if (op->name) status = mr_command_set_name(command, op->name);
        if (!status) status = mr_command_submit(command);
        else mr_command_release(command);
    }
    free(operands);
    return status;
}

mr_status mr_spin(const mr_caller *caller, mr_stream *stream, uint64_t duration_ns) {
    MR_TRY(mr_machine_ready(caller->machine));
    if (!stream) stream = caller->machine->current_device->current;
    MR_TRY(mr_stream_usable(stream));
    mr_command *command;
    MR_TRY(mr_command_create(caller, MR_COMMAND_OP, stream, "spin", 0, &command));
    command->u.op.row = &mr_ops[MR_OP_spin];
    mr_params params = {0};
    params.abstract = (mr_abstract_params){.duration_ns = duration_ns, .blocks = 1};
    mr_params_set(command, &params);
    return mr_command_submit(command);
}
