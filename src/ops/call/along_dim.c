/* The entry point of the rows that work along one dim and keep the shape: softmax, log_softmax, cumsum, cumprod. It
 * checks the dim and the output. */
#include "ops/table/launch.h"

/* Floats keep their dtype. */
static mr_dtype result_of(const mr_op *op, mr_dtype in) {
    if (mr_dtype_category(in) == 2) return in;
    return op->result == MR_RESULT_SUM ? MR_I64 : MR_F32;
}

mr_status mr_call_along_dim(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *in = call->in_count == 1 ? call->in[0].tensor : NULL;
    if (!in) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one tensor", launch->name);
    MR_TRY(mr_launch_check(launch, in));
    if (call->out) MR_TRY(mr_launch_check(launch, call->out));
    if (call->dim_count != 1)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one dimension, not %d", launch->name,
                       call->dim_count);
    int dim = 0;
    MR_TRY(mr_dim_resolve(in->ndim, call->dims[0], launch->name, &dim));
    mr_dtype result = result_of(launch->op, (mr_dtype)in->dtype);
    mr_tensor *out = call->out;
    if (out) {
        MR_TRY(mr_launch_check_out(launch, out, result, in->ndim, in->shape));
        MR_TRY(mr_launch_check_overlap(launch, out, in, true));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    if (!out) MR_TRY(mr_launch_new(launch, result, in->ndim, in->shape, &out));
    bool in_place = mr_same_view(in, out);
    mr_launch_operand(launch, out, in_place ? MR_READ | MR_WRITE : MR_WRITE);
    if (!in_place) mr_launch_operand(launch, in, MR_READ);
    launch->params.along.dim = dim;
    mr_status status = mr_launch_go(launch);
    if (!status) *out_tensor = out;
    else if (!call->out) mr_drop_new(out);
    return status;
}
