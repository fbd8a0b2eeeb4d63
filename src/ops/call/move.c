/* The entry point of flip, roll, tril and triu: scripts' dims and shifts become the row's params. */
#include "ops/table/launch.h"
#include "ops/move.h"

static mr_status check(mr_launch *launch, const mr_call *call, const mr_tensor *in) {
    const mr_move_body *body = launch->op->body;
    char text[160];
    if (body->kind == MR_MOVE_FLIP) {
        launch->params.move.flipped = 0;
        for (int i = 0; i < call->dim_count; i++) {
            int dim = 0;
            MR_TRY(mr_dim_resolve(in->ndim, call->dims[i], launch->name, &dim));
            launch->params.move.flipped |= in->ndim > 0 ? 1u << dim : 0;
        }
    } else if (body->kind == MR_MOVE_ROLL) {
        int dim = 0;
        if (call->dim_count != 1)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one dimension, not %d",
                           launch->name, call->dim_count);
        MR_TRY(mr_dim_resolve(in->ndim, call->dims[0], launch->name, &dim));
        launch->params.move.dim = dim;
    } else if (in->ndim < 2) {
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: expected a tensor with at least 2 dims, but %s has %d", launch->name,
                       mr_tensor_describe(in, text, sizeof text), in->ndim);
    }
    return MR_OK;
}

/* A tensor without dims has nothing to move. */
static mr_status go(mr_launch *launch, mr_tensor *out, mr_tensor *in) {
    if (in->ndim == 0) return mr_launch_copy(launch->caller, launch->name, out, in, launch->stream);
    mr_launch_operand(launch, out, MR_WRITE);
    mr_launch_operand(launch, in, MR_READ);
    return mr_launch_go(launch);
}

mr_status mr_call_move(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *in = call->in_count == 1 ? call->in[0].tensor : NULL, *out = call->out;
    if (!in) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one tensor", launch->name);
    MR_TRY(mr_launch_check(launch, in));
    if (out) MR_TRY(mr_launch_check(launch, out));
    MR_TRY(check(launch, call, in));
    if (out) {
        MR_TRY(mr_launch_check_out(launch, out, (mr_dtype)in->dtype, in->ndim, in->shape));
        if (out->dtype != in->dtype)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the output is %s, but the input %s",
                           launch->name, mr_dtype_text((mr_dtype)out->dtype),
                           mr_dtype_text((mr_dtype)in->dtype));
        MR_TRY(mr_launch_check_overlap(launch, out, in, false));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    if (!out) MR_TRY(mr_launch_new(launch, (mr_dtype)in->dtype, in->ndim, in->shape, &out));
    mr_status status = out->numel > 0 ? go(launch, out, in) : MR_OK;
    if (!status) *out_tensor = out;
    else if (!call->out) mr_drop_new(out);
    return status;
}
