/* flip, roll, tril, triu. */
#include "cuda/family/family.h"
#include "ops/move.h"

mr_status mr_cuda_launch_move(const mr_command *command, CUstream stream) {
    mr_moving m;
    mr_moving_of(command, &m);
    int64_t size = (int64_t)mr_dtype_size((mr_dtype)m.in->dtype);
    mr_cuda_move args = {.in = (const void *)mr_cuda_data(m.in),
                         .out = (void *)mr_cuda_data(m.out),
                         .count = (uint64_t)m.out->numel,
                         .ndim = (uint32_t)m.in->ndim,
                         .offset = m.offset,
                         .rolled = m.rolled < 0 ? -1 : m.in->ndim - 1 - m.rolled,
                         .shift = m.shift,
                         .band = m.band,
                         .diagonal = m.diagonal};
    for (int d = 0; d < m.in->ndim; d++) {
        args.size[d] = m.in->shape[m.in->ndim - 1 - d];
        args.stride[d] = m.stride[m.in->ndim - 1 - d];
    }
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, m.out->ndim, m.out->shape);
    mr_cuda_layout_tensor(&layout, m.out);
    mr_cuda_layout_end(&layout, false, &args.out_shape, &args.out_stride);
    CUfunction function;
    MR_CUDA_FIND(function, command,
                 &mr_cuda_kernels_of(command)->move[__builtin_ctzl((unsigned long)size)],
                 MODULE_MOVE, "move_%d", (int)size);
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args.count, MR_CUDA_STRIDED),
                           &args);
}
