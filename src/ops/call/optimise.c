/* The entry point of the steps of optimisers: checks all tensors, then submits one command, or runs it on the host. */
#include <stdlib.h>

#include "ops/ids.h"
#include "ops/table/launch.h"
#include "ops/optimise.h"

static const char *role(int k) {
    static const char *const roles[] = {"the parameter", "the gradient", "the first state",
                                        "the second state"};
    return roles[k];
}

/* The error for tensor `k` of a parameter, whose dtype, shape or layout is wrong. */
static mr_status unfit(const mr_launch *launch, const mr_tensor *parameter, const mr_tensor *t,
                       int k) {
    const mr_tensor *first = launch->first;
    char name[160], other[160], shape[128], wanted[128];
    mr_tensor_describe(t, name, sizeof name);
    if (t->dtype != first->dtype)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s %s is %s, but %s is %s", launch->name,
                       role(k), name, mr_dtype_text((mr_dtype)t->dtype),
                       mr_tensor_describe(first, other, sizeof other),
                       mr_dtype_text((mr_dtype)first->dtype));
    if (!mr_same_shape(t, parameter))
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s %s is %s, but its parameter is %s",
                       launch->name, role(k), name,
                       mr_shape_text(t->ndim, t->shape, shape, sizeof shape),
                       mr_shape_text(parameter->ndim, parameter->shape, wanted, sizeof wanted));
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s %s is not contiguous; use its contiguous()",
                   launch->name, role(k), name);
}

static mr_status check_tensor(mr_launch *launch, const mr_tensor *parameter, mr_tensor *t, int k) {
    MR_TRY(mr_launch_check(launch, t));
    bool fits = t->dtype == launch->first->dtype && mr_same_shape(t, parameter) && t->contiguous;
    return fits ? MR_OK : unfit(launch, parameter, t, k);
}

static mr_status check_all(mr_launch *launch, const mr_step *step, int each,
                           mr_tensor *const *tensors) {
    for (uint32_t i = 0; i < step->parameters; i++)
        for (int k = 0; k < each; k++)
            MR_TRY(check_tensor(launch, tensors[i * (uint32_t)each],
                                tensors[i * (uint32_t)each + (uint32_t)k], k));
    mr_dtype dtype = (mr_dtype)launch->first->dtype;
    if (dtype == MR_F32 || dtype == MR_F64) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: parameters are f32 or f64, not %s: keep an f32 copy of them and of their "
                   "gradients",
                   launch->name, mr_dtype_text(dtype));
}

/* The values that gather_grads replaces are not read. */
static uint8_t access_of(const mr_op *op, int k) {
    if (k == 1) return MR_READ;
    return op->id == MR_OP_gather_grads ? MR_WRITE : MR_READ | MR_WRITE;
}

static mr_status submit(const mr_launch *launch, const mr_step *step, int each, uint32_t count,
                        mr_tensor *const *tensors) {
    mr_command *command;
    MR_TRY(mr_command_create(launch->caller, MR_COMMAND_OP, launch->stream, launch->name, count,
                             &command));
    for (uint32_t i = 0; i < count; i++)
        mr_command_set_operand(command, i, tensors[i],
                               access_of(launch->op, (int)(i % (uint32_t)each)));
    command->u.op.row = launch->op;
    mr_status status = mr_command_set_arguments(command, step, sizeof *step);
    if (!status) return mr_command_submit(command);
    mr_command_release(command);
    return status;
}

/* As run_on_host of launch.c, with any number of operands. */
static mr_status run_on_host(const mr_launch *launch, const mr_step *step, int each, uint32_t count,
                             mr_tensor *const *tensors) {
    mr_machine *machine = launch->caller->machine;
    mr_step own = *step;
    mr_operand *operands = malloc(count * sizeof *operands);
    if (!operands) return mr_no_memory("for %s", launch->name);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        operands[i] = (mr_operand){tensors[i], access_of(launch->op, (int)(i % (uint32_t)each))};
        bytes += (uint64_t)tensors[i]->numel * mr_dtype_size(tensors[i]->dtype);
    }
    mr_command command = {.kind = MR_COMMAND_OP,
                          .operands = operands,
                          .operand_count = count,
                          .machine = machine,
                          .where = launch->caller->where,
                          .name = launch->name};
    command.u.op.row = launch->op;
    command.u.op.arguments = &own;
    command.u.op.argument_bytes = sizeof own;
    mr_status status = mr_host_accesses(launch->caller, launch->name, operands, count, NULL, NULL);
    if (!status) {
        status = mr_op_run_now(&command);
        if (status) mr_command_blame(&command, status);
        mr_host_worked(machine, bytes, status);
    }
    free(operands);
    return status;
}

mr_status mr_optimise(const mr_caller *caller, const mr_op *op, const mr_step *step,
                      mr_tensor *const *tensors) {
    mr_launch launch;
    const mr_call none = {0};
    int each = 2 + mr_step_states(op);
    uint32_t count = step->parameters * (uint32_t)each;
    if (count == 0) return MR_OK;
    mr_launch_init(&launch, caller, op, &none);
    MR_TRY(check_all(&launch, step, each, tensors));
    MR_TRY(mr_launch_place(&launch, NULL));
    if (!launch.device) return run_on_host(&launch, step, each, count, tensors);
    return submit(&launch, step, each, count, tensors);
}
