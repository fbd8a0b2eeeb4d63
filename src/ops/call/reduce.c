/* The entry point of reductions: the reduced dims, the shape of the result, and a view with the reduced dims last. */
#include "ops/table/launch.h"

#include <inttypes.h>

typedef struct {
    bool reduced[MR_MAX_DIMS];
    int count;
    int64_t length; /* elements that go into each output */
} selection;

static mr_status select_dims(const mr_launch *launch, const mr_call *call, const mr_tensor *in,
                             selection *out) {
    *out = (selection){.length = 1};
    if (call->dims_given) {
        for (int i = 0; i < call->dim_count; i++) {
            int dim = 0;
            MR_TRY(mr_dim_resolve(in->ndim, call->dims[i], launch->name, &dim));
            if (in->ndim == 0) continue;
            if (out->reduced[dim])
                return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: dimension %d is given twice",
                               launch->name, dim + 1);
            out->reduced[dim] = true;
        }
        if ((launch->op->rules & MR_RULE_ONE_DIM) && call->dim_count != 1)
            return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one dimension or none, not %d",
                           launch->name, call->dim_count);
    } else {
        for (int d = 0; d < in->ndim; d++) out->reduced[d] = true;
    }
    for (int d = 0; d < in->ndim; d++) {
        if (!out->reduced[d]) continue;
        out->count++;
        out->length *= in->shape[d];
    }
    return MR_OK;
}

static mr_dtype result_dtype(const mr_op *op, mr_dtype in) {
    bool is_float = mr_dtype_category(in) == 2;
    switch (op->result) {
    case MR_RESULT_FLOAT: return is_float ? in : MR_F32;
    case MR_RESULT_SUM: return is_float ? in : MR_I64;
    case MR_RESULT_BOOL: return MR_BOOL;
    case MR_RESULT_INDEX: return MR_I64;
    default: return in;
    }
}

/* The dims that stay in front, those that go after, each in their order. */
static mr_status reduced_last(const mr_launch *launch, mr_tensor *in, const selection *s,
                              mr_tensor **out_view) {
    int64_t shape[MR_MAX_DIMS], stride[MR_MAX_DIMS];
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int d = 0; d < in->ndim; d++) {
            if (s->reduced[d] != (pass == 1)) continue;
            shape[n] = in->shape[d];
            stride[n++] = in->stride[d];
        }
    }
    return mr_tensor_alias(launch->caller, in, (mr_dtype)in->dtype, n, shape, stride, in->offset,
                           out_view);
}

mr_status mr_call_reduce(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *in = call->in_count == 1 ? call->in[0].tensor : NULL;
    if (!in) return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes one tensor", launch->name);
    MR_TRY(mr_launch_check(launch, in));
    if (call->out) MR_TRY(mr_launch_check(launch, call->out));
    selection s;
    MR_TRY(select_dims(launch, call, in, &s));
    if ((launch->op->rules & MR_RULE_NEEDS_ELEMENT) && s.length == 0) {
        char text[160];
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: %s has no elements", launch->name,
                       mr_tensor_describe(in, text, sizeof text));
    }
    int64_t shape[MR_MAX_DIMS];
    int ndim = 0;
    bool sorted = true; /* the reduced dims are the last already */
    for (int d = 0; d < in->ndim; d++) {
        if (!s.reduced[d] && d >= in->ndim - s.count) sorted = false;
        if (!s.reduced[d] || call->keepdim) shape[ndim++] = s.reduced[d] ? 1 : in->shape[d];
    }
    mr_dtype result = result_dtype(launch->op, (mr_dtype)in->dtype);
    mr_tensor *out = call->out;
    if (out) {
        MR_TRY(mr_launch_check_out(launch, out, result, ndim, shape));
        MR_TRY(mr_launch_check_overlap(launch, out, in, false));
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    mr_tensor *view = in;
    if (!sorted) MR_TRY(reduced_last(launch, in, &s, &view));
    mr_status status = out ? MR_OK : mr_launch_new(launch, result, ndim, shape, &out);
    if (!status) {
        mr_launch_operand(launch, out, MR_WRITE);
        mr_launch_operand(launch, view, MR_READ);
        launch->params.reduce.dims = s.count;
        status = mr_launch_go(launch);
        if (status && !call->out) mr_drop_new(out);
    }
    if (view != in) mr_tensor_release(view);
    if (!status) *out_tensor = out;
    return status;
}
