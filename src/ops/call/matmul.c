/* The entry point of matrix products: PyTorch's rules of shape. A result that is not contiguous is
 * computed aside and copied, so the body only knows dense ones. */
#include "ops/table/launch.h"

#include <inttypes.h>

static mr_status check_ranks(const mr_launch *launch, const mr_tensor *a, const mr_tensor *b) {
    static const char *const kind[] = {"a number", "a vector", "a matrix", "a batch of matrices"};
    int rules = launch->op->rules;
    if (rules == 0) {
        if (a->ndim > 0 && b->ndim > 0) return MR_OK;
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: a tensor with no dimensions is not a matrix; use mul", launch->name);
    }
    int want_a = rules / MR_RULE_RANKS % 4, want_b = rules / (4 * MR_RULE_RANKS);
    if (a->ndim == want_a && b->ndim == want_b) return MR_OK;
    char text_a[192], text_b[192];
    return mr_fail(MR_CODE_INVALID_ARGUMENT,
                   "%s: expected %s and %s, got %s and %s; matmul accepts any of these",
                   launch->name, kind[want_a], kind[want_b],
                   mr_shape_text(a->ndim, a->shape, text_a, sizeof text_a),
                   mr_shape_text(b->ndim, b->shape, text_b, sizeof text_b));
}

static mr_status check_dtypes(const mr_launch *launch, const mr_tensor *a, const mr_tensor *b) {
    char name_a[160], name_b[160];
    if (a->dtype != b->dtype) {
        mr_dtype common = mr_dtype_promote((mr_dtype)a->dtype, (mr_dtype)b->dtype);
        const mr_tensor *other = a->dtype == common ? b : a;
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %s is %s and %s is %s; convert %s with to(\"%s\")", launch->name,
                       mr_tensor_describe(a, name_a, sizeof name_a), mr_dtype_text(a->dtype),
                       mr_tensor_describe(b, name_b, sizeof name_b), mr_dtype_text(b->dtype),
                       other == a ? "the first" : "the second", mr_dtype_text(common));
    }
    if (a->dtype == MR_BOOL)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: bool tensors cannot be multiplied; convert with x:to(\"i32\")",
                       launch->name);
    return MR_OK;
}

/* The result's shape: the batch, then rows of a, then columns of b, as far as they have them. */
static mr_status product_shape(const mr_launch *launch, const mr_tensor *a, const mr_tensor *b,
                               int *out_ndim, int64_t *out_shape) {
    int64_t k_a = a->shape[a->ndim - 1], k_b = b->shape[b->ndim > 1 ? b->ndim - 2 : 0];
    if (k_a != k_b) {
        char text_a[192], text_b[192];
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: shapes %s and %s do not match: %" PRId64 " column%s against %" PRId64
                       " row%s",
                       launch->name, mr_shape_text(a->ndim, a->shape, text_a, sizeof text_a),
                       mr_shape_text(b->ndim, b->shape, text_b, sizeof text_b), k_a,
                       k_a == 1 ? "" : "s", k_b, k_b == 1 ? "" : "s");
    }
    int batch_a = a->ndim > 2 ? a->ndim - 2 : 0, batch_b = b->ndim > 2 ? b->ndim - 2 : 0, ndim;
    if (launch->op->rules && batch_a == 1 && a->shape[0] != b->shape[0])
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %" PRId64 " matrices against %" PRId64 "; matmul broadcasts",
                       launch->name, a->shape[0], b->shape[0]);
    MR_TRY(
        mr_shape_broadcast(launch->name, batch_a, a->shape, batch_b, b->shape, &ndim, out_shape));
    if (a->ndim > 1) out_shape[ndim++] = a->shape[a->ndim - 2];
    if (b->ndim > 1) out_shape[ndim++] = b->shape[b->ndim - 1];
    *out_ndim = ndim;
    return MR_OK;
}

mr_status mr_call_matmul(mr_launch *launch, const mr_call *call, mr_tensor **out_tensor) {
    mr_tensor *a = call->in[0].tensor, *b = call->in[1].tensor;
    if (call->in_count != 2 || !a || !b)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: takes two tensors", launch->name);
    MR_TRY(mr_launch_check(launch, a));
    MR_TRY(mr_launch_check(launch, b));
    if (call->out) MR_TRY(mr_launch_check(launch, call->out));
    MR_TRY(check_ranks(launch, a, b));
    MR_TRY(check_dtypes(launch, a, b));
    int ndim = 0;
    int64_t shape[MR_MAX_DIMS], numel;
    MR_TRY(product_shape(launch, a, b, &ndim, shape));
    MR_TRY(mr_shape_numel(ndim, shape, &numel));
    mr_dtype dtype = (mr_dtype)a->dtype;
    bool aside = false;
    if (call->out) {
        MR_TRY(mr_launch_check_out(launch, call->out, dtype, ndim, shape));
        MR_TRY(mr_launch_check_overlap(launch, call->out, a, false));
        MR_TRY(mr_launch_check_overlap(launch, call->out, b, false));
        aside = !call->out->contiguous || call->out->dtype != dtype;
    }
    MR_TRY(mr_launch_place(launch, call->stream));
    launch->params.matmul.tf32 = call->allow_tf32;
    bool fresh = !call->out || aside;
    mr_tensor *out = call->out;
    if (fresh) MR_TRY(mr_launch_new(launch, dtype, ndim, shape, &out));
    mr_launch_operand(launch, out, MR_WRITE);
    mr_launch_operand(launch, a, MR_READ);
    mr_launch_operand(launch, b, MR_READ); /* also when it is `a`: the body looks for it here */
    mr_status status = mr_launch_go(launch);
    if (!status && aside)
        status = mr_launch_copy(launch->caller, launch->name, call->out, out, launch->stream);
    if (fresh && (status || aside)) mr_drop_new(out);
    if (!status) *out_tensor = call->out ? call->out : out;
    return status;
}
