/* nonzero and masked_select. */
#include "cuda/family/family.h"
#include "cuda/kernels/order_args.h"
#include "ops/ids.h"

/* The bits of an element that make it true: -0 is 0, and NaN is not. */
static uint64_t true_bits(mr_dtype dtype) {
    uint64_t all = UINT64_MAX >> (64 - 8 * mr_dtype_size(dtype));
    return mr_dtype_category(dtype) == 2 ? all >> 1 : all;
}

static mr_cuda_compact arguments(const mr_command *command) {
    const mr_tensor *out = command->operands[0].tensor, *in = command->operands[1].tensor;
    const mr_tensor *condition = command->operands[command->operand_count - 1].tensor;
    bool positions = command->u.op.row->id == MR_OP_nonzero;
    mr_cuda_compact args = {.in = (const void *)mr_cuda_data(in),
                            .condition = (const void *)mr_cuda_data(condition),
                            .mask = true_bits((mr_dtype)condition->dtype),
                            .out = (void *)mr_cuda_data(out),
                            .room = (uint64_t)(positions ? out->shape[0] : out->numel),
                            .count = (uint64_t)in->numel,
                            .tiles = mr_cuda_blocks((uint64_t)in->numel, MR_CUDA_COMPACT_TILE),
                            .ndim = (uint32_t)in->ndim};
    for (int d = 0; d < in->ndim; d++) args.size[d] = in->shape[d];
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, in->ndim, in->shape);
    mr_cuda_layout_tensor(&layout, condition);
    mr_cuda_layout_tensor(&layout, in);
    mr_cuda_layout_end(&layout, false, &args.shape, args.stride);
    args.dense = mr_cuda_is_run(&args.shape, &args.stride[0]) &&
                 mr_cuda_aligned((CUdeviceptr)args.condition);
    return args;
}

static mr_status scan(const mr_command *command, CUstream stream, mr_cuda_compact *args) {
    CUfunction function;
    MR_CUDA_FIND(function, command, &mr_cuda_kernels_of(command)->compact_scan, MODULE_COMPACT,
                 "compact_scan");
    args->prefixes = true;
    mr_cuda_device_of(command)->machine->submissions++;
    return mr_cuda_enqueue(command, stream, function, 1, args);
}

static mr_status compact(const mr_command *command, CUstream stream, mr_cuda_compact *args) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    const mr_operand *condition = &command->operands[command->operand_count - 1];
    size_t size = mr_dtype_size((mr_dtype)condition->tensor->dtype),
           out_size = mr_dtype_size((mr_dtype)command->operands[0].tensor->dtype);
    CUfunction count, write;
    MR_CUDA_FIND(count, command, &kernels->compact_count[__builtin_ctzl(size)], MODULE_COMPACT,
                 "compact_count_%d", (int)size);
    if (command->u.op.row->id == MR_OP_nonzero)
        MR_CUDA_FIND(write, command, &kernels->compact_positions[__builtin_ctzl(size)],
                     MODULE_COMPACT, "compact_positions_%d", (int)size);
    else
        MR_CUDA_FIND(write, command, &kernels->compact[__builtin_ctzl(out_size)], MODULE_COMPACT,
                     "compact_%d", (int)out_size);
    MR_TRY(mr_cuda_enqueue(command, stream, count, args->tiles, args));
    mr_cuda_device_of(command)->machine->submissions++;
    if (args->tiles > MR_CUDA_ADDED_UP) MR_TRY(scan(command, stream, args));
    return mr_cuda_enqueue(command, stream, write, args->tiles, args);
}

mr_status mr_cuda_launch_compact(const mr_command *command, CUstream stream) {
    mr_cuda_compact args = arguments(command);
    CUdeviceptr counts;
    MR_TRY(mr_cuda_borrow(command, stream, (args.tiles + 1) * sizeof(uint64_t), &counts));
    args.counts = (uint64_t *)counts;
    mr_status status = compact(command, stream, &args);
    mr_cuda_return(command, stream, counts);
    return status;
}
