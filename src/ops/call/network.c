/* Shared by the entry points of the network rows: their inputs are floats with any strides, their result is new and
 * contiguous. f16 and bf16 are made f32 in front of the row, and its result is rounded once. */
#include "ops/table/launch.h"

#include <inttypes.h>

mr_status mr_check_floats(mr_launch *launch, const mr_call *call, int count) {
    char name_a[160], name_b[160];
    const mr_tensor *first = call->in[0].tensor;
    if (call->out)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: makes a new tensor, and takes no out=", launch->name);
    for (int i = 0; i < count; i++) {
        mr_tensor *t = call->in[i].tensor;
        if (!t)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: input %d must be a tensor", launch->name,
                           i + 1);
        MR_TRY(mr_launch_check(launch, t));
        if (mr_dtype_category((mr_dtype)t->dtype) != 2)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: takes floats, but %s is %s; convert with x:to(\"f32\")",
                           launch->name, mr_tensor_describe(t, name_a, sizeof name_a),
                           mr_dtype_text((mr_dtype)t->dtype));
        if (t->dtype != first->dtype)
            return mr_fail(MR_CODE_INVALID_ARGUMENT,
                           "%s: %s is %s, but %s is %s; convert one of them with to()",
                           launch->name, mr_tensor_describe(first, name_a, sizeof name_a),
                           mr_dtype_text((mr_dtype)first->dtype),
                           mr_tensor_describe(t, name_b, sizeof name_b),
                           mr_dtype_text((mr_dtype)t->dtype));
    }
    return MR_OK;
}

mr_status mr_check_rank(const mr_launch *launch, const mr_tensor *t, int ndim,
                        const char *meaning) {
    char name[160], shape[192];
    if (t->ndim == ndim) return MR_OK;
    return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s must have the shape %s, but it is %s",
                   launch->name, mr_tensor_describe(t, name, sizeof name), meaning,
                   mr_shape_text(t->ndim, t->shape, shape, sizeof shape));
}

mr_status mr_check_window(const char *name, const mr_window *w) {
    for (int d = 0; d < 2; d++) {
        const char *wrong = w->size[d] < 1       ? "a window of at least 1x1"
                            : w->stride[d] < 1   ? "a stride of at least 1"
                            : w->dilation[d] < 1 ? "a dilation of at least 1"
                            : w->padding[d] < 0  ? "a padding of at least 0"
                                                 : NULL;
        if (wrong) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: expected %s", name, wrong);
    }
    return MR_OK;
}

mr_status mr_window_misfit(const char *name, const mr_window *w, const int64_t *shape) {
    char text[192];
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: a window of %dx%d (dilation %dx%d) does not fit into an input of shape %s "
                   "with padding %dx%d",
                   name, w->size[0], w->size[1], w->dilation[0], w->dilation[1],
                   mr_shape_text(4, shape, text, sizeof text), w->padding[0], w->padding[1]);
}

mr_status mr_new_converted(const mr_launch *launch, mr_tensor *t, mr_dtype dtype,
                           mr_tensor **out_tensor) {
    MR_TRY(mr_launch_new(launch, dtype, t->ndim, t->shape, out_tensor));
    mr_status status = mr_launch_copy(launch->caller, launch->name, *out_tensor, t, launch->stream);
    if (status) mr_drop_new(*out_tensor);
    return status;
}

/* Runs the row with inputs that it computes with. */
static mr_status run_computed(mr_launch *launch, const mr_call *call, mr_tensor *const *inputs,
                              mr_tensor *second, mr_dtype dtype, int ndim, const int64_t *shape,
                              mr_tensor **out_tensor) {
    MR_TRY(mr_launch_new(launch, dtype, ndim, shape, out_tensor));
    mr_launch_operand(launch, *out_tensor, MR_WRITE);
    for (int i = 0; i < call->in_count; i++) mr_launch_operand(launch, inputs[i], MR_READ);
    if (second) mr_launch_operand(launch, second, MR_WRITE);
    mr_status status = mr_launch_go(launch);
    if (status) mr_drop_new(*out_tensor);
    return status;
}

mr_status mr_run_network_row(mr_launch *launch, const mr_call *call, mr_tensor *second,
                             mr_dtype result, int ndim, const int64_t *shape,
                             mr_tensor **out_tensor) {
    mr_tensor *inputs[MR_CALL_INPUTS], *made[MR_CALL_INPUTS] = {0}, *out = NULL;
    mr_status status = MR_OK;
    for (int i = 0; i < call->in_count && !status; i++) {
        mr_dtype dtype = (mr_dtype)call->in[i].tensor->dtype;
        inputs[i] = call->in[i].tensor;
        if (!mr_dtype_is_half(dtype)) continue;
        status = mr_new_converted(launch, inputs[i], MR_F32, &made[i]);
        if (!status) inputs[i] = made[i];
    }
    if (!status)
        status = run_computed(launch, call, inputs, second, mr_dtype_computed(result), ndim, shape,
                              &out);
    if (!status && mr_dtype_is_half(result)) {
        mr_tensor *wide = out;
        status = mr_new_converted(launch, wide, result, &out);
        mr_drop_new(wide);
    }
    for (int i = 0; i < call->in_count; i++)
        if (made[i]) mr_drop_new(made[i]);
    if (!status) *out_tensor = out;
    return status;
}
