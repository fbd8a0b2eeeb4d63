/* Convolutions: the description of ops/network.h as the kernels take it, in 32 bits where they reckon in 32 bits. */
#include "cuda/kernels.h"
#include "ops/network.h"

/* Sizes beyond this are refused: the kernels' positions and coordinates stay below 2^31. */
static const int64_t LARGEST = 1 << 30;

static bool is_small_enough(const mr_conv *c) {
    bool fits = c->images * c->grid[0] * c->grid[1] < LARGEST &&
                c->channels * c->taps[0] * c->taps[1] < LARGEST && c->outputs < LARGEST;
    for (int d = 0; d < 2; d++) {
        int64_t farthest = c->tap_step[d] * c->taps[d];
        fits = fits && c->source_size[d] < LARGEST && c->grid[d] * c->step[d] < LARGEST &&
               c->start[d] < LARGEST && -c->start[d] < LARGEST && farthest < LARGEST &&
               -farthest < LARGEST;
    }
    return fits;
}

static void describe(const mr_conv *c, mr_cuda_conv *p) {
    p->positions = (uint32_t)(c->images * c->grid[0] * c->grid[1]);
    p->depth = (uint32_t)(c->channels * c->taps[0] * c->taps[1]);
    p->outputs = (uint32_t)c->outputs;
    p->groups = (uint32_t)c->groups;
    p->rows = mr_cuda_divide_by(c->grid[0]);
    p->columns = mr_cuda_divide_by(c->grid[1]);
    p->taps = mr_cuda_divide_by(c->taps[0] * c->taps[1]);
    p->tap_columns = mr_cuda_divide_by(c->taps[1]);
    p->source_image = c->source_image;
    p->source_group = c->source_group;
    p->source_channel = c->source_channel;
    p->weight_offset = c->weight_offset;
    p->weight_group = c->weight_group;
    p->weight_output = c->weight_output;
    p->weight_channel = c->weight_channel;
    p->out_offset = c->out_offset;
    p->out_image = c->out_image;
    p->out_group = c->out_group;
    p->out_output = c->out_output;
    for (int d = 0; d < 2; d++) {
        p->source_size[d] = (uint32_t)c->source_size[d];
        p->step[d] = (int32_t)c->step[d];
        p->tap_step[d] = (int32_t)c->tap_step[d];
        p->start[d] = (int32_t)c->start[d];
        p->source_stride[d] = c->source_stride[d];
        p->weight_tap[d] = c->weight_tap[d];
        p->out_stride[d] = c->out_stride[d];
    }
}

static mr_status launch(const mr_command *command, CUstream stream, CUfunction function,
                        mr_cuda_conv *p, int64_t columns, int64_t layers) {
    int64_t scale = command->operands[0].tensor->dtype == MR_F64 ? 2 : 1;
    int64_t tile_rows = MR_CUDA_CONV_ROWS / scale, tile_columns = MR_CUDA_CONV_COLUMNS / scale;
    p->row_tiles = (uint32_t)((p->outputs + tile_rows - 1) / tile_rows);
    p->column_tiles = (uint32_t)((columns + tile_columns - 1) / tile_columns);
    uint64_t blocks = (uint64_t)p->row_tiles * p->column_tiles * (uint64_t)layers;
    if (blocks == 0) return MR_OK;
    return mr_cuda_enqueue_blocks(command, stream, function, blocks, MR_CUDA_CONV_THREADS, p);
}

static mr_status too_large(const mr_command *command) {
    return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too large for one kernel", command->name);
}

static mr_status launch_weight(const mr_command *command, CUstream stream) {
    const mr_tensor *sums = command->operands[0].tensor;
    mr_conv c;
    mr_conv_weight(command, &c);
    if (!is_small_enough(&c)) return too_large(command);
    mr_cuda_conv p = {.source = (const void *)mr_cuda_data(command->operands[2].tensor),
                      .weights = (const void *)mr_cuda_data(command->operands[1].tensor),
                      .out = (void *)mr_cuda_data(sums)};
    describe(&c, &p);
    int64_t chunks = sums->shape[0];
    p.chunk = (uint32_t)((p.positions + chunks - 1) / chunks);
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->conv_weight[sums->dtype];
    MR_CUDA_FIND(function, command, slot, MODULE_CONV, "conv_weight_%s", mr_cuda_tag(sums->dtype));
    return launch(command, stream, function, &p, p.depth, chunks * c.groups);
}

mr_status mr_cuda_launch_conv(const mr_command *command, CUstream stream) {
    if (command->u.op.row->id == MR_OP_conv2d_weight) return launch_weight(command, stream);
    const mr_tensor *out = command->operands[0].tensor,
                    *bias = command->operand_count > 3 ? command->operands[3].tensor : NULL;
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->conv[out->dtype];
    MR_CUDA_FIND(function, command, slot, MODULE_CONV, "conv_%s", mr_cuda_tag(out->dtype));
    int64_t parts = mr_conv_parts(command);
    for (int64_t part = 0; part < parts; part++) {
        mr_conv c;
        mr_conv_part(command, part, &c);
        if (!is_small_enough(&c)) return too_large(command);
        mr_cuda_conv p = {.source = (const void *)mr_cuda_data(command->operands[1].tensor),
                          .weights = (const void *)mr_cuda_data(command->operands[2].tensor),
                          .out = (void *)mr_cuda_data(out)};
        if (bias) {
            p.bias = (const void *)mr_cuda_data(bias);
            p.bias_stride = bias->stride[0];
        }
        describe(&c, &p);
        MR_TRY(launch(command, stream, function, &p, p.positions, c.groups));
    }
    return MR_OK;
}
