/* mr.op and mr.spin. */
#include "cuda/family/family.h"
#include "ops/ids.h"

#include <stdlib.h>
#include <string.h>

static mr_cuda_operand operand_of(const mr_operand *operand) {
    const mr_tensor *t = operand->tensor;
    mr_cuda_operand to = {.data = (void *)mr_cuda_data(t),
                          .count = t->numel,
                          .dtype = t->dtype,
                          .reads = (operand->access & MR_READ) != 0,
                          .writes = (operand->access & MR_WRITE) != 0,
                          .ndim = t->ndim};
    memcpy(to.size, t->shape, t->ndim * sizeof *t->shape);
    memcpy(to.stride, t->stride, t->ndim * sizeof *t->stride);
    return to;
}

/* More operands than fit beside the other arguments go through device memory. The driver has taken a copy of
 * pageable memory this small when the call returns. */
static mr_status upload(const mr_command *command, CUstream stream, CUdeviceptr *out_address) {
    size_t bytes = command->operand_count * sizeof(mr_cuda_operand);
    mr_cuda_operand *list = malloc(bytes);
    *out_address = 0;
    if (!list) return mr_no_memory("for %s", command->name);
    for (uint32_t k = 0; k < command->operand_count; k++)
        list[k] = operand_of(&command->operands[k]);
    mr_status status = mr_cuda_upload(command, stream, list, bytes, out_address);
    free(list);
    return status;
}

/* The kernel gets as much shared memory as a block may have. Nothing else then fits on the SM: even a kernel that uses
 * no shared memory has some reserved. */
static mr_status find_op(const mr_command *command, CUfunction *out_function) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    cuda_device *device = mr_cuda_device_of(command);
    MR_CUDA_FIND(*out_function, command, &kernels->op, MODULE_ABSTRACT, "op");
    if (kernels->whole_sm) return MR_OK;
    int bytes = 0;
    MR_CUDA_TRY(device,
                mr_cu.DeviceGetAttribute(
                    &bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device->handle),
                "%s", command->name);
    MR_CUDA_TRY(
        device,
        mr_cu.FuncSetAttribute(kernels->op, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes),
        "%s", command->name);
    kernels->whole_sm = bytes;
    return MR_OK;
}

/* A block has an SM to itself, so more blocks than SMs follow each other in waves that share the duration. */
static uint64_t block_duration(const mr_command *command, unsigned blocks) {
    uint64_t sms = (uint64_t)command->stream->device->properties.sm_count;
    return mr_params_of(command).abstract.duration_ns / ((blocks + sms - 1) / sms);
}

mr_status mr_cuda_launch_abstract(const mr_command *command, CUstream stream) {
    mr_abstract_params params = mr_params_of(command).abstract;
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    cuda_device *device = mr_cuda_device_of(command);
    CUfunction function;
    if (command->u.op.row->id == MR_OP_spin) {
        uint64_t duration = params.duration_ns;
        void *list[] = {&duration};
        MR_CUDA_FIND(function, command, &kernels->spin, MODULE_ABSTRACT, "spin");
        MR_CUDA_TRY(device, mr_cu.LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, list, NULL),
                    "%s", command->name);
        return MR_OK;
    }
    MR_TRY(find_op(command, &function));
    unsigned blocks = params.blocks > 0 ? params.blocks : 1;
    mr_cuda_abstract args = {.mix = params.mix,
                             .duration_ns = block_duration(command, blocks),
                             .items = command->u.op.row->items(command),
                             .operand_count = command->operand_count};
    CUdeviceptr many = 0;
    if (command->operand_count > MR_CUDA_INLINE_OPERANDS) {
        mr_status status = upload(command, stream, &many);
        if (status) {
            mr_cuda_return(command, stream, many);
            return status;
        }
        args.many = (const mr_cuda_operand *)many;
    } else {
        for (uint32_t k = 0; k < command->operand_count; k++)
            args.few[k] = operand_of(&command->operands[k]);
    }
    void *list[] = {&args};
    CUresult result = mr_cu.LaunchKernel(function, blocks, 1, 1, MR_CUDA_THREADS, 1, 1,
                                         (unsigned)kernels->whole_sm, stream, list, NULL);
    mr_cuda_return(command, stream, many);
    MR_CUDA_TRY(device, result, "%s", command->name);
    return MR_OK;
}
