/* nonzero and masked_select: the size of the result depends on the data. So the elements that are chosen are counted
 * first, and the host waits for the number.
 *
 * Easiest to break: during that wait the script may free the tensors and make another stream current. So the launch is
 * prepared afterwards once more. */
#include "ops/ids.h"
#include "ops/table/launch.h"

static mr_status sum_of(const mr_caller *caller, mr_tensor *t, int64_t *out_sum) {
    const mr_call call = {.in[0].tensor = t, .in_count = 1};
    mr_scalar value;
    mr_tensor *sum;
    bool fresh;
    MR_TRY(mr_call_run(caller, &mr_ops[MR_OP_sum], &call, &sum, &fresh));
    mr_status status = mr_item(caller, sum, &value);
    mr_drop_new(sum);
    if (!status) *out_sum = value.i;
    return status;
}

/* How many elements are not 0. */
static mr_status count_of(const mr_caller *caller, mr_tensor *t, int64_t *out_count) {
    if (t->dtype == MR_BOOL) return sum_of(caller, t, out_count);
    mr_call call = {.in[0].tensor = t, .in_count = 2};
    call.in[1].scalar = (mr_scalar){.is_integer = true};
    mr_tensor *other;
    bool fresh;
    MR_TRY(mr_call_run(caller, &mr_ops[MR_OP_ne], &call, &other, &fresh));
    mr_status status = sum_of(caller, other, out_count);
    mr_drop_new(other);
    return status;
}

/* `mask` NULL: there is none. */
static mr_status prepare(mr_launch *launch, const mr_caller *caller, mr_op_id id, mr_tensor *in,
                         mr_tensor *mask) {
    const mr_call call = {0};
    mr_launch_init(launch, caller, &mr_ops[id], &call);
    MR_TRY(mr_launch_check(launch, in));
    if (mask) MR_TRY(mr_launch_check(launch, mask));
    return mr_launch_place(launch, NULL);
}

mr_status mr_nonzero(const mr_caller *caller, mr_tensor *in, mr_tensor **out_positions) {
    mr_launch launch;
    MR_TRY(prepare(&launch, caller, MR_OP_nonzero, in, NULL));
    MR_TRY(mr_may_read(caller, in));
    int64_t shape[2] = {0, in->ndim};
    MR_TRY(count_of(caller, in, &shape[0]));
    MR_TRY(prepare(&launch, caller, MR_OP_nonzero, in, NULL));
    mr_tensor *out;
    MR_TRY(mr_launch_new(&launch, MR_I64, 2, shape, &out));
    mr_launch_operand(&launch, out, MR_WRITE);
    mr_launch_operand(&launch, in, MR_READ);
    mr_status status = mr_launch_go(&launch);
    if (status) mr_drop_new(out);
    else *out_positions = out;
    return status;
}

/* Both sides have been expanded to one shape. */
static mr_status select_masked(const mr_caller *caller, mr_tensor *in, mr_tensor *mask,
                               mr_tensor **out_values) {
    int64_t count;
    mr_launch launch;
    mr_tensor *out;
    MR_TRY(sum_of(caller, mask, &count));
    MR_TRY(prepare(&launch, caller, MR_OP_masked_select, in, mask));
    MR_TRY(mr_launch_new(&launch, (mr_dtype)in->dtype, 1, &count, &out));
    mr_launch_operand(&launch, out, MR_WRITE);
    mr_launch_operand(&launch, in, MR_READ);
    mr_launch_operand(&launch, mask, MR_READ);
    mr_status status = mr_launch_go(&launch);
    if (status) mr_drop_new(out);
    else *out_values = out;
    return status;
}

mr_status mr_masked_select(const mr_caller *caller, mr_tensor *in, mr_tensor *mask,
                           mr_tensor **out_values) {
    mr_launch launch;
    int ndim;
    int64_t shape[MR_MAX_DIMS];
    mr_tensor *wide = NULL, *wide_mask = NULL;
    MR_TRY(prepare(&launch, caller, MR_OP_masked_select, in, mask));
    if (mask->dtype != MR_BOOL)
        return mr_fail(MR_CODE_INVALID_ARGUMENT,
                       "%s: the mask must be a bool tensor, not %s; compare it, as in x:ne(0)",
                       launch.name, mr_dtype_text((mr_dtype)mask->dtype));
    MR_TRY(mr_shape_broadcast(launch.name, in->ndim, in->shape, mask->ndim, mask->shape, &ndim,
                              shape));
    MR_TRY(mr_may_read(caller, in));
    MR_TRY(mr_tensor_expand(caller, in, ndim, shape, &wide));
    mr_status status = mr_tensor_expand(caller, mask, ndim, shape, &wide_mask);
    if (!status) status = select_masked(caller, wide, wide_mask, out_values);
    mr_drop_new(wide);
    if (wide_mask) mr_drop_new(wide_mask);
    return status;
}
