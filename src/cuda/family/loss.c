/* nll_loss and its gradient: the positions of the targets, as the kernels walk over them. */
#include "cuda/family/family.h"
#include "ops/ids.h"
#include "ops/network.h"

static void lay_out(const mr_command *command, bool backward, bool each, mr_cuda_loss *p) {
    const mr_tensor *target = command->operands[2].tensor;
    mr_tensor rest;
    mr_loss_classes(command->operands[backward ? 0 : 1].tensor, &rest, &p->classes, &p->class_step);
    cuda_layout layout;
    mr_cuda_strides strides[3];
    const mr_tensor *losses = command->operands[backward ? 1 : 0].tensor;
    mr_cuda_layout_begin(&layout, target->ndim, target->shape);
    mr_cuda_layout_tensor(&layout, target);
    mr_cuda_layout_add(&layout, rest.ndim, rest.shape, rest.stride);
    if (each) mr_cuda_layout_tensor(&layout, losses);
    else mr_cuda_layout_add(&layout, 0, NULL, NULL);
    mr_cuda_layout_end(&layout, false, &p->shape, strides);
    p->target_stride = strides[0];
    p->x_stride = strides[1];
    p->gradient_stride = strides[2];
}

mr_status mr_cuda_launch_loss(const mr_command *command, CUstream stream) {
    mr_loss_params params = mr_params_of(command).loss;
    const mr_operand *o = command->operands;
    bool backward = command->u.op.row->id == MR_OP_nll_loss_backward;
    bool each = params.reduction == MR_LOSS_NONE;
    mr_cuda_loss args = {.x = (void *)mr_cuda_data(o[backward ? 0 : 1].tensor),
                         .target = (const void *)mr_cuda_data(o[2].tensor),
                         .count = (uint64_t)o[2].tensor->numel,
                         .ignored = params.ignored,
                         .wide = o[2].tensor->dtype == MR_I64,
                         .mean = params.reduction == MR_LOSS_MEAN,
                         .each = each};
    if (backward) args.gradient = (const void *)mr_cuda_data(o[1].tensor);
    else args.out = (void *)mr_cuda_data(o[0].tensor);
    if (params.weighted) {
        args.weight = (const void *)mr_cuda_data(o[3].tensor);
        args.weight_step = o[3].tensor->stride[0];
    }
    if (!each) args.total = (void *)mr_cuda_data(o[command->operand_count - 1].tensor);
    lay_out(command, backward, each, &args);
    mr_dtype dtype = (mr_dtype)o[0].tensor->dtype;
    const char *name = backward ? "loss_backward" : each ? "each_loss" : "one_loss";
    CUfunction function,
        *slot = &mr_cuda_kernels_of(command)
                     ->rows[command->u.op.row->id][dtype][each ? FORM_STRIDED : FORM_DENSE];
    MR_CUDA_FIND(function, command, slot, MODULE_LOSS, "%s_%s", name, mr_cuda_tag(dtype));
    uint64_t items = backward ? args.count * (uint64_t)args.classes : each ? args.count : 1;
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(items, MR_CUDA_THREADS),
                           &args);
}
