/* The door of the launcher, and the elementwise families. The others are in launch_<family>.c and blas.c.
 *
 * A launch costs the driver about two microseconds and must cost us next to nothing: no allocation, no
 * look-up by name after the first time, and for dense operands no arithmetic but the grid's. */
#include "cuda/kernels.h"
#include "ops/body.h"

#include <string.h>

/* The kernels name dtypes by these numbers (kernels/device.cuh). */
_Static_assert(MR_BOOL == 0 && MR_U8 == 1 && MR_I32 == 2 && MR_I64 == 3 && MR_F32 == 4 &&
                   MR_F64 == 5,
               "the order of MR_DTYPE_LIST");

static cuda_module module_of(const mr_op *row) {
    switch (row->family) {
    case MR_FAMILY_UNARY: return MODULE_UNARY;
    case MR_FAMILY_BINARY: return MODULE_BINARY;
    case MR_FAMILY_COMPARE: return MODULE_COMPARE;
    default: return MODULE_TERNARY;
    }
}

/* The types that kernels of a row take and give. */
typedef struct {
    mr_dtype first, computed, result;
} types;

static types types_of(const mr_action *action) {
    const mr_elementwise *loops = action->u.op.row->body;
    mr_dtype computed = (mr_dtype)action->u.op.params.integer[1];
    return (types){loops->first_is_bool ? MR_BOOL : computed, computed,
                   loops->bool_result ? MR_BOOL : computed};
}

/* Fills in where the inputs are, with their tensors in `in` (NULL: a number); true if the dense kernel can
 * take them all. */
static bool take_inputs(const mr_action *action, const types *ty, mr_cuda_dense *args,
                        const mr_tensor **in) {
    const mr_params *params = &action->u.op.params;
    const mr_tensor *out = action->operands[0].tensor;
    CUdeviceptr address = mr_cuda_data(out);
    bool dense = out->contiguous && out->dtype == ty->result && mr_cuda_aligned(address);
    args->out = (void *)address;
    args->count = (uint64_t)out->numel;
    args->out_dtype = out->dtype;
    uint32_t operand = 1;
    int number = 0, count = action->u.op.row->inputs;
    for (int k = 0; k < count; k++) {
        mr_dtype dtype = k == 0 ? ty->first : ty->computed;
        const mr_tensor *t = NULL;
        switch ((params->integer[0] >> (2 * k)) & 3) {
        case MR_INPUT_OPERAND: t = action->operands[operand++].tensor; break;
        case MR_INPUT_OUTPUT: t = out; break;
        default: break;
        }
        in[k] = t;
        if (!t) {
            args->kind[k] = MR_CUDA_NUMBER;
            args->number[k] = 0;
            mr_dtype_store(dtype, &args->number[k], params->scalar[number++]);
            continue;
        }
        address = mr_cuda_data(t);
        args->in[k] = (const void *)address;
        args->dtype[k] = t->dtype;
        bool single = t->numel == 1 && out->numel != 1;
        args->kind[k] = single ? MR_CUDA_ELEMENT : MR_CUDA_TENSOR;
        dense = dense && (single || (t->contiguous && t->dtype == dtype && t->numel == out->numel &&
                                     mr_cuda_aligned(address)));
    }
    return dense;
}

static mr_status launch_dense(const mr_action *action, CUstream stream, const types *ty,
                              mr_cuda_dense *args) {
    const mr_op *row = action->u.op.row;
    CUfunction function,
        *slot = &mr_cuda_kernels_of(action)->rows[row - mr_ops][ty->computed][FORM_DENSE];
    MR_CUDA_FIND(function, action, slot, module_of(row), "%s_%s", row->name,
                 mr_cuda_tag(ty->computed));
    uint64_t bytes = args->count * mr_dtype_size(ty->computed);
    return mr_cuda_enqueue(action, stream, function, mr_cuda_blocks(bytes, MR_CUDA_VECTORS), args);
}

