/* Reductions: the choice of the form, of the threads for each output, and of the number of parts into
 * which its elements are split. The choice depends only on the shapes and the device. The forms: see
 * kernels/args.h. */
#include "cuda/family/family.h"

/* The places and names of the kernels. */
enum { ROWS = FORM_DENSE, TILE = FORM_ROWS, COLUMNS = FORM_STRIDED };
static const char *const form_text[] = {[ROWS] = "rows", [TILE] = "tile", [COLUMNS] = "columns"};

/* Measured on an H200, but for the first. */
enum {
    VECTOR = 16,                  /* bytes that are loaded as one */
    UNITS_OF_A_LANE = 8,          /* before a row gets more lanes, or more parts */
    LEAST_OF_A_LANE = 4,          /* that a kernel loads at a time */
    LEAST_WIDTH = 16,             /* threads side by side along columns: whole lines of memory */
    UNALIGNED = 1 << 10,          /* bytes of a run that are worth vectors wherever it begins */
    TILE_BYTES = 36 << 10,        /* MR_CUDA_REDUCE_BLOCKS of them fit an SM */
    TILE_ROW = 512,               /* bytes from which a row of vectors needs no tile */
    TILE_ROW_UNALIGNED = 2 << 10, /* the same of single elements */
    TILE_LEAST_WIDTH = 16,        /* rows: whole vectors, whatever the length of one */
    TILE_MOST_WIDTH = 4096,
    MOST_WAVES = 16, /* of blocks, where one would leave much of the device idle */
};

static uint32_t power_below(int64_t n, uint32_t most) {
    uint32_t power = 1;
    while (power < most && 2 * (int64_t)power <= n) power *= 2;
    return power;
}

static int64_t at_most(int64_t n, int64_t most) {
    return n < most ? n : most;
}

static int64_t quotient_up(int64_t n, int64_t d) {
    return (n + d - 1) / d;
}

/* The output's strides over the input's dims that stay: it may have dims of size 1 where others were. */
static void strides_of_out(const mr_tensor *out, const mr_tensor *in, int kept, int64_t *stride) {
    int from = 0;
    for (int d = 0; d < kept; d++) {
        stride[d] = 0;
        if (in->shape[d] == 1) continue;
        while (out->shape[from] == 1) from++;
        stride[d] = out->stride[from++];
    }
}

/* The kept dims, in the order of the input's memory, and the reduced dims: in that order too, unless positions among
 * them have a meaning. The innermost of these is a run, the others count runs. */
static void take_shapes(mr_cuda_reduce *p, const mr_tensor *out, const mr_tensor *in, int kept,
                        bool positions) {
    cuda_layout layout;
    mr_cuda_strides strides[2];
    int64_t out_stride[MR_MAX_DIMS];
    strides_of_out(out, in, kept, out_stride);
    mr_cuda_layout_begin(&layout, kept, in->shape);
    mr_cuda_layout_add(&layout, kept, in->shape, in->stride);
    mr_cuda_layout_add(&layout, kept, in->shape, out_stride);
    mr_cuda_layout_end(&layout, true, &p->kept, strides);
    p->kept_stride = strides[0];
    p->out_stride = strides[1];

    mr_cuda_layout_begin(&layout, in->ndim - kept, in->shape + kept);
    mr_cuda_layout_add(&layout, in->ndim - kept, in->shape + kept, in->stride + kept);
    mr_cuda_layout_end(&layout, !positions, &p->outer, &p->outer_stride);
    p->inner = p->outer.size[0];
    p->inner_stride = p->inner == 1 ? 1 : p->outer_stride.stride[0];
    p->outers = 1;
    if (p->outer.ndim == 1) {
        p->row = p->outer;
        p->outer.size[0] = 1;
        p->outer_stride.stride[0] = 0;
        return;
    }
    p->outer.ndim--;
    for (uint32_t d = 0; d < p->outer.ndim; d++) {
        p->outers *= p->outer.size[d] = p->outer.size[d + 1];
        p->outer.multiplier[d] = p->outer.multiplier[d + 1];
        p->outer.shift[d] = p->outer.shift[d + 1];
        p->outer_stride.stride[d] = p->outer_stride.stride[d + 1];
    }
}

