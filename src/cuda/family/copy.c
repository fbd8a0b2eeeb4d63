/* Copies on one device with other strides or another dtype, and fills. Dense copies of one dtype are COPY
 * commands and rarely come here. */
#include "cuda/family/family.h"
#include "ops/body.h"

#include <string.h>

/* As in kernels/copy.cu. */
static const struct { int64_t size, tile; } tiles[] = {{1, 128}, {2, 64}, {4, 64}, {8, 32}};
enum { NARROW = 16 }; /* rows or columns below which a tile is mostly empty */

static mr_status copy_bytes(const mr_command *command, CUstream stream, const mr_tensor *to,
                            const mr_tensor *from) {
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemcpyDtoDAsync(mr_cuda_data(to), mr_cuda_data(from),
                                      (size_t)to->numel * mr_dtype_size(to->dtype), stream),
                "%s", command->name);
    return MR_OK;
}

/* Elements that are neighbours on both sides. */
static mr_status cast_run(const mr_command *command, CUstream stream, const mr_tensor *to,
                          const mr_tensor *from) {
    if (to->dtype == from->dtype) return copy_bytes(command, stream, to, from);
    mr_cuda_dense args = {.out = (void *)mr_cuda_data(to),
                          .in = {(const void *)mr_cuda_data(from)},
                          .count = (uint64_t)to->numel,
                          .kind = {MR_CUDA_TENSOR}};
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->cast[from->dtype][to->dtype];
    MR_CUDA_FIND(function, command, slot, MODULE_COPY, "cast_%s_%s", mr_cuda_tag(from->dtype),
                 mr_cuda_tag(to->dtype));
    uint64_t bytes = args.count * mr_dtype_size(from->dtype);
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(bytes, MR_CUDA_VECTORS),
                           &args);
}

/* Whether the input's rows are the output's columns; strides[0] is the output's, dims are the innermost first. */
static bool is_transposed(const mr_cuda_shape *shape, const mr_cuda_strides *strides,
                          mr_cuda_transpose *args) {
    if (shape->ndim < 2 || shape->ndim > 3 || strides[0].stride[0] != 1 ||
        strides[1].stride[0] <= 0)
        return false;
    uint32_t d = strides[1].stride[1] == 1 ? 1 : 2;
    if (d >= shape->ndim || strides[1].stride[d] != 1 || strides[1].stride[0] == 1) return false;
    uint32_t other = 3 - d;
    args->columns = shape->size[0];
    args->rows = shape->size[d];
    args->out_row = strides[0].stride[d];
    args->in_row = strides[1].stride[0];
    args->batch_out = shape->ndim == 3 ? strides[0].stride[other] : 0;
    args->batch_in = shape->ndim == 3 ? strides[1].stride[other] : 0;
    return args->rows >= NARROW && args->columns >= NARROW;
}

static mr_status transpose(const mr_command *command, CUstream stream, int64_t size, int64_t batch,
                           mr_cuda_transpose *args) {
    int form = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    int64_t tile = tiles[form].tile;
    CUfunction function;
    MR_CUDA_FIND(function, command, &mr_cuda_kernels_of(command)->transpose[form], MODULE_COPY,
                 "transpose_%d", (int)size);
    args->row_tiles = (uint32_t)((args->rows + tile - 1) / tile);
    args->column_tiles = (uint32_t)((args->columns + tile - 1) / tile);
    int64_t unit = 16 / size;
    args->aligned = mr_cuda_aligned((CUdeviceptr)args->out) &&
                    mr_cuda_aligned((CUdeviceptr)args->in) && args->out_row % unit == 0 &&
                    args->in_row % unit == 0 && args->batch_out % unit == 0 &&
                    args->batch_in % unit == 0;
    return mr_cuda_enqueue(command, stream, function,
                           (uint64_t)args->row_tiles * args->column_tiles * (uint64_t)batch, args);
}

/* The kernel of a copy: it moves bits if both sides have one dtype, and otherwise converts to the output's dtype. That
 * of halves does not convert: through f64, or i64 of integers, they are rounded once all the same. */
static int kernel_dtype(const mr_cuda_strided *args) {
    int to = args->d.out_dtype, from = args->d.dtype[0];
    if (args->own) return to == MR_BOOL ? MR_U8 : to == MR_BF16 ? MR_F16 : to;
    if (!mr_dtype_is_half((mr_dtype)to)) return to;
    return mr_dtype_category((mr_dtype)from) == 2 ? MR_F64 : MR_I64;
}