static mr_status launch_strided(const mr_action *action, CUstream stream, const types *ty,
                                const mr_cuda_dense *dense, const mr_tensor *const *in) {
    const mr_op *row = action->u.op.row;
    const mr_tensor *out = action->operands[0].tensor;
    mr_cuda_strided args = {.d = *dense, .own = out->dtype == ty->result};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, out->ndim, out->shape);
    mr_cuda_layout_tensor(&layout, out);
    for (int k = 0; k < row->inputs; k++) {
        if (in[k]) {
            mr_cuda_layout_tensor(&layout, in[k]);
            args.d.kind[k] = MR_CUDA_TENSOR;
            args.own = args.own && in[k]->dtype == (k == 0 ? ty->first : ty->computed);
        } else {
            mr_cuda_layout_add(&layout, 0, NULL, NULL);
        }
    }
    mr_cuda_layout_end(&layout, true, &args.shape, args.stride);

    /* Transposed alike, they are dense after all. */
    bool same = args.own && mr_cuda_is_run(&args.shape, &args.stride[0]) &&
                mr_cuda_aligned((CUdeviceptr)args.d.out);
    for (int k = 0; k < row->inputs && same; k++)
        same = !in[k] || (mr_cuda_is_run(&args.shape, &args.stride[1 + k]) &&
                          mr_cuda_aligned((CUdeviceptr)args.d.in[k]));
    if (same) return launch_dense(action, stream, ty, &args.d);

    CUfunction function, *forms = mr_cuda_kernels_of(action)->rows[row - mr_ops][ty->computed];
    if (mr_cuda_in_vectors(&args, row->inputs, 16 / (int64_t)mr_dtype_size(ty->computed))) {
        MR_CUDA_FIND(function, action, &forms[FORM_ROWS], module_of(row), "%s_%s_rows", row->name,
                     mr_cuda_tag(ty->computed));
        return mr_cuda_enqueue(action, stream, function,
                               mr_cuda_blocks(args.d.count, MR_CUDA_THREADS), &args);
    }
    MR_CUDA_FIND(function, action, &forms[FORM_STRIDED], module_of(row), "%s_%s_strided", row->name,
                 mr_cuda_tag(ty->computed));
    return mr_cuda_enqueue(action, stream, function, mr_cuda_blocks(args.d.count, MR_CUDA_STRIDED),
                           &args);
}

static mr_status launch_elementwise(const mr_action *action, CUstream stream) {
    types ty = types_of(action);
    mr_cuda_dense args;
    const mr_tensor *in[MR_MAX_INPUTS];
    if (take_inputs(action, &ty, &args, in)) return launch_dense(action, stream, &ty, &args);
    return launch_strided(action, stream, &ty, &args, in);
}

static mr_status launch_memset(const mr_action *action, CUstream stream) {
    const mr_tensor *t = action->operands[0].tensor;
    MR_CUDA_TRY(mr_cuda_device_of(action),
                mr_cu.MemsetD8Async(mr_cuda_data(t), (unsigned char)action->u.op.params.integer[0],
                                    (size_t)t->numel * mr_dtype_size(t->dtype), stream),
                "%s", action->name);
    return MR_OK;
}

mr_status mr_cuda_launch(mr_action *action, CUstream stream) {
    const mr_op *row = action->u.op.row;
    switch (row->family) {
    case MR_FAMILY_UNARY:
    case MR_FAMILY_BINARY:
    case MR_FAMILY_COMPARE:
    case MR_FAMILY_TERNARY: return launch_elementwise(action, stream);
    case MR_FAMILY_FILL: return mr_cuda_launch_fill(action, stream);
    case MR_FAMILY_RANDOM:
        return row->run == mr_randperm_run ? mr_cuda_launch_randperm(action, stream)
                                           : mr_cuda_launch_generate(action, stream);
    case MR_FAMILY_REDUCE: return mr_cuda_launch_reduce(action, stream);
    case MR_FAMILY_SOFTMAX: return mr_cuda_launch_softmax(action, stream);
    case MR_FAMILY_MATMUL: return mr_cuda_launch_matmul(action, stream);
    case MR_FAMILY_COPY: return mr_cuda_launch_copy(action, stream);
    case MR_FAMILY_BYTES: return launch_memset(action, stream);
    case MR_FAMILY_ABSTRACT: return mr_cuda_launch_abstract(action, stream);
    }
    return mr_fail(MR_CODE_NOT_SUPPORTED, "%s: there is no kernel for it", action->name);
}
