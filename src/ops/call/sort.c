/* The entry point of sort, argsort and topk, which have two results or one. */
#include "ops/table/launch.h"

#include <inttypes.h>
#include <string.h>

static mr_status check(mr_launch *launch, const mr_sort_call *call, int *out_dim,
                       int64_t *out_shape) {
    mr_tensor *in = call->in;
    int64_t length;
    MR_TRY(mr_launch_check(launch, in));
    MR_TRY(mr_dim_resolve(in->ndim, call->dim, launch->name, out_dim));
    memcpy(out_shape, in->shape, sizeof in->shape);
    length = in->ndim > 0 ? in->shape[*out_dim] : 1;
    if (call->taken > length)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: %" PRId64 " elements are wanted, but dim %d has %" PRId64, launch->name,
                       call->taken, *out_dim + 1, length);
    if (call->taken >= 0 && in->ndim > 0) out_shape[*out_dim] = call->taken;
    if (call->taken == 0 && in->ndim == 0)
        return mr_fail(MR_CODE_INVALID_ARGUMENT, "%s: a tensor without dims has one element, not 0",
                       launch->name);
    return MR_OK;
}

static mr_status go(mr_launch *launch, const mr_sort_call *call, int dim, mr_tensor *values,
                    mr_tensor *order) {
    if (values) mr_launch_operand(launch, values, MR_WRITE);
    mr_launch_operand(launch, order, MR_WRITE);
    mr_launch_operand(launch, call->in, MR_READ);
    launch->params.sort.dim = dim;
    launch->params.sort.descending = call->descending;
    return mr_launch_go(launch);
}

mr_status mr_sort(const mr_caller *caller, const mr_op *row, const mr_sort_call *call,
                  mr_tensor **out_values, mr_tensor **out_order) {
    const mr_call plain = {0};
    mr_launch launch;
    mr_tensor *values = NULL, *order = NULL;
    int dim = 0;
    int64_t shape[MR_MAX_DIMS];
    mr_launch_init(&launch, caller, row, &plain);
    MR_TRY(check(&launch, call, &dim, shape));
    MR_TRY(mr_launch_place(&launch, NULL));
    mr_dtype dtype = (mr_dtype)call->in->dtype;
    int ndim = call->in->ndim;
    if (out_values) MR_TRY(mr_launch_new(&launch, dtype, ndim, shape, &values));
    mr_status status = mr_launch_new(&launch, MR_I64, ndim, shape, &order);
    if (!status) status = go(&launch, call, dim, values, order);
    if (status) {
        if (values) mr_drop_new(values);
        if (order) mr_drop_new(order);
        return status;
    }
    if (out_values) *out_values = values;
    *out_order = order;
    return MR_OK;
}
