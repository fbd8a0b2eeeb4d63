/* Reductions: which threads make which output, and into how many parts its elements are cut. */
#include "cuda/kernels.h"

#include <string.h>

enum {
    BLOCKS_A_SM = 16,    /* blocks worth launching */
    PART_OF_A_LANE = 64, /* elements that a lane should have before its output is cut into parts */
    FEW_OF_A_LANE = 8,   /* elements of one output that are worth a lane of their own */
    COLUMN_BYTES = 128,  /* that threads side by side read of neighbouring outputs */
    MIN_COLUMNS = 4,
};

/* A part of a tensor's dims as a layout of its own. */
static void part_of(const mr_tensor *t, int first, int ndim, mr_cuda_shape *shape,
                    mr_cuda_strides *strides) {
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, ndim, t->shape + first);
    mr_cuda_layout_add(&layout, ndim, t->shape + first, t->stride + first);
    mr_cuda_layout_end(&layout, false, shape, strides);
}

static uint32_t power_below(int64_t n, uint32_t most) {
    uint32_t power = 1;
    while (power < most && 2 * (int64_t)power <= n) power *= 2;
    return power;
}

/* Whether each output's elements begin at a multiple of 16 bytes. */
static bool rows_aligned(const mr_cuda_reduce *p, int64_t size) {
    if (!mr_cuda_aligned((CUdeviceptr)p->in)) return false;
    for (uint32_t d = 0; d < p->kept.ndim; d++)
        if (p->kept.size[d] > 1 && p->kept_stride.stride[d] * size % 16 != 0) return false;
    return true;
}

static void choose_threads(mr_cuda_reduce *p, int64_t size) {
    bool dense = mr_cuda_is_run(&p->reduced, &p->reduced_stride);
    p->columns = !dense && p->kept_stride.stride[0] == 1 && p->kept.size[0] >= MIN_COLUMNS;
    p->vectors = dense && rows_aligned(p, size);
    if (p->columns) {
        p->width = power_below(p->kept.size[0], (uint32_t)(COLUMN_BYTES / size));
        p->lanes = MR_CUDA_THREADS / p->width;
    } else {
        p->lanes = power_below(p->length / FEW_OF_A_LANE, MR_CUDA_THREADS);
        p->width = MR_CUDA_THREADS / p->lanes;
    }
}

/* Few outputs of many elements: so many parts that the device is full, of at least PART_OF_A_LANE a lane. The
 * number depends on the device, but not on the run. */
static void choose_parts(mr_cuda_reduce *p, int64_t groups, int sm_count) {
    int64_t unit = (int64_t)p->lanes * PART_OF_A_LANE, most = (p->length + unit - 1) / unit;
    int64_t wanted = (int64_t)sm_count * BLOCKS_A_SM / groups;
    int64_t fits = LANE_CELLS / (int64_t)sizeof(mr_cuda_cell) / ((int64_t)p->width * groups);
    int64_t parts = wanted < most ? wanted : most;
    if (parts > fits) parts = fits;
    if (groups * (int64_t)sizeof(uint32_t) > LANE_COUNTERS) parts = 1;
    if (parts < 1) parts = 1;
    /* A multiple of 16 elements a lane keeps vectors aligned and whole. */
    int64_t grain = (int64_t)p->lanes * 16;
    p->part = ((p->length + parts - 1) / parts + grain - 1) / grain * grain;
    if (p->part == 0) p->part = grain;
    p->splits = p->length > p->part ? (uint32_t)((p->length + p->part - 1) / p->part) : 1;
}

mr_status mr_cuda_launch_reduce(const mr_action *action, CUstream stream) {
    const mr_op *row = action->u.op.row;
    const mr_tensor *out = action->operands[0].tensor, *in = action->operands[1].tensor;
    int reduced = (int)action->u.op.params.integer[0], kept = in->ndim - reduced;
    mr_cuda_reduce args = {.in = (const void *)mr_cuda_data(in),
                           .out = (void *)mr_cuda_data(out),
                           .outputs = out->numel,
                           .length = 1,
                           .out_dtype = out->dtype,
                           .correction = action->u.op.params.scalar[0].f};
    for (int d = kept; d < in->ndim; d++) args.length *= in->shape[d];
    part_of(in, 0, kept, &args.kept, &args.kept_stride);
    part_of(in, kept, reduced, &args.reduced, &args.reduced_stride);
    part_of(out, 0, out->ndim, &args.out_shape, &args.out_stride);
    choose_threads(&args, (int64_t)mr_dtype_size(in->dtype));
    int64_t groups = (args.outputs + args.width - 1) / args.width;
    choose_parts(&args, groups, action->stream->device->properties.sm_count);
    if (args.splits > 1) {
        cuda_lane *lane;
        MR_TRY(mr_cuda_lane(action, stream, &lane));
        MR_TRY(mr_cuda_lane_scratch(action, lane));
        args.partial = (mr_cuda_cell *)lane->scratch;
        args.arrived = (uint32_t *)(lane->scratch + LANE_CELLS);
    }
    CUfunction function,
        *slot = &mr_cuda_kernels_of(action)->rows[row - mr_ops][in->dtype][FORM_DENSE];
    MR_CUDA_FIND(function, action, slot, MODULE_REDUCE, "%s_%s", row->name, mr_cuda_tag(in->dtype));
    if (groups > INT32_MAX)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too many outputs for one kernel",
                       action->name);
    void *list[] = {&args};
    MR_CUDA_TRY(mr_cuda_device_of(action),
                mr_cu.LaunchKernel(function, (unsigned)groups, args.splits, 1, MR_CUDA_THREADS, 1,
                                   1, 0, stream, list, NULL),
                "%s", action->name);
    return MR_OK;
}
