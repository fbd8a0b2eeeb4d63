/* cumsum and cumprod: whether a thread has a line, or a warp, or a line is cut into tiles (kernels/scan.cu). */
#include "cuda/family/family.h"
#include "cuda/kernels/order_args.h"
#include "ops/ids.h"
#include "ops/line.h"

/* So many lines are enough for a thread each, if they are side by side or short. */
enum { COLUMN_LINES = 1 << 13, SHORT = 64 };

enum { FORM_TILE = FORM_DENSE, FORM_ANY = FORM_ROWS, FORM_COLUMNS = FORM_STRIDED };

static mr_dtype computed_type(const mr_cuda_scan *args) {
    return mr_dtype_category((mr_dtype)args->in_dtype) == 2 ? MR_F64 : MR_I64;
}

/* The kernel that makes the total of a tile, or the results. The pair of dtypes that scans have by themselves has one
 * of its own; of all others, the one for any. */
static mr_status find_tile(const mr_command *command, const mr_cuda_scan *args, bool total,
                           CUfunction *out_function) {
    cuda_kernels *kernels = mr_cuda_kernels_of(command);
    const mr_op *row = command->u.op.row;
    mr_dtype in = (mr_dtype)args->in_dtype, computed = computed_type(args);
    bool is_float = computed == MR_F64;
    bool own = args->out_dtype == (is_float ? in : MR_I64) && (is_float || in >= MR_I32);
    mr_dtype type = own ? in : computed;
    CUfunction *slot = total ? &kernels->scan_total[row->id == MR_OP_cumprod][type][own]
                             : &kernels->rows[row->id][type][own ? FORM_TILE : FORM_ANY];
    MR_CUDA_FIND(*out_function, command, slot, MODULE_SCAN, "%s_%s%s_%s", row->name,
                 own ? "" : "any_", mr_cuda_tag(type), total ? "total" : "tile");
    return MR_OK;
}

static mr_status scan_columns(const mr_command *command, CUstream stream, mr_cuda_scan *args) {
    const mr_op *row = command->u.op.row;
    mr_dtype computed = computed_type(args);
    CUfunction function,
        *slot = &mr_cuda_kernels_of(command)->rows[row->id][computed][FORM_COLUMNS];
    MR_CUDA_FIND(function, command, slot, MODULE_SCAN, "%s_%s_columns", row->name,
                 mr_cuda_tag(computed));
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args->lines, MR_CUDA_THREADS),
                           args);
}

/* Computes the total in front of each of many tiles. */
static mr_status scan_totals(const mr_command *command, CUstream stream, mr_cuda_scan *args) {
    const mr_op *row = command->u.op.row;
    mr_dtype computed = computed_type(args);
    bool product = row->id == MR_OP_cumprod;
    CUfunction totals,
        *slot = &mr_cuda_kernels_of(command)->scan_totals[product][computed == MR_F64];
    MR_CUDA_FIND(totals, command, slot, MODULE_SCAN, "%s_%s_totals", row->name,
                 mr_cuda_tag(computed));
    args->prefixes = true;
    mr_cuda_device_of(command)->machine->submissions++;
    return mr_cuda_enqueue(command, stream, totals, args->lines, args);
}

static mr_status scan_tiles(const mr_command *command, CUstream stream, mr_cuda_scan *args) {
    CUfunction total, tile;
    MR_TRY(find_tile(command, args, false, &tile));
    uint64_t blocks = args->warps
                          ? mr_cuda_blocks(args->lines, MR_CUDA_SCAN_TILE / MR_CUDA_SCAN_WARP)
                          : args->lines * args->tiles;
    if (args->tiles > 1) {
        MR_TRY(find_tile(command, args, true, &total));
        MR_TRY(mr_cuda_enqueue(command, stream, total, blocks, args));
        mr_cuda_device_of(command)->machine->submissions++;
        if (args->tiles > MR_CUDA_ADDED_UP) MR_TRY(scan_totals(command, stream, args));
    }
    return mr_cuda_enqueue(command, stream, tile, blocks, args);
}

/* Four neighbours of each line are a vector on both sides. */
static bool are_vectors(const mr_cuda_scan *args) {
    if (!mr_cuda_aligned((CUdeviceptr)args->in) || !mr_cuda_aligned((CUdeviceptr)args->out))
        return false;
    for (int side = 0; side < 2; side++) {
        if (args->step[side] != 1) return false;
        for (uint32_t d = 0; d < args->kept.ndim; d++)
            if (args->stride[side].stride[d] % 4 != 0) return false;
    }
    return true;
}

mr_status mr_cuda_launch_scan(const mr_command *command, CUstream stream) {
    int dim = mr_params_of(command).along.dim;
    const mr_tensor *out = command->operands[0].tensor,
                    *in = command->operands[command->operand_count - 1].tensor;
    mr_lines lines = mr_lines_of(out, dim);
    mr_line_strides from = mr_line_strides_of(in, dim), to = mr_line_strides_of(out, dim);
    mr_cuda_scan args = {.in = (const void *)mr_cuda_data(in),
                         .out = (void *)mr_cuda_data(out),
                         .in_dtype = in->dtype,
                         .out_dtype = out->dtype,
                         .lines = (uint64_t)lines.count,
                         .length = lines.length,
                         .tiles =
                             (uint32_t)mr_cuda_blocks((uint64_t)lines.length, MR_CUDA_SCAN_TILE),
                         .step = {from.step, to.step}};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, lines.ndim, lines.shape);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, from.stride);
    mr_cuda_layout_add(&layout, lines.ndim, lines.shape, to.stride);
    mr_cuda_layout_end(&layout, true, &args.kept, args.stride);
    args.vectors = are_vectors(&args);
    args.warps = args.length <= MR_CUDA_SCAN_WARP;
    bool side_by_side = from.step != 1 && args.stride[0].stride[0] == 1;
    bool short_lines = args.length <= SHORT && !args.vectors;
    if (args.lines >= COLUMN_LINES && (side_by_side || short_lines))
        return scan_columns(command, stream, &args);
    CUdeviceptr cells = 0;
    if (args.tiles > 1)
        MR_TRY(mr_cuda_borrow(command, stream, args.lines * args.tiles * sizeof(double), &cells));
    args.cells = (void *)cells;
    mr_status status = scan_tiles(command, stream, &args);
    mr_cuda_return(command, stream, cells);
    return status;
}
