/* Pools: their windows and strides for the kernels, which count the elements of the result in 32 bits. */
#include "cuda/family/family.h"
#include "ops/ids.h"
#include "ops/network.h"

static void set_strides(int64_t to[4], const mr_tensor *t) {
    for (int d = 0; d < 4; d++) to[d] = t->stride[d];
}

/* The kernels for windows of 2x2 side by side take f32 whose planes they halve, in lines of whole vectors. */
static bool halves_planes(const mr_tensor *big, const mr_tensor *small, const mr_tensor *positions,
                          const mr_pool_line lines[2]) {
    for (int d = 0; d < 2; d++) {
        const mr_pool_line *l = &lines[d];
        if (l->adaptive || l->size != 2 || l->stride != 2 || l->padding != 0 || l->dilation != 1 ||
            l->in != 2 * l->out)
            return false;
    }
    return big->dtype == MR_F32 && lines[1].in % 4 == 0 &&
           (int64_t)lines[0].in * lines[1].in < INT32_MAX && big->contiguous && small->contiguous &&
           mr_cuda_aligned(mr_cuda_data(big)) && mr_cuda_aligned(mr_cuda_data(small)) &&
           (!positions || (positions->contiguous && mr_cuda_aligned(mr_cuda_data(positions))));
}

static mr_status launch_halves(const mr_command *command, CUstream stream, bool backward,
                               const mr_tensor *small, mr_cuda_pool *args) {
    args->count = (uint32_t)(small->numel / 2);
    args->rows_made = mr_cuda_divide_by(small->shape[2]);
    args->columns_made = mr_cuda_divide_by(small->shape[3] / 2);
    CUfunction function,
        *slot = &mr_cuda_kernels_of(command)->rows[command->u.op.row->id][MR_F32][FORM_ROWS];
    MR_CUDA_FIND(function, command, slot, MODULE_POOL, "max_pool%s_halves_f32",
                 backward ? "_backward" : "");
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args->count, MR_CUDA_THREADS),
                           args);
}

mr_status mr_cuda_launch_pool(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    mr_pool_params params = mr_params_of(command).pool;
    const mr_tensor *out = command->operands[0].tensor, *other = command->operands[1].tensor,
                    *positions = command->operand_count > 2 ? command->operands[2].tensor : NULL;
    bool is_max = row->id == MR_OP_max_pool2d || row->id == MR_OP_max_pool2d_backward;
    bool backward = row->id != MR_OP_max_pool2d && row->id != MR_OP_avg_pool2d &&
                    row->id != MR_OP_adaptive_avg_pool2d;
    if (out->numel > INT32_MAX - MR_CUDA_THREADS)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too large for one kernel",
                       command->name);
    mr_cuda_pool args = {.out = (void *)mr_cuda_data(out),
                         .other = (const void *)mr_cuda_data(other),
                         .positions = positions ? (int64_t *)mr_cuda_data(positions) : NULL,
                         .count = (uint32_t)out->numel,
                         .channels = mr_cuda_divide_by(out->shape[1]),
                         .rows_made = mr_cuda_divide_by(out->shape[2]),
                         .columns_made = mr_cuda_divide_by(out->shape[3]),
                         .include_padding = params.include_padding,
                         .divisor = params.divisor};
    mr_pool_line lines[2];
    mr_pool_lines(command, lines);
    args.rows = lines[0];
    args.columns = lines[1];
    args.row_stride = mr_cuda_divide_by(lines[0].stride);
    args.column_stride = mr_cuda_divide_by(lines[1].stride);
    const mr_tensor *big = backward ? out : other, *small = backward ? other : out;
    if (is_max && halves_planes(big, small, positions, lines))
        return launch_halves(command, stream, backward, small, &args);
    set_strides(args.other_stride, other);
    if (positions) set_strides(args.positions_stride, positions);
    mr_dtype dtype = (mr_dtype)out->dtype;
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->rows[row->id][dtype][FORM_DENSE];
    MR_CUDA_FIND(function, command, slot, MODULE_POOL, "%s_pool%s_%s", is_max ? "max" : "avg",
                 backward ? "_backward" : "", mr_cuda_tag(dtype));
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args.count, MR_CUDA_THREADS),
                           &args);
}
