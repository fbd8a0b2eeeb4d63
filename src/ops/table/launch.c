/* The code that the entry points of all families share: see launch.h. */
#include "ops/table/launch.h"

#include "model/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void mr_launch_init(mr_launch *launch, const mr_caller *caller, const mr_op *op,
                    const mr_call *call) {
    launch->caller = caller;
    launch->op = op;
    launch->name = call->in_place ? op->name_in_place : op->name;
    launch->first = NULL;
    launch->device = NULL;
    launch->stream = NULL;
    launch->operand_count = 0;
    launch->params = call->params;
}

/* "device 0", "the cpu" */
static const char *place_text(const mr_tensor *t, char *out, size_t size) {
    if (mr_tensor_on_host(t)) snprintf(out, size, "the cpu");
    else snprintf(out, size, "device %d", t->storage->device->index);
    return out;
}

static mr_status different_places(const mr_launch *launch, const mr_tensor *tensor) {
    const mr_tensor *first = launch->first;
    char a[160], b[160], place_a[64], place_b[64];
    mr_tensor_describe(first, a, sizeof a);
    mr_tensor_describe(tensor, b, sizeof b);
    place_text(first, place_a, sizeof place_a);
    place_text(tensor, place_b, sizeof place_b);
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: %s is on %s, but %s on %s: move one of them with to()", launch->name, a,
                   place_a, b, place_b);
}

mr_status mr_launch_check(mr_launch *launch, mr_tensor *tensor) {
    const mr_storage *storage = tensor->storage;
    if (storage->machine != launch->caller->machine)
        return mr_fail(MR_CODE_INVALID_HANDLE, "%s: the tensor belongs to another machine",
                       launch->name);
    MR_TRY(mr_tensor_usable(tensor));
    mr_device *device = mr_tensor_on_host(tensor) ? NULL : storage->device;
    if (!launch->first) {
        launch->first = tensor;
        launch->device = device;
    } else if (device != launch->device) {
        return different_places(launch, tensor);
    }
    return MR_OK;
}

mr_status mr_launch_place(mr_launch *launch, mr_stream *stream) {
    if (!launch->device) return MR_OK; /* the host computes at once, whatever the stream */
    launch->stream = stream ? stream : launch->device->current;
    return mr_launch_check_stream(launch->caller->machine, launch->name, launch->first,
                                  launch->stream);
}

mr_status mr_launch_check_stream(mr_machine *machine, const char *name, const mr_tensor *tensor,
                                 mr_stream *stream) {
    MR_TRY(mr_machine_ready(machine));
    MR_TRY(mr_stream_usable(stream));
    if (stream->device == tensor->storage->device) return MR_OK;
    char a[160], b[96], place[64];
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s is on %s, but %s belongs to device %d", name,
                   mr_tensor_describe(tensor, a, sizeof a), place_text(tensor, place, sizeof place),
                   mr_stream_describe(stream, b, sizeof b), stream->device->index);
}

mr_status mr_launch_check_out(const mr_launch *launch, const mr_tensor *out, mr_dtype dtype,
                              int ndim, const int64_t *shape) {
    char name[160];
    if (!mr_has_shape(out, ndim, shape)) {
        char own[192], wanted[192];
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the result is %s, but %s is %s", launch->name,
                       mr_shape_text(ndim, shape, wanted, sizeof wanted),
                       mr_tensor_describe(out, name, sizeof name),
                       mr_shape_text(out->ndim, out->shape, own, sizeof own));
    }
    if (out->dtype != dtype && mr_dtype_category(dtype) > mr_dtype_category(out->dtype))
        return mr_fail(
            MR_CODE_INVALID_ARGUMENT,
            "%s: the result is %s and cannot be written to %s, which is %s; use x:to(\"%s\")",
            launch->name, mr_dtype_text(dtype), mr_tensor_describe(out, name, sizeof name),
            mr_dtype_text(out->dtype), mr_dtype_text(dtype));
    if (!out->contiguous && mr_tensor_self_overlaps(out))
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: several elements of %s share one memory location (it was expanded); "
                       "write to its clone()",
                       launch->name, mr_tensor_describe(out, name, sizeof name));
    return MR_OK;
}

bool mr_same_view(const mr_tensor *a, const mr_tensor *b) {
    if (a == b) return true;
    if (a->storage != b->storage || a->offset != b->offset || a->dtype != b->dtype ||
        a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->stride[d] != b->stride[d]))
            return false;
    return true;
}

mr_status mr_launch_check_overlap(const mr_launch *launch, const mr_tensor *out,
                                  const mr_tensor *in, bool exact) {
    if (out->storage != in->storage) return MR_OK;
    if (exact && mr_same_view(out, in)) return MR_OK;
    if (!mr_tensor_may_overlap(out, in)) return MR_OK;
    char a[160], b[160];
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: the input %s and the output %s share memory; use a clone() as the input",
                   launch->name, mr_tensor_describe(in, a, sizeof a),
                   mr_tensor_describe(out, b, sizeof b));
}

mr_status mr_launch_new(const mr_launch *launch, mr_dtype dtype, int ndim, const int64_t *shape,
                        mr_tensor **out_tensor) {
    return mr_tensor_create(launch->caller, launch->device ? MR_MEMORY_DEVICE : MR_MEMORY_PAGEABLE,
                            launch->stream, dtype, ndim, shape, out_tensor);
}

void mr_drop_new(mr_tensor *tensor) {
    mr_storage_drop_handle(tensor->storage);
    mr_tensor_release(tensor);
}

/* The command only passes arguments to the body. It is not kept, so it is on the stack and holds no references. */
static mr_status run_on_host(const mr_launch *launch) {
    mr_machine *machine = launch->caller->machine;
    mr_command command = {.kind = MR_COMMAND_OP,
                          .operand_count = launch->operand_count,
                          .machine = machine,
                          .where = launch->caller->where,
                          .name = launch->name};
    mr_operand operands[MR_LAUNCH_OPERANDS];
    command.operands = operands;
    command.u.op.row = launch->op;
    mr_params_set(&command, &launch->params);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < launch->operand_count; i++) {
        mr_tensor *t = launch->operands[i];
        operands[i] = (mr_operand){t, launch->access[i]};
        bytes += (uint64_t)t->numel * mr_dtype_size(t->dtype);
    }
    MR_TRY(mr_host_accesses(launch->caller, launch->name, command.operands, launch->operand_count,
                            launch->op, &launch->params));
    mr_status status = mr_op_run_now(&command);
    if (status) mr_command_blame(&command, status);
    mr_host_worked(command.machine, bytes, status);
    return status;
}

mr_status mr_launch_go(const mr_launch *launch) {
    if (launch->operand_count > 0 && launch->operands[0]->numel == 0) return MR_OK;
    if (!launch->device) return run_on_host(launch);
    mr_command *command;
    MR_TRY(mr_command_create(launch->caller, MR_COMMAND_OP, launch->stream, launch->name,
                             launch->operand_count, &command));
    for (uint32_t i = 0; i < launch->operand_count; i++)
        mr_command_set_operand(command, i, launch->operands[i], launch->access[i]);
    command->u.op.row = launch->op;
    mr_params_set(command, &launch->params);
    return mr_command_submit(command);
}
