/* cumsum and cumprod: whether a thread has a line, or a line is cut into tiles (kernels/scan.cu). */
#include "cuda/kernels.h"
#include "ops/line.h"

/* So many lines are enough for a thread each, if they are side by side or short. */
enum { COLUMN_LINES = 1 << 13, SHORT = 64 };

enum { FORM_TILE = FORM_DENSE, FORM_TOTALS = FORM_ROWS, FORM_COLUMNS = FORM_STRIDED };

static mr_status find(const mr_command *command, const mr_cuda_scan *args, int form,
                      CUfunction *out_function) {
    static const char *const names[] = {"tile", "totals", "columns"};
    const mr_op *row = command->u.op.row;
    bool is_float = mr_dtype_category((mr_dtype)args->in_dtype) == 2;
    mr_dtype computed = is_float ? MR_F64 : MR_I64;
    MR_CUDA_FIND(*out_function, command,
                 &mr_cuda_kernels_of(command)->rows[row->id][computed][form], MODULE_SCAN,
                 "%s_%s_%s", row->name, mr_cuda_tag(computed), names[form]);
    return MR_OK;
}

static mr_status scan_columns(const mr_command *command, CUstream stream, mr_cuda_scan *args) {
    CUfunction function;
    MR_TRY(find(command, args, FORM_COLUMNS, &function));
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args->lines, MR_CUDA_THREADS),
                           args);
}

static mr_status scan_tiles(const mr_command *command, CUstream stream, mr_cuda_scan *args) {
    CUfunction tile, totals;
    MR_TRY(find(command, args, FORM_TILE, &tile));
    uint64_t blocks = args->lines * args->tiles;
    if (args->tiles > 1) {
        MR_TRY(find(command, args, FORM_TOTALS, &totals));
        args->totals_only = true;
        MR_TRY(mr_cuda_enqueue(command, stream, tile, blocks, args));
        MR_TRY(mr_cuda_enqueue(command, stream, totals, args->lines, args));
        args->totals_only = false;
        mr_cuda_device_of(command)->machine->submissions += 2;
    }
    return mr_cuda_enqueue(command, stream, tile, blocks, args);
}

mr_status mr_cuda_launch_scan(const mr_command *command, CUstream stream) {
    int dim = (int)command->u.op.params.integer[0];
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
    bool side_by_side = from.step != 1 && args.stride[0].stride[0] == 1;
    if (args.lines >= COLUMN_LINES && (side_by_side || args.length <= SHORT))
        return scan_columns(command, stream, &args);
    CUdeviceptr cells = 0;
    if (args.tiles > 1)
        MR_TRY(mr_cuda_borrow(command, stream, args.lines * args.tiles * sizeof(double), &cells));
    args.cells = (void *)cells;
    mr_status status = scan_tiles(command, stream, &args);
    mr_cuda_return(stream, cells);
    return status;
}
