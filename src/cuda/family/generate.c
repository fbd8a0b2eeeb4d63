/* Values made of positions: the random rows and the sequences. */
#include "cuda/family/family.h"
#include "ops/body.h"
#include "ops/ids.h"

#include <string.h>

mr_cuda_philox mr_cuda_philox_of(uint64_t seed, uint64_t offset) {
    mr_cuda_philox philox = {.offset = {(uint32_t)offset, (uint32_t)(offset >> 32)}};
    uint32_t low = (uint32_t)seed, high = (uint32_t)(seed >> 32);
    for (int round = 0; round < MR_CUDA_ROUNDS; round++) {
        philox.key[round][0] = low;
        philox.key[round][1] = high;
        low += 0x9e3779b9u;
        high += 0xbb67ae85u;
    }
    return philox;
}

/* In a graph the offset is counted from the first draw of a launch, which writes the rest. */
static mr_cuda_philox drawn(const mr_command *command) {
    const cuda_graph_memory *captured = mr_cuda_kernels_of(command)->captured;
    if (!command->u.op.row->family->draws) return (mr_cuda_philox){0};
    mr_random_params random = mr_params_of(command).random;
    mr_cuda_philox philox = mr_cuda_philox_of(random.seed, random.offset);
    if (captured) philox.launch = (const mr_cuda_philox *)captured->draws;
    return philox;
}

static mr_cuda_generate arguments(const mr_command *command) {
    const mr_tensor *out = command->operands[0].tensor;
    mr_cuda_generate args = {
        .out = (void *)mr_cuda_data(out), .count = (uint64_t)out->numel, .philox = drawn(command)};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, out->ndim, out->shape);
    mr_cuda_layout_tensor(&layout, out);
    mr_cuda_layout_end(&layout, false, &args.shape, &args.stride);
    args.dense =
        mr_cuda_is_run(&args.shape, &args.stride) && mr_cuda_aligned((CUdeviceptr)args.out);
    return args;
}

mr_status mr_cuda_launch_generate(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    const mr_tensor *out = command->operands[0].tensor;
    mr_cuda_generate args = arguments(command);
    mr_constants constants;
    mr_generator_constants(command, &constants);
    _Static_assert(sizeof args.real == sizeof constants.real &&
                       sizeof args.integer == sizeof constants.integer,
                   "the kernels' copy of mr_constants");
    memcpy(args.real, constants.real, sizeof args.real);
    memcpy(args.integer, constants.integer, sizeof args.integer);
    for (int i = 0; i < 2; i++) args.single[i] = (float)args.real[i];
    CUfunction function,
        *slot = &mr_cuda_kernels_of(command)->rows[row->id][out->dtype][FORM_DENSE];
    MR_CUDA_FIND(function, command, slot, MODULE_RANDOM, "%s_%s", row->name,
                 mr_cuda_tag(out->dtype));
    return mr_cuda_enqueue_blocks(command, stream, function,
                                  mr_cuda_blocks(args.count, MR_CUDA_GENERATED), MR_CUDA_GENERATORS,
                                  &args);
}

/* ------------------------------------------------------------------------- randperm */

/* As in kernels/random.cu: the elements that a block sorts in shared memory. */
enum { PIECE = 2 * MR_CUDA_THREADS };

/* Blocks of a kernel whose blocks go on until all is done. */
static uint64_t at_most(const mr_command *command, uint64_t blocks) {
    enum { BLOCKS_A_SM = 16 };
    uint64_t most = (uint64_t)command->stream->device->properties.sm_count * BLOCKS_A_SM;
    return blocks < 1 ? 1 : blocks < most ? blocks : most;
}

static mr_status sort(const mr_command *command, CUstream stream, mr_cuda_sort *args) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    CUfunction begin, step, near, end;
    MR_CUDA_FIND(begin, command, &kernels->sort_begin, MODULE_RANDOM, "sort_begin");
    MR_CUDA_FIND(step, command, &kernels->sort_step, MODULE_RANDOM, "sort_step");
    MR_CUDA_FIND(near, command, &kernels->sort_near, MODULE_RANDOM, "sort_near");
    MR_CUDA_FIND(end, command, &kernels->sort_end, MODULE_RANDOM, "sort_end");
    uint64_t spread = at_most(command, args->padded / MR_CUDA_THREADS),
             pieces = args->padded > PIECE ? args->padded / PIECE : 1;
    MR_TRY(mr_cuda_enqueue(command, stream, begin, spread, args));
    MR_TRY(mr_cuda_enqueue(command, stream, near, pieces, args));
    for (uint64_t block = 2 * PIECE; block <= args->padded; block *= 2) {
        args->block = block;
        for (args->step = block / 2; args->step >= PIECE; args->step /= 2) {
            MR_TRY(mr_cuda_enqueue(command, stream, step, spread, args));
            mr_cuda_device_of(command)->machine->submissions++;
        }
        MR_TRY(mr_cuda_enqueue(command, stream, near, pieces, args));
        mr_cuda_device_of(command)->machine->submissions++;
    }
    return mr_cuda_enqueue(command, stream, end, spread, args);
}

static mr_status permute(const mr_command *command, CUstream stream) {
    const mr_tensor *out = command->operands[0].tensor;
    mr_cuda_generate shape = arguments(command);
    mr_cuda_sort args = {.count = shape.count,
                         .padded = 1,
                         .philox = shape.philox,
                         .out = shape.out,
                         .dtype = out->dtype,
                         .shape = shape.shape,
                         .stride = shape.stride};
    while (args.padded < args.count) args.padded *= 2;
    CUdeviceptr memory;
    MR_TRY(mr_cuda_borrow(command, stream, 2 * sizeof(uint64_t) * args.padded, &memory));
    args.keys = (uint64_t *)memory;
    args.positions = args.keys + args.padded;
    mr_status status = sort(command, stream, &args);
    mr_cuda_return(command, stream, memory);
    return status;
}

mr_status mr_cuda_launch_random(const mr_command *command, CUstream stream) {
    bool permutation = command->u.op.row->id == MR_OP_randperm;
    return (permutation ? permute : mr_cuda_launch_generate)(command, stream);
}
