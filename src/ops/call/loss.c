/* The entry points of nll_loss and its gradient: the shapes of input, targets and weights. */
#include "ops/ids.h"
#include "ops/table/launch.h"
#include "ops/network.h"

#include <inttypes.h>

static mr_status wrong_shape(const mr_launch *launch, const char *what, const mr_tensor *t,
                             const char *wanted) {
    char own[192];
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s of shape %s must have the shape %s",
                   launch->name, what, mr_shape_text(t->ndim, t->shape, own, sizeof own), wanted);
}

/* `shape`: of the input, (classes), or (items, classes, ...); the targets have it without the classes. */
static mr_status check_target(mr_launch *launch, mr_tensor *target, int ndim, const int64_t *shape,
                              int *out_ndim, int64_t *out_rest) {
    char text[192];
    *out_ndim = 0;
    for (int d = 0; d < ndim; d++)
        if (d != (ndim > 1)) out_rest[(*out_ndim)++] = shape[d];
    if (!target)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the targets are missing", launch->name);
    MR_TRY(mr_launch_check(launch, target));
    if (target->dtype != MR_I64 && target->dtype != MR_I32)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: targets are i64 or i32, not %s; convert with x:to(\"i64\")",
                       launch->name, mr_dtype_text((mr_dtype)target->dtype));
    if (mr_has_shape(target, *out_ndim, out_rest)) return MR_OK;
    return wrong_shape(launch, "the tensor of targets", target,
                       mr_shape_text(*out_ndim, out_rest, text, sizeof text));
}

static mr_status check_weight(mr_launch *launch, const mr_tensor *x, mr_tensor *weight,
                              int64_t classes) {
    char text[192];
    MR_TRY(mr_launch_check(launch, weight));
    if (weight->dtype != x->dtype)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the weights are %s, but the input is %s",
                       launch->name, mr_dtype_text((mr_dtype)weight->dtype),
                       mr_dtype_text((mr_dtype)x->dtype));
    if (weight->ndim == 1 && weight->shape[0] == classes) return MR_OK;
    return wrong_shape(launch, "the tensor of weights", weight,
                       mr_shape_text(1, &classes, text, sizeof text));
}

/* in: x, target [, weight]. */
static mr_status call_forward(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *x = call->in[0].tensor, *total = NULL;
    int ndim;
    int64_t rest[MR_MAX_DIMS];
    if (x->ndim == 0) return wrong_shape(launch, "the input", x, "(items, classes, ...)");
    MR_TRY(check_target(launch, call->in[1].tensor, x->ndim, x->shape, &ndim, rest));
    if (call->in_count > 2) {
        MR_TRY(check_weight(launch, x, call->in[2].tensor, x->shape[x->ndim > 1]));
        launch->params.loss.weighted = true;
    }
    if (launch->params.loss.reduction != MR_LOSS_NONE) ndim = 0;
    MR_TRY(mr_launch_place(launch, call->stream));
    if (launch->params.loss.reduction != MR_LOSS_NONE)
        MR_TRY(mr_launch_new(launch, mr_dtype_computed((mr_dtype)x->dtype), 0, NULL, &total));
    mr_status status =
        mr_run_network_row(launch, call, total, (mr_dtype)x->dtype, ndim, rest, out_tensor);
    if (!status && call->out_second) *call->out_second = total;
    else if (total) mr_drop_new(total);
    return status;
}

static mr_status check_total(mr_launch *launch, mr_tensor *total, mr_dtype dtype) {
    MR_TRY(mr_launch_check(launch, total));
    if (total->numel == 1 && total->dtype == mr_dtype_computed(dtype)) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: expected the total weight, which is the second result of nll_loss",
                   launch->name);
}

/* in: gradient, target [, weight] [, total, where there is a reduction]; dims: the shape of the input. */
static mr_status call_backward(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *gradient = call->in[0].tensor;
    bool reduced = launch->params.loss.reduction != MR_LOSS_NONE;
    int64_t shape[MR_MAX_DIMS], rest[MR_MAX_DIMS];
    int ndim;
    char text[192];
    for (int d = 0; d < call->dim_count; d++) shape[d] = call->dims[d];
    if (call->dim_count == 0)
        return wrong_shape(launch, "the gradient", gradient, "(items, classes, ...)");
    MR_TRY(check_target(launch, call->in[1].tensor, call->dim_count, shape, &ndim, rest));
    if (call->in_count > 2 + reduced) {
        MR_TRY(check_weight(launch, gradient, call->in[2].tensor, shape[call->dim_count > 1]));
        launch->params.loss.weighted = true;
    }
    if (reduced) ndim = 0;
    if (!mr_has_shape(gradient, ndim, rest))
        return wrong_shape(launch, "the gradient", gradient,
                           mr_shape_text(ndim, rest, text, sizeof text));
    if (reduced)
        MR_TRY(check_total(launch, call->in[call->in_count - 1].tensor, (mr_dtype)gradient->dtype));
    MR_TRY(mr_launch_place(launch, call->stream));
    return mr_run_network_row(launch, call, NULL, (mr_dtype)gradient->dtype, call->dim_count, shape,
                              out_tensor);
}

mr_status mr_call_loss(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    bool backward = launch->op->id == MR_OP_nll_loss_backward;
    int least = backward && launch->params.loss.reduction != MR_LOSS_NONE ? 3 : 2;
    if (call->in_count < least || call->in_count > least + 1)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes %d tensors, not %d", launch->name,
                       least, call->in_count);
    MR_TRY(mr_check_floats(launch, call, 1));
    return backward ? call_backward(launch, call, out_tensor)
                    : call_forward(launch, call, out_tensor);
}
