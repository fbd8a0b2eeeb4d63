/* softmax and log_softmax: the choice of the threads for each row, and of the number of parts into which
 * long rows are split. */
#include "cuda/family/family.h"

enum {
    BLOCKS_A_SM = 8,     /* blocks worth launching */
    PART_OF_A_LANE = 64, /* elements that a lane should have before its row is cut into parts */
    COLUMN_BYTES = 128,  /* that threads side by side read of neighbouring rows: at most, */
    SECTOR_BYTES = 32,   /* and at least */
    MIN_COLUMNS = 4,
};

/* Fills in the rows' shape, and the strides of their elements. */
static void lay_out(const mr_tensor *out, const mr_tensor *in, int dim, mr_cuda_softmax *p) {
    int64_t size[MR_MAX_DIMS], in_stride[MR_MAX_DIMS], out_stride[MR_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < in->ndim; d++) {
        if (d == dim) continue;
        size[n] = in->shape[d];
        in_stride[n] = in->stride[d];
        out_stride[n++] = out->stride[d];
    }
    p->length = in->ndim > 0 ? in->shape[dim] : 1;
    p->rows = in->numel / p->length;
    p->out_step = p->length > 1 ? out->stride[dim] : 1;
    p->in_step = p->length > 1 ? in->stride[dim] : 1;
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, n, size);
    mr_cuda_layout_add(&layout, n, size, in_stride); /* rows come in the order in which it lies */
    mr_cuda_layout_add(&layout, n, size, out_stride);
    mr_cuda_strides strides[2];
    mr_cuda_layout_end(&layout, true, &p->kept, strides);
    p->in_kept = strides[0];
    p->out_kept = strides[1];
}

/* Whether rows of both sides are vectors of 16 bytes, from their beginning to their end. */
static bool has_vectors(const mr_cuda_softmax *p, int64_t size) {
    if (!p->own || p->in_step != 1 || p->out_step != 1 || p->length * size % 16 != 0 ||
        !mr_cuda_aligned((CUdeviceptr)p->in) || !mr_cuda_aligned((CUdeviceptr)p->out))
        return false;
    for (uint32_t d = 0; d < p->kept.ndim; d++)
        if (p->kept.size[d] > 1 &&
            (p->out_kept.stride[d] * size % 16 != 0 || p->in_kept.stride[d] * size % 16 != 0))
            return false;
    return true;
}

/* As few lanes as can hold a row, but so many that they read whole sectors. `size` is that of an element in memory. */
static void choose_threads(mr_cuda_softmax *p, int64_t size, int64_t computed_size, bool vectors) {
    int64_t most = MR_CUDA_HELD / computed_size, step = vectors ? 16 / size : 1;
    p->columns = p->in_step != 1 && p->in_kept.stride[0] == 1 && p->kept.size[0] >= MIN_COLUMNS;
    if (p->columns) {
        p->width = (uint32_t)(COLUMN_BYTES / size);
        while (p->width > SECTOR_BYTES / size &&
               (p->width > p->kept.size[0] || MR_CUDA_THREADS / p->width * most < p->length))
            p->width /= 2;
        p->lanes = MR_CUDA_THREADS / p->width;
    } else {
        p->lanes = 1;
        while (p->lanes < MR_CUDA_THREADS &&
               (p->lanes * most < p->length ||
                (p->lanes * step < p->length && p->lanes * step * size < COLUMN_BYTES)))
            p->lanes *= 2;
        p->width = MR_CUDA_THREADS / p->lanes;
    }
    p->held = p->own && p->lanes * most >= p->length;
}

/* Few rows that are not held: so many parts that the device is full, of at least PART_OF_A_LANE a lane. */
static void choose_parts(mr_cuda_softmax *p, int64_t groups, int sm_count) {
    int64_t unit = (int64_t)p->lanes * PART_OF_A_LANE, most = (p->length + unit - 1) / unit;
    int64_t parts = (int64_t)sm_count * BLOCKS_A_SM / groups;
    int64_t fits = LANE_CELLS / (int64_t)sizeof(mr_cuda_cell) / p->rows;
    if (parts > most) parts = most;
    if (parts > fits) parts = fits;
    if (parts < 1 || p->held) parts = 1;
    /* A multiple of 16 elements a lane keeps vectors aligned and whole. */
    int64_t grain = (int64_t)p->lanes * 16;
    p->part = ((p->length + parts - 1) / parts + grain - 1) / grain * grain;
    p->splits = (uint32_t)((p->length + p->part - 1) / p->part);
}

static mr_status launch(const mr_command *command, CUstream stream, CUfunction function,
                        mr_cuda_softmax *args, int64_t groups) {
    void *list[] = {args};
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.LaunchKernel(function, (unsigned)groups, args->splits, 1, MR_CUDA_THREADS, 1,
                                   1, 0, stream, list, NULL),
                "%s", command->name);
    return MR_OK;
}

mr_status mr_cuda_launch_softmax(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    const mr_tensor *out = command->operands[0].tensor,
                    *in = command->operands[command->operand_count - 1].tensor;
    bool is_half = mr_dtype_is_half((mr_dtype)in->dtype) && out->dtype == in->dtype;
    mr_dtype dtype = in->dtype == MR_F64 ? MR_F64 : is_half ? (mr_dtype)in->dtype : MR_F32;
    int64_t size = (int64_t)mr_dtype_size(dtype);
    mr_cuda_softmax args = {.in = (const void *)mr_cuda_data(in),
                            .out = (void *)mr_cuda_data(out),
                            .in_dtype = in->dtype,
                            .out_dtype = out->dtype,
                            .own = in->dtype == dtype && out->dtype == dtype};
    lay_out(out, in, mr_params_of(command).along.dim, &args);
    bool vectors = has_vectors(&args, size);
    choose_threads(&args, size, (int64_t)mr_dtype_size(mr_dtype_computed(dtype)), vectors);
    int64_t groups = (args.rows + args.width - 1) / args.width;
    choose_parts(&args, groups, command->stream->device->properties.sm_count);
    if (groups > INT32_MAX)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too many rows for one kernel",
                       command->name);
    CUfunction function,
        *slot =
            &mr_cuda_kernels_of(command)->rows[row->id][dtype][vectors ? FORM_DENSE : FORM_STRIDED];
    MR_CUDA_FIND(function, command, slot, MODULE_SOFTMAX, vectors ? "%s_%s" : "%s_%s_strided",
                 row->name, mr_cuda_tag(dtype));
    if (args.splits > 1) {
        cuda_lane *lane;
        MR_TRY(mr_cuda_lane(command, stream, &lane));
        MR_TRY(mr_cuda_lane_scratch(command, lane));
        args.cells = (mr_cuda_cell *)lane->scratch;
        MR_TRY(launch(command, stream, function, &args, groups));
        args.writes = true;
    }
    return launch(command, stream, function, &args, groups);
}