/* Whether all steps from dim `first` on are whole numbers of vectors of `unit` elements. */
static bool whole(const mr_cuda_shape *shape, const mr_cuda_strides *strides, uint32_t first,
                  int64_t unit) {
    for (uint32_t d = first; d < shape->ndim; d++)
        if (shape->size[d] > 1 && strides->stride[d] % unit != 0) return false;
    return true;
}

/* The form, and how many elements are loaded as one. */
static int choose_form(mr_cuda_reduce *p, int64_t size) {
    CUdeviceptr in = (CUdeviceptr)p->in;
    if (p->inner_stride != 1 && p->kept_stride.stride[0] == 1 && p->kept.size[0] > 1) {
        int64_t unit = size < 4 ? 4 : VECTOR / size;
        bool aligned = in % (CUdeviceptr)(unit * size) == 0 && p->kept.size[0] % unit == 0 &&
                       p->inner_stride % unit == 0 && whole(&p->kept, &p->kept_stride, 1, unit) &&
                       whole(&p->outer, &p->outer_stride, 0, unit);
        p->unit = aligned ? (uint32_t)unit : 1;
        return COLUMNS;
    }
    int64_t unit = VECTOR / size;
    p->unit = 1;
    if (p->inner_stride != 1) return ROWS;
    bool aligned = mr_cuda_aligned(in) && p->inner % unit == 0 &&
                   whole(&p->kept, &p->kept_stride, 0, unit) &&
                   whole(&p->outer, &p->outer_stride, 0, unit);
    if (mr_cuda_aligned(in) && p->outers == 1 && p->kept.ndim == 1 &&
        p->kept_stride.stride[0] == p->length && p->length > 0 && p->outputs > 1 &&
        p->length * size < (aligned ? TILE_ROW : TILE_ROW_UNALIGNED)) {
        p->unit = aligned ? (uint32_t)unit : 1;
        return TILE;
    }
    if (aligned || p->inner * size >= UNALIGNED) p->unit = (uint32_t)unit;
    return ROWS;
}

/* Whole rows, as many as fit; but not so many that blocks are few. Returns the bytes of shared memory. */
static unsigned choose_tile(mr_cuda_reduce *p, int64_t size, int64_t slots) {
    int64_t pitch = (p->unit > 1 ? p->length | p->unit : p->length) * size;
    p->width = power_below(TILE_BYTES / pitch, TILE_MOST_WIDTH);
    while (p->width > TILE_LEAST_WIDTH && quotient_up(p->outputs, p->width) < slots) p->width /= 2;
    p->lanes = power_below(p->length / p->unit / UNITS_OF_A_LANE, 32);
    if (p->width < MR_CUDA_THREADS && p->lanes > MR_CUDA_THREADS / p->width)
        p->lanes = MR_CUDA_THREADS / p->width;
    return (unsigned)quotient_up(p->width * pitch, VECTOR) * VECTOR;
}

/* A warp a row, or less, unless rows are few. */
static void choose_rows(mr_cuda_reduce *p, int64_t slots) {
    int64_t units = p->inner / p->unit;
    p->lanes = power_below(units / UNITS_OF_A_LANE, 32);
    while (p->lanes < MR_CUDA_THREADS && units >= 2 * LEAST_OF_A_LANE * (int64_t)p->lanes &&
           quotient_up(p->outputs, MR_CUDA_THREADS / p->lanes) < slots)
        p->lanes *= 2;
    p->width = MR_CUDA_THREADS / p->lanes;
}

/* As many threads along the columns as there are; fewer if that makes blocks for all of the device. */
static void choose_columns(mr_cuda_reduce *p, int64_t slots) {
    int64_t across = quotient_up(p->kept.size[0], p->unit);
    uint32_t most = power_below(p->inner / LEAST_OF_A_LANE, MR_CUDA_THREADS);
    p->width = power_below(2 * across - 1, MR_CUDA_THREADS);
    p->lanes = MR_CUDA_THREADS / p->width;
    if (p->lanes > most) p->lanes = most;
    while (p->lanes < most && MR_CUDA_THREADS / p->lanes > LEAST_WIDTH &&
           quotient_up(p->outputs, (int64_t)p->unit * MR_CUDA_THREADS / p->lanes) < slots)
        p->lanes *= 2;
    p->width = MR_CUDA_THREADS / p->lanes;
}