/* Any strides. */
static mr_status copy_strided(const mr_command *command, CUstream stream, mr_cuda_strided *args) {
    int dtype = kernel_dtype(args);
    CUfunction function, *forms = mr_cuda_kernels_of(command)->copy[dtype];
    if (mr_cuda_in_vectors(args, 1, 16 / (int64_t)mr_dtype_size((mr_dtype)dtype))) {
        MR_CUDA_FIND(function, command, &forms[FORM_ROWS], MODULE_COPY, "copy_%s_rows",
                     mr_cuda_tag(dtype));
        return mr_cuda_enqueue(command, stream, function,
                               mr_cuda_blocks(args->d.count, MR_CUDA_THREADS), args);
    }
    MR_CUDA_FIND(function, command, &forms[FORM_STRIDED], MODULE_COPY, "copy_%s_strided",
                 mr_cuda_tag(dtype));
    return mr_cuda_enqueue(command, stream, function,
                           mr_cuda_blocks(args->d.count, MR_CUDA_STRIDED), args);
}

mr_status mr_cuda_launch_copy(const mr_command *command, CUstream stream) {
    const mr_tensor *to = command->operands[0].tensor;
    const mr_tensor *from = command->operand_count > 1 ? command->operands[1].tensor : to;
    if (to->contiguous && from->contiguous && to->numel == from->numel && to->dtype == from->dtype)
        return copy_bytes(command, stream, to, from);

    bool same = to->dtype == from->dtype;
    mr_cuda_strided args = {.d = {.out = (void *)mr_cuda_data(to),
                                  .in = {(const void *)mr_cuda_data(from)},
                                  .count = (uint64_t)to->numel,
                                  .kind = {MR_CUDA_TENSOR},
                                  .dtype = {from->dtype},
                                  .out_dtype = to->dtype},
                            .own = same};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, to->ndim, to->shape);
    mr_cuda_layout_tensor(&layout, to);
    mr_cuda_layout_tensor(&layout, from);
    mr_cuda_layout_end(&layout, true, &args.shape, args.stride);
    if (mr_cuda_is_run(&args.shape, &args.stride[0]) &&
        mr_cuda_is_run(&args.shape, &args.stride[1]) &&
        (same ||
         (mr_cuda_aligned((CUdeviceptr)args.d.out) && mr_cuda_aligned((CUdeviceptr)args.d.in[0]))))
        return cast_run(command, stream, to, from);
    mr_cuda_transpose exchanged = {.out = args.d.out, .in = args.d.in[0]};
    if (same && is_transposed(&args.shape, args.stride, &exchanged))
        return transpose(command, stream, (int64_t)mr_dtype_size(to->dtype),
                         to->numel / (exchanged.rows * exchanged.columns), &exchanged);
    return copy_strided(command, stream, &args);
}

/* ------------------------------------------------------------------------- one value */

static mr_status fill(const mr_command *command, CUstream stream, mr_scalar value) {
    const mr_tensor *to = command->operands[0].tensor;
    mr_cuda_strided args = {.d = {.out = (void *)mr_cuda_data(to),
                                  .count = (uint64_t)to->numel,
                                  .kind = {MR_CUDA_NUMBER},
                                  .out_dtype = to->dtype},
                            .own = 1};
    mr_dtype_store((mr_dtype)to->dtype, &args.d.number[0], value);
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, to->ndim, to->shape);
    mr_cuda_layout_tensor(&layout, to);
    mr_cuda_layout_add(&layout, 0, NULL, NULL);
    mr_cuda_layout_end(&layout, true, &args.shape, args.stride);
    if (mr_cuda_is_run(&args.shape, &args.stride[0])) {
        size_t size = mr_dtype_size(to->dtype);
        mr_cuda_fill run = {.out = args.d.out, .bytes = args.d.count * size};
        for (size_t i = 0; i < 16; i += size)
            memcpy((char *)run.pattern + i, &args.d.number[0], size);
        CUfunction function;
        MR_CUDA_FIND(function, command, &mr_cuda_kernels_of(command)->fill, MODULE_COPY, "fill");
        return mr_cuda_enqueue(command, stream, function,
                               mr_cuda_blocks(run.bytes, MR_CUDA_VECTORS), &run);
    }
    return copy_strided(command, stream, &args);
}

mr_status mr_cuda_launch_fill(const mr_command *command, CUstream stream) {
    const mr_generator *generator = command->u.op.row->body;
    if (generator->is_uniform) return fill(command, stream, mr_params_of(command).fill.value);
    return mr_cuda_launch_generate(command, stream);
}
