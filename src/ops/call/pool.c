/* The entry points of pools: the window, and the shape of the result by PyTorch's rules. */
#include "ops/ids.h"
#include "ops/table/launch.h"
#include "ops/network.h"

#include <inttypes.h>

static const char *const IMAGES = "(images, channels, rows, columns)";

/* At most half of a window lies in the padding, so each has an element. */
static mr_status check_padding(const mr_launch *launch) {
    const mr_window *w = &launch->params.pool.window;
    MR_TRY(mr_check_window(launch->name, w));
    for (int d = 0; d < 2; d++) {
        int64_t reach = (int64_t)w->dilation[d] * (w->size[d] - 1) + 1;
        if (w->padding[d] > reach / 2)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: a padding of %d is more than half of the window's %" PRId64
                           " elements",
                           launch->name, w->padding[d], reach);
    }
    return MR_OK;
}

/* With `ceil`, a last window that begins inside may go beyond the end. */
static mr_status result_shape(const mr_launch *launch, const int64_t *in, bool ceil,
                              int64_t *out_shape) {
    const mr_window *w = &launch->params.pool.window;
    out_shape[0] = in[0];
    out_shape[1] = in[1];
    for (int d = 0; d < 2; d++) {
        int64_t covered = (int64_t)w->dilation[d] * (w->size[d] - 1) + 1,
                room = in[2 + d] + 2 * (int64_t)w->padding[d] - covered;
        if (ceil) room += w->stride[d] - 1;
        out_shape[2 + d] = room < 0 ? 0 : room / w->stride[d] + 1;
        bool begins_outside = (out_shape[2 + d] - 1) * w->stride[d] >= in[2 + d] + w->padding[d];
        if (ceil && begins_outside) out_shape[2 + d]--;
        if (out_shape[2 + d] > 0) continue;
        return mr_window_misfit(launch->name, w, in);
    }
    return MR_OK;
}

static mr_status check_sizes(const mr_launch *launch, const int64_t *in) {
    enum { LARGEST = 1 << 29 };
    if (in[2] <= LARGEST && in[3] <= LARGEST && launch->params.pool.window.padding[0] <= LARGEST &&
        launch->params.pool.window.padding[1] <= LARGEST)
        return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the images are too large", launch->name);
}

static mr_status check_shape(const mr_launch *launch, const char *what, const mr_tensor *t,
                             const int64_t *shape) {
    char own[192], wanted[192];
    bool same = t->ndim == 4;
    for (int d = 0; same && d < 4; d++) same = t->shape[d] == shape[d];
    if (same) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: the %s of shape %s must have that of the result, %s", launch->name, what,
                   mr_shape_text(t->ndim, t->shape, own, sizeof own),
                   mr_shape_text(4, shape, wanted, sizeof wanted));
}

static bool is_adaptive(const mr_launch *launch) {
    return launch->op->id == MR_OP_adaptive_avg_pool2d ||
           launch->op->id == MR_OP_adaptive_avg_pool2d_backward;
}

static mr_status pooled_shape(const mr_launch *launch, const mr_call *call, const int64_t *in,
                              int64_t *out_shape) {
    MR_TRY(check_sizes(launch, in));
    if (!is_adaptive(launch)) {
        MR_TRY(check_padding(launch));
        return result_shape(launch, in, call->keepdim, out_shape);
    }
    for (int d = 0; d < 2; d++) {
        out_shape[d] = in[d];
        out_shape[2 + d] = launch->params.pool.window.size[d];
        if (in[2 + d] == 0 && out_shape[2 + d] > 0)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: the images have no elements to average",
                           launch->name);
    }
    return MR_OK;
}

/* keepdim stands for PyTorch's ceil_mode; `second`: where new positions go. */
static mr_status call_forward(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *x = call->in[0].tensor, *positions = NULL;
    int64_t shape[4];
    MR_TRY(mr_check_rank(launch, x, 4, IMAGES));
    MR_TRY(pooled_shape(launch, call, x->shape, shape));
    MR_TRY(mr_launch_place(launch, call->stream));
    if (call->out_second) MR_TRY(mr_launch_new(launch, MR_I64, 4, shape, &positions));
    mr_status status =
        mr_run_network_row(launch, call, positions, (mr_dtype)x->dtype, 4, shape, out_tensor);
    if (status && positions) mr_drop_new(positions);
    if (!status && positions) *call->out_second = positions;
    return status;
}

/* in: gradient [, positions]; dims: the shape of the pool's input. */
static mr_status call_backward(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *gradient = call->in[0].tensor;
    int64_t in[4], shape[4];
    for (int d = 0; d < 4; d++) in[d] = call->dims[d];
    if (is_adaptive(launch) && gradient->ndim == 4)
        for (int d = 0; d < 2; d++)
            launch->params.pool.window.size[d] = (int32_t)gradient->shape[2 + d];
    MR_TRY(mr_check_rank(launch, gradient, 4, IMAGES));
    MR_TRY(pooled_shape(launch, call, in, shape));
    MR_TRY(check_shape(launch, "gradient", gradient, shape));
    if (call->in_count > 1) {
        mr_tensor *positions = call->in[1].tensor;
        MR_TRY(mr_launch_check(launch, positions));
        MR_TRY(check_shape(launch, "tensor of positions", positions, shape));
        if (positions->dtype != MR_I64)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: positions are i64, not %s", launch->name,
                           mr_dtype_text((mr_dtype)positions->dtype));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    return mr_run_network_row(launch, call, NULL, (mr_dtype)gradient->dtype, 4, in, out_tensor);
}

mr_status mr_call_pool(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    if (call->in_count != launch->op->inputs || !call->in[call->in_count - 1].tensor)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes %d tensors, not %d", launch->name,
                       launch->op->inputs, call->in_count);
    MR_TRY(mr_check_floats(launch, call, 1));
    switch (launch->op->id) {
    case MR_OP_max_pool2d:
    case MR_OP_avg_pool2d:
    case MR_OP_adaptive_avg_pool2d: return call_forward(launch, call, out_tensor);
    default: return call_backward(launch, call, out_tensor);
    }
}
