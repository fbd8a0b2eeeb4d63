/* The entry point of the launcher, and the elementwise families. The others are in files of their names; blas.c has
 * the matrix products.
 *
 * The driver needs about two microseconds for a launch, so this code must add almost nothing. There is no allocation,
 * no look-up by name after the first time, and for dense operands only the computation of the
 * grid. */
#include "cuda/family/family.h"
#include "ops/body.h"
#include "ops/ids.h"

#include <string.h>

/* The kernels name dtypes by these numbers (kernels/device.cuh). */
_Static_assert(MR_BOOL == 0 && MR_U8 == 1 && MR_I32 == 2 && MR_I64 == 3 && MR_F32 == 4 &&
                   MR_F64 == 5 && MR_F16 == 6 && MR_BF16 == 7,
               "the order of MR_DTYPE_LIST");

static cuda_module module_of(const mr_op *row) {
    static const cuda_module modules[] = {[MR_FAMILY_UNARY] = MODULE_UNARY,
                                          [MR_FAMILY_BINARY] = MODULE_BINARY,
                                          [MR_FAMILY_COMPARE] = MODULE_COMPARE,
                                          [MR_FAMILY_TERNARY] = MODULE_TERNARY};
    return modules[row->family->id];
}

/* The types that kernels of a row take and give. */
typedef struct {
    mr_dtype first, others, result;
} types;

static types types_of(const mr_elementwise *loops, mr_dtype dtype) {
    return (types){loops->first_is_bool ? MR_BOOL : dtype, dtype,
                   loops->bool_result ? MR_BOOL : dtype};
}

/* The dtype of kernels that read the operands directly: f16 or bf16, if the deciding operand has it, otherwise the
 * dtype of the computation. */
static mr_dtype dtype_in_memory(const mr_command *command) {
    const mr_elementwise *loops = command->u.op.row->body;
    mr_dtype computed = (mr_dtype)mr_params_of(command).elementwise.dtype;
    bool by_input = loops->bool_result && command->operand_count > 1;
    mr_dtype own = (mr_dtype)command->operands[by_input ? 1 : 0].tensor->dtype;
    return computed == MR_F32 && mr_dtype_is_half(own) ? own : computed;
}

/* Fills in where the inputs are, with their tensors in `in` (NULL: a number); true if the dense kernel can
 * take them all. */