/* How many parts make `groups` blocks into enough. These are as many as the device takes at a time. If that leaves more
 * than a twentieth of it idle, they are so many that the last wave matters little. */
static int64_t wanted_parts(int64_t groups, int64_t slots) {
    int64_t best = slots / groups;
    double best_use = (double)(best * groups) / (double)slots;
    for (int64_t parts = best + 1; best_use < 0.95; parts++) {
        int64_t blocks = parts * groups;
        double use = (double)blocks / (double)(quotient_up(blocks, slots) * slots);
        if (use > best_use) best = parts, best_use = use;
        if (blocks >= MOST_WAVES * slots) break;
    }
    return best;
}

static void choose_parts(mr_cuda_reduce *p, int64_t units, int64_t cells, int64_t groups,
                         int64_t slots) {
    int64_t of_a_lane = quotient_up(units, p->lanes);
    int64_t parts = at_most(wanted_parts(groups, slots), of_a_lane * p->outers / UNITS_OF_A_LANE);
    parts = at_most(parts, LANE_CELLS / (int64_t)sizeof(mr_cuda_cell) / (cells * groups));
    if (groups * (int64_t)sizeof(uint32_t) > LANE_COUNTERS || parts < 1) parts = 1;
    bool runs = p->outers >= parts;
    p->outer_part = runs ? quotient_up(p->outers, parts) : p->outers;
    p->part = runs ? units : quotient_up(of_a_lane, parts) * p->lanes;
    if (p->length == 0 || units == 0) return; /* one part, in which there is less than a unit */
    p->inner_parts = (uint32_t)quotient_up(units, p->part);
    p->splits = p->inner_parts * (uint32_t)quotient_up(p->outers, p->outer_part);
}

mr_status mr_cuda_launch_reduce(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    const mr_tensor *out = command->operands[0].tensor, *in = command->operands[1].tensor;
    int kept = in->ndim - mr_params_of(command).reduce.dims;
    int64_t size = (int64_t)mr_dtype_size(in->dtype);
    int64_t slots = (int64_t)command->stream->device->properties.sm_count * MR_CUDA_REDUCE_BLOCKS;
    mr_cuda_reduce args = {.in = (const void *)mr_cuda_data(in),
                           .out = (void *)mr_cuda_data(out),
                           .outputs = out->numel,
                           .length = 1,
                           .inner_parts = 1,
                           .splits = 1,
                           .out_dtype = out->dtype,
                           .correction = mr_params_of(command).reduce.correction};
    for (int d = kept; d < in->ndim; d++) args.length *= in->shape[d];
    take_shapes(&args, out, in, kept, row->result == MR_RESULT_INDEX);
    int form = choose_form(&args, size);
    unsigned shared = 0;
    int64_t cells = 1; /* that a thread has */
    if (form == TILE) {
        shared = choose_tile(&args, size, slots);
    } else if (form == ROWS) {
        choose_rows(&args, slots);
    } else {
        choose_columns(&args, slots);
        cells = args.unit;
    }
    int64_t groups = quotient_up(args.outputs, args.width * cells);
    if (form != TILE)
        choose_parts(&args, form == ROWS ? args.inner / args.unit : args.inner, args.width * cells,
                     groups, slots);
    if (args.splits > 1) {
        cuda_lane *lane;
        MR_TRY(mr_cuda_lane(command, stream, &lane));
        MR_TRY(mr_cuda_lane_scratch(command, lane));
        args.partial = (mr_cuda_cell *)lane->scratch;
        args.arrived = (uint32_t *)(lane->scratch + LANE_CELLS);
    }
    CUfunction function, *slot = &mr_cuda_kernels_of(command)->rows[row->id][in->dtype][form];
    MR_CUDA_FIND(function, command, slot, MODULE_REDUCE, "%s_%s_%s", row->name,
                 mr_cuda_tag(in->dtype), form_text[form]);
    if (groups > INT32_MAX)
        return mr_fail(MR_CODE_INVALID_CONFIGURATION, "%s: too many outputs for one kernel",
                       command->name);
    void *list[] = {&args};
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.LaunchKernel(function, (unsigned)groups, args.splits, 1, MR_CUDA_THREADS, 1,
                                   1, shared, stream, list, NULL),
                "%s", command->name);
    return MR_OK;
}
