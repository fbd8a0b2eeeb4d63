/* The entry points of the convolutions: they check shapes, dtypes and the window, and make the result. Inputs have any
 * strides; the result is always new, and contiguous. */
#include "ops/ids.h"
#include "ops/table/launch.h"
#include "ops/network.h"

#include <inttypes.h>

/* ------------------------------------------------------------------------- checks */

/* The image, the weights and, if it is there already, the result fit together: of conv2d as of its gradients. */
static mr_status check_channels(const mr_launch *launch, const int64_t *image,
                                const int64_t *weights) {
    int64_t groups = launch->params.conv.window.groups;
    char text[192], own[192];
    if (groups < 1 || weights[0] % groups != 0)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: groups=%" PRId64 " does not divide the %" PRId64 " output channels",
                       launch->name, groups, weights[0]);
    if (image[1] == weights[1] * groups) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: weights of shape %s expect %" PRId64 " input channels with groups=%" PRId64
                   ", but the input of shape %s has %" PRId64,
                   launch->name, mr_shape_text(4, weights, text, sizeof text), weights[1] * groups,
                   groups, mr_shape_text(4, image, own, sizeof own), image[1]);
}

static mr_status result_shape(const mr_launch *launch, const int64_t *image, const int64_t *weights,
                              int64_t *out_shape) {
    const mr_window *w = &launch->params.conv.window;
    out_shape[0] = image[0];
    out_shape[1] = weights[0];
    for (int d = 0; d < 2; d++) {
        out_shape[2 + d] = mr_window_positions(w, d, image[2 + d]);
        if (out_shape[2 + d] > 0) continue;
        return mr_window_misfit(launch->name, w, image);
    }
    return MR_OK;
}

static mr_status check_bias(const mr_launch *launch, const mr_tensor *bias, int64_t outputs) {
    char text[192];
    if (bias->ndim == 1 && bias->shape[0] == outputs) return MR_OK;
    return mr_fail(
        MR_CODE_INVALID_ARGUMENT,
        "%s: the bias must have the shape %" PRId64 ", one for each output channel, but it is %s",
        launch->name, outputs, mr_shape_text(bias->ndim, bias->shape, text, sizeof text));
}

/* The gradient must have the shape of conv2d's result. */
static mr_status check_gradient(const mr_launch *launch, const mr_tensor *gradient,
                                const int64_t *image, const int64_t *weights) {
    int64_t shape[4];
    char own[192], wanted[192];
    MR_TRY(mr_check_rank(launch, gradient, 4, "(images, channels, rows, columns)"));
    MR_TRY(check_channels(launch, image, weights));
    MR_TRY(result_shape(launch, image, weights, shape));
    for (int d = 0; d < 4; d++)
        if (gradient->shape[d] != shape[d])
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: the gradient of shape %s must have that of the result, %s",
                           launch->name, mr_shape_text(4, gradient->shape, own, sizeof own),
                           mr_shape_text(4, shape, wanted, sizeof wanted));
    return MR_OK;
}

static void take_window_size(mr_launch *launch, const int64_t *weights) {
    for (int d = 0; d < 2; d++)
        launch->params.conv.window.size[d] =
            weights[2 + d] > INT32_MAX ? 0 : (int32_t)weights[2 + d];
}

/* ------------------------------------------------------------------------- the rows */

/* In f32 or f64, or rounded to `result`. */
static mr_status run_row(mr_launch *launch, const mr_call *call, mr_dtype result, int ndim,
                         const int64_t *shape, mr_tensor **out_tensor) {
    MR_TRY(mr_launch_place(launch, call->stream));
    launch->params.conv.tf32 = call->allow_tf32;
    return mr_run_network_row(launch, call, NULL, result, ndim, shape, out_tensor);
}

static mr_status call_forward(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    const mr_tensor *x = call->in[0].tensor, *w = call->in[1].tensor;
    int64_t shape[4];
    MR_TRY(mr_check_rank(launch, x, 4, "(images, channels, rows, columns)"));
    MR_TRY(mr_check_rank(launch, w, 4, "(outputs, channels / groups, rows, columns)"));
    MR_TRY(check_channels(launch, x->shape, w->shape));
    take_window_size(launch, w->shape);
    MR_TRY(mr_check_window(launch->name, &launch->params.conv.window));
    MR_TRY(result_shape(launch, x->shape, w->shape, shape));
    if (call->in_count > 2) MR_TRY(check_bias(launch, call->in[2].tensor, w->shape[0]));
    return run_row(launch, call, (mr_dtype)x->dtype, 4, shape, out_tensor);
}

/* in: gradient, w; dims: the shape of conv2d's input. */
static mr_status call_input(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    const mr_tensor *gradient = call->in[0].tensor, *w = call->in[1].tensor;
    int64_t image[4];
    for (int d = 0; d < 4; d++) image[d] = call->dims[d];
    MR_TRY(mr_check_rank(launch, w, 4, "(outputs, channels / groups, rows, columns)"));
    take_window_size(launch, w->shape);
    MR_TRY(mr_check_window(launch->name, &launch->params.conv.window));
    MR_TRY(check_gradient(launch, gradient, image, w->shape));
    return run_row(launch, call, (mr_dtype)w->dtype, 4, image, out_tensor);
}

static mr_status add_chunks(const mr_launch *launch, mr_tensor *chunks, mr_tensor **out_sum) {
    mr_call call = {.in = {{.tensor = chunks}},
                    .in_count = 1,
                    .stream = launch->stream,
                    .dims_given = true,
                    .dim_count = 1};
    mr_launch sum;
    mr_launch_init(&sum, launch->caller, &mr_ops[MR_OP_sum], &call);
    return mr_call_reduce(&sum, &call, out_sum);
}

/* in: gradient, x; dims: the shape of the weights. */
static mr_status call_weight(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    const mr_tensor *gradient = call->in[0].tensor, *x = call->in[1].tensor;
    int64_t shape[5], *weights = shape + 1;
    for (int d = 0; d < 4; d++) weights[d] = call->dims[d];
    MR_TRY(mr_check_rank(launch, x, 4, "(images, channels, rows, columns)"));
    take_window_size(launch, weights);
    MR_TRY(mr_check_window(launch->name, &launch->params.conv.window));
    MR_TRY(check_gradient(launch, gradient, x->shape, weights));
    shape[0] = mr_conv_weight_chunks(x->shape[0] * gradient->shape[2] * gradient->shape[3],
                                     weights[0] * weights[1] * weights[2] * weights[3]);
    mr_dtype dtype = (mr_dtype)x->dtype;
    mr_tensor *chunks, *sum = NULL;
    MR_TRY(run_row(launch, call, mr_dtype_computed(dtype), 5, shape, &chunks));
    mr_status status = add_chunks(launch, chunks, &sum);
    mr_drop_new(chunks);
    if (!status && mr_dtype_is_half(dtype)) {
        status = mr_new_converted(launch, sum, dtype, out_tensor);
        mr_drop_new(sum);
    } else if (!status) {
        *out_tensor = sum;
    }
    return status;
}

mr_status mr_call_conv(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    bool takes_bias = launch->op->id == MR_OP_conv2d && call->in_count == 3;
    if (call->in_count != 2 && !takes_bias)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes two tensors, not %d", launch->name,
                       call->in_count);
    MR_TRY(mr_check_floats(launch, call, call->in_count));
    switch (launch->op->id) {
    case MR_OP_conv2d: return call_forward(launch, call, out_tensor);
    case MR_OP_conv2d_input: return call_input(launch, call, out_tensor);
    default: return call_weight(launch, call, out_tensor);
    }
}
