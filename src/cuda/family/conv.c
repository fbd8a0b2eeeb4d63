/* Convolutions: the arguments of the kernels, made from the description of ops/network.h (32-bit numbers for 32-bit
 * kernels), and the choice of the kernel (choose, choose_weight). The choice changes no bit of a result, unless TF32 is
 * allowed. */
#include "cuda/family/family.h"
#include "ops/ids.h"
#include "ops/network.h"

#include <stdlib.h>

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

/* ------------------------------------------------------------------------- which kernel */

typedef struct {
    const char *name;
    int64_t rows, columns; /* of the tile that a block makes */
} tile_form;

static const tile_form forms[] = {
#define X(id, name, taps, type, how, rows, columns, ...) [CONV_##id] = {#name, rows, columns},
    MR_CUDA_CONV_LIST(X) MR_CUDA_CONV_WEIGHT_LIST(X)
#undef X
#define X(id, name, outputs) [CONV_##id] = {#name, outputs, MR_CUDA_CONV_THREADS},
        MR_CUDA_CONV_THIN_LIST(X)
#undef X
};

/* The farthest offset, in elements, that steps of these strides lead to. */
static int64_t reach(int64_t channels, int64_t channel, const int64_t taps[2],
                     const int64_t strides[2]) {
    return channels * llabs(channel) + taps[0] * llabs(strides[0]) + taps[1] * llabs(strides[1]);
}

/* Whether near_taps can be used: each coordinate, and each sum of two, fits into half a word, and offsets fit into 32
 * bits. */
static bool is_near(const mr_conv *c) {
    int64_t covered[2], offsets = reach(c->channels, c->weight_channel, c->taps, c->weight_tap);
    for (int d = 0; d < 2; d++) {
        covered[d] = llabs(c->tap_step[d]) * c->taps[d];
        if (c->source_size[d] > MR_CUDA_CONV_NEAR || covered[d] >= MR_CUDA_CONV_NEAR ||
            llabs(c->start[d]) + c->grid[d] * c->step[d] >= MR_CUDA_CONV_NEAR)
            return false;
    }
    int64_t seen = reach(c->channels, c->source_channel, covered, c->source_stride);
    return seen < INT32_MAX && offsets + c->outputs * llabs(c->weight_output) < INT32_MAX &&
           c->outputs * llabs(c->out_output) < INT32_MAX;
}

static int64_t tiles_of(conv_form form, int64_t rows, int64_t columns) {
    return (int64_t)(mr_cuda_blocks((uint64_t)rows, (uint64_t)forms[form].rows) *
                     mr_cuda_blocks((uint64_t)columns, (uint64_t)forms[form].columns));
}

static bool uses_tensor_cores(const mr_command *command) {
    return mr_params_of(command).conv.tf32 &&
           command->stream->device->properties.compute_major >= 8;
}

/* A large tile reads less for each product. A small one makes more blocks, where large ones would be too few for two a
 * multiprocessor. With one block, each scheduler of a multiprocessor has one warp, which waits for itself. */
static conv_form choose(const mr_command *command, const mr_conv *c, const mr_cuda_conv *p) {
    if (command->operands[0].tensor->dtype == MR_F64) return CONV_ANY_F64;
    if (!is_near(c)) return CONV_ANY_F32;
    if (p->outputs <= 1) return CONV_THIN_1;
    if (p->outputs <= 4) return CONV_THIN_4;
    bool tf32 = uses_tensor_cores(command);
    if (p->outputs <= 32 && !tf32) return CONV_LOW;
    conv_form large = tf32 ? CONV_TF32_LARGE : CONV_LARGE;
    int64_t blocks = tiles_of(large, p->outputs, p->positions) * c->groups;
    bool enough = 2 * blocks > 3 * (int64_t)command->stream->device->properties.sm_count;
    return enough ? large : tf32 ? CONV_TF32_SMALL : CONV_SMALL;
}

/* The tile that covers outputs and taps with the least left over. */
static conv_form choose_weight(const mr_command *command, const mr_conv *c, const mr_cuda_conv *p) {
    if (command->operands[0].tensor->dtype == MR_F64) return CONV_WEIGHT_ANY_F64;
    if (!is_near(c)) return CONV_WEIGHT_ANY_F32;
    bool tf32 = uses_tensor_cores(command);
    if (p->depth <= 32) return tf32 ? CONV_WEIGHT_TF32_NARROW : CONV_WEIGHT_NARROW;
    if (p->outputs <= 64) return tf32 ? CONV_WEIGHT_TF32_SMALL : CONV_WEIGHT_SMALL;
    return tf32 ? CONV_WEIGHT_TF32_LARGE : CONV_WEIGHT_LARGE;
}

/* `vectors`: vectors of 16 bytes, or of what a tile writes as one, begin and end with the lines of the result. */
static bool has_vectors(const mr_conv *c, const mr_cuda_conv *p, size_t size) {
    int64_t each = 16 / (int64_t)size;
    return c->out_stride[1] == 1 && c->grid[1] % each == 0 && c->out_stride[0] % each == 0 &&
           c->out_output % each == 0 && c->out_image % each == 0 && c->out_offset % each == 0 &&
           c->out_group % each == 0 && mr_cuda_aligned((CUdeviceptr)p->out);
}

static mr_status launch(const mr_command *command, CUstream stream, conv_form form, mr_cuda_conv *p,
                        int64_t columns, int64_t layers) {
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->conv[form];
    MR_CUDA_FIND(function, command, slot, MODULE_CONV, "conv_%s", forms[form].name);
    p->row_tiles = (uint32_t)tiles_of(form, p->outputs, 1);
    p->column_tiles = (uint32_t)tiles_of(form, 1, columns);
    uint64_t blocks = (uint64_t)p->row_tiles * p->column_tiles * (uint64_t)layers;
    if (blocks == 0) return MR_OK;
    return mr_cuda_enqueue_blocks(command, stream, function, blocks, MR_CUDA_CONV_THREADS, p);
}

/* ------------------------------------------------------------------------- the rows */

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
    return launch(command, stream, choose_weight(command, &c, &p), &p, p.depth, chunks * c.groups);
}

mr_status mr_cuda_launch_conv(const mr_command *command, CUstream stream) {
    if (command->u.op.row->id == MR_OP_conv2d_weight) return launch_weight(command, stream);
    const mr_tensor *out = command->operands[0].tensor,
                    *bias = command->operand_count > 3 ? command->operands[3].tensor : NULL;
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
        p.vectors = has_vectors(&c, &p, mr_dtype_size((mr_dtype)out->dtype));
        MR_TRY(launch(command, stream, choose(command, &c, &p), &p, p.positions, c.groups));
    }
    return MR_OK;
}