static bool take_inputs(const mr_command *command, const types *ty, mr_cuda_dense *args,
                        const mr_tensor **in) {
    mr_elementwise_params params = mr_params_of(command).elementwise;
    const mr_tensor *out = command->operands[0].tensor;
    CUdeviceptr address = mr_cuda_data(out);
    bool dense = out->contiguous && out->dtype == ty->result && mr_cuda_aligned(address);
    args->out = (void *)address;
    args->count = (uint64_t)out->numel;
    args->out_dtype = out->dtype;
    uint32_t operand = 1;
    int number = 0, count = command->u.op.row->inputs;
    for (int k = 0; k < count; k++) {
        mr_dtype dtype = k == 0 ? ty->first : ty->others;
        const mr_tensor *t = NULL;
        switch (params.inputs >> (MR_INPUT_BITS * k) & MR_INPUT_MASK) {
        case MR_INPUT_OPERAND: t = command->operands[operand++].tensor; break;
        case MR_INPUT_OUTPUT: t = out; break;
        default: break;
        }
        in[k] = t;
        if (!t) {
            args->kind[k] = MR_CUDA_NUMBER;
            args->number[k] = 0;
            mr_dtype_store(mr_dtype_computed(dtype), &args->number[k], params.number[number++]);
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

static mr_status launch_dense(const mr_command *command, CUstream stream, const types *ty,
                              mr_cuda_dense *args) {
    const mr_op *row = command->u.op.row;
    CUfunction function,
        *slot = &mr_cuda_kernels_of(command)->rows[row->id][ty->others][FORM_DENSE];
    MR_CUDA_FIND(function, command, slot, module_of(row), "%s_%s", row->name,
                 mr_cuda_tag(ty->others));
    uint64_t bytes = args->count * mr_dtype_size(ty->others);
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(bytes, MR_CUDA_VECTORS), args);
}

static mr_status launch_strided(const mr_command *command, CUstream stream, const types *ty,
                                const mr_cuda_dense *dense, const mr_tensor *const *in) {
    const mr_op *row = command->u.op.row;
    const mr_tensor *out = command->operands[0].tensor;
    mr_cuda_strided args = {.d = *dense, .own = out->dtype == ty->result};
    cuda_layout layout;
    mr_cuda_layout_begin(&layout, out->ndim, out->shape);
    mr_cuda_layout_tensor(&layout, out);
    for (int k = 0; k < row->inputs; k++) {
        if (in[k]) {
            mr_cuda_layout_tensor(&layout, in[k]);
            args.d.kind[k] = MR_CUDA_TENSOR;
            args.own = args.own && in[k]->dtype == (k == 0 ? ty->first : ty->others);
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
    if (same) return launch_dense(command, stream, ty, &args.d);

    CUfunction function, *forms = mr_cuda_kernels_of(command)->rows[row->id][ty->others];
    if (mr_cuda_in_vectors(&args, row->inputs, 16 / (int64_t)mr_dtype_size(ty->others))) {
        MR_CUDA_FIND(function, command, &forms[FORM_ROWS], module_of(row), "%s_%s_rows", row->name,
                     mr_cuda_tag(ty->others));
        return mr_cuda_enqueue(command, stream, function,
                               mr_cuda_blocks(args.d.count, MR_CUDA_THREADS), &args);
    }
    /* Halves have no such kernel: that of f32 takes operands of any dtype. */
    mr_dtype computed = mr_dtype_computed(ty->others);
    args.own = args.own && computed == ty->others;
    forms = mr_cuda_kernels_of(command)->rows[row->id][computed];
    MR_CUDA_FIND(function, command, &forms[FORM_STRIDED], module_of(row), "%s_%s_strided",
                 row->name, mr_cuda_tag(computed));
    return mr_cuda_enqueue(command, stream, function, mr_cuda_blocks(args.d.count, MR_CUDA_STRIDED),
                           &args);
}

static mr_status launch_elementwise(const mr_command *command, CUstream stream) {
    types ty = types_of(command->u.op.row->body, dtype_in_memory(command));
    mr_cuda_dense args;
    const mr_tensor *in[MR_MAX_INPUTS];
    if (take_inputs(command, &ty, &args, in)) return launch_dense(command, stream, &ty, &args);
    return launch_strided(command, stream, &ty, &args, in);
}

static mr_status launch_memset(const mr_command *command, CUstream stream) {
    const mr_tensor *t = command->operands[0].tensor;
    MR_CUDA_TRY(mr_cuda_device_of(command),
                mr_cu.MemsetD8Async(mr_cuda_data(t), mr_params_of(command).memset.byte,
                                    (size_t)t->numel * mr_dtype_size(t->dtype), stream),
                "%s", command->name);
    return MR_OK;
}

/* By family. */
static mr_status (*const launchers[])(const mr_command *command, CUstream stream) = {
    [MR_FAMILY_UNARY] = launch_elementwise,
    [MR_FAMILY_BINARY] = launch_elementwise,
    [MR_FAMILY_COMPARE] = launch_elementwise,
    [MR_FAMILY_TERNARY] = launch_elementwise,
    [MR_FAMILY_FILL] = mr_cuda_launch_fill,
    [MR_FAMILY_RANDOM] = mr_cuda_launch_random,
    [MR_FAMILY_REDUCE] = mr_cuda_launch_reduce,
    [MR_FAMILY_SOFTMAX] = mr_cuda_launch_softmax,
    [MR_FAMILY_MATMUL] = mr_cuda_launch_matmul,
    [MR_FAMILY_COPY] = mr_cuda_launch_copy,
    [MR_FAMILY_BYTES] = launch_memset,
    [MR_FAMILY_ABSTRACT] = mr_cuda_launch_abstract,
    [MR_FAMILY_POOL] = mr_cuda_launch_pool,
    [MR_FAMILY_LOSS] = mr_cuda_launch_loss,
    [MR_FAMILY_OPTIMISE] = mr_cuda_launch_optimise,
    [MR_FAMILY_CONV] = mr_cuda_launch_conv,
    [MR_FAMILY_SCAN] = mr_cuda_launch_scan,
    [MR_FAMILY_SORT] = mr_cuda_launch_sort,
    [MR_FAMILY_MOVE] = mr_cuda_launch_move,
    [MR_FAMILY_COMPACT] = mr_cuda_launch_compact,
    [MR_FAMILY_INDEX] = mr_cuda_launch_index,
    [MR_FAMILY_KERNEL] = mr_cuda_launch_user,
    [MR_FAMILY_COLLECTIVE] = NULL, /* rows with MR_OP_NONE are refused before */
};
_Static_assert(sizeof launchers / sizeof *launchers == MR_FAMILY_COUNT, "a launcher a family");

mr_status mr_cuda_launch(const mr_command *command, CUstream stream) {
    const mr_op *row = command->u.op.row;
    if (__builtin_expect(row->id == MR_OP_NONE, 0)) /* it has a body for CPUs only */
        return mr_fail(MR_CODE_NOT_SUPPORTED,
                       "%s: there is no kernel for it, as it is not in the operation table",
                       command->name);
    return launchers[row->family->id](command, stream);
}
