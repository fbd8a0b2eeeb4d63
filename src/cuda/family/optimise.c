/* Steps of optimisers: lists of tensors as a kernel's arguments, in as many launches as they need. */
#include "cuda/family/family.h"
#include "ops/optimise.h"

static void take_parameter(mr_cuda_step *args, const mr_operand *o, int states) {
    uint32_t i = args->count++;
    uint64_t numel = (uint64_t)o->tensor->numel;
    void *at[2 + MR_STEP_STATES] = {0};
    args->aligned |= 1ull << i;
    for (int k = 0; k < 2 + states; k++) {
        CUdeviceptr address = mr_cuda_data(o[k].tensor);
        at[k] = (void *)address;
        if (!mr_cuda_aligned(address)) args->aligned &= ~(1ull << i);
    }
    args->p[i] = at[0];
    args->g[i] = at[1];
    args->s0[i] = at[2];
    args->s1[i] = at[3];
    args->numel[i] = numel;
    args->end[i] = (i ? args->end[i - 1] : 0) + (uint32_t)mr_cuda_blocks(numel, MR_CUDA_STEP_BLOCK);
}

/* Whether the blocks of one more parameter fit into the numbers of a grid. */
static bool has_room(const mr_cuda_step *args, const mr_tensor *next) {
    uint64_t used = args->count ? args->end[args->count - 1] : 0;
    return args->count < MR_CUDA_STEP_TENSORS &&
           used + mr_cuda_blocks((uint64_t)next->numel, MR_CUDA_STEP_BLOCK) < INT32_MAX;
}

static mr_status flush(const mr_command *command, CUstream stream, CUfunction function,
                       mr_cuda_step *args) {
    uint32_t blocks = args->count ? args->end[args->count - 1] : 0;
    if (blocks) MR_TRY(mr_cuda_enqueue(command, stream, function, blocks, args));
    args->count = 0;
    args->aligned = 0;
    return MR_OK;
}

mr_status mr_cuda_launch_optimise(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    const mr_step *step = command->u.op.arguments;
    int states = mr_step_states(row);
    mr_dtype dtype = (mr_dtype)command->operands[0].tensor->dtype;
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->rows[row->id][dtype][FORM_DENSE];
    MR_CUDA_FIND(function, command, slot, MODULE_OPTIMISE, "%s_%s", row->name, mr_cuda_tag(dtype));
    mr_cuda_step args = {.flags = step->flags};
    for (int i = 0; i < MR_STEP_NUMBERS; i++) args.number[i] = step->number[i];
    bool another = false;
    for (uint32_t i = 0; i < command->operand_count; i += 2 + (uint32_t)states) {
        const mr_operand *o = &command->operands[i];
        if (!has_room(&args, o->tensor)) {
            MR_TRY(flush(command, stream, function, &args));
            if (another) mr_cuda_device_of(command)->machine->submissions++;
            another = true;
        }
        take_parameter(&args, o, states);
    }
    return flush(command, stream, function, &args);
}
