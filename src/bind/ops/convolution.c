/* Convolutions in Lua: the options of the window, and images without a batch. */
#include "bind/ops/network.h"
#include "bind/open.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor_box.h"
#include "ops/ids.h"

/* --- windows ------------------------------------------------------------------------------------ */

void mr_check_pair(lua_State *L, const char *what, const char *name, int index, int32_t *out_pair) {
    int64_t values[MR_MAX_DIMS];
    int count = mr_check_shape(L, name, index, index, values);
    if (count < 1 || count > 2)
        mr_misuse(L, "%s: %s: expected a number or {rows, columns}, got a list of %d", what, name,
                  count);
    for (int i = 0; i < 2; i++) {
        int64_t value = values[count == 2 ? i : 0];
        if (value < 0 || value > INT32_MAX)
            mr_misuse(L, "%s: %s=%lld is not a number of elements", what, name, (long long)value);
        out_pair[i] = (int32_t)value;
    }
}

void mr_option_pair(lua_State *L, const char *what, const mr_option_slots *options,
                    const char *name, int32_t otherwise, int32_t *out_pair) {
    int at = mr_option_at(L, options, name);
    out_pair[0] = out_pair[1] = otherwise;
    if (at) mr_check_pair(L, what, name, at, out_pair);
}

void mr_check_shape_argument(lua_State *L, const char *what, int arg, mr_call *call) {
    int64_t shape[MR_MAX_DIMS];
    if (!lua_istable(L, arg)) mr_bad_argument(L, arg, "a shape, such as {64, 3, 32, 32}");
    call->dim_count = mr_check_shape(L, what, arg, arg, shape);
    for (int d = 0; d < call->dim_count; d++) {
        if (shape[d] < 0 || shape[d] > INT32_MAX)
            mr_misuse(L, "%s: size %lld is out of range", what, (long long)shape[d]);
        call->dims[d] = (int)shape[d];
    }
}

static void check_conv_window(lua_State *L, const char *what, const mr_option_slots *options,
                              mr_window *w) {
    mr_option_pair(L, what, options, "stride", 1, w->stride);
    mr_option_pair(L, what, options, "padding", 0, w->padding);
    mr_option_pair(L, what, options, "dilation", 1, w->dilation);
    lua_Integer groups = mr_option_integer(L, options, "groups", 1);
    if (groups < 1 || groups > INT32_MAX)
        mr_misuse(L, "%s: groups=%lld, expected 1 or more", what, (long long)groups);
    w->groups = (int32_t)groups;
}

/* --- views -------------------------------------------------------------------------------------- */

mr_tensor *mr_push_unsqueezed(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim) {
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_unsqueeze(caller, t, dim, slot));
    return *slot;
}

static mr_tensor *push_squeezed(lua_State *L, const mr_caller *caller, mr_tensor *t, int dim) {
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_tensor_squeeze(caller, t, dim, slot));
    mr_made_tensor(L, *slot);
    return *slot;
}

void mr_drop_batch(lua_State *L, const mr_caller *caller, int at) {
    push_squeezed(L, caller, mr_check_tensor(L, at), 0);
    mr_let_go(L, at);
    lua_replace(L, at);
}

/* --- conv2d ------------------------------------------------------------------------------------ */

/* Reads x, w [, bias] [, options]. */
static void check_convolution(lua_State *L, mr_call *call) {
    static const char *const known[] = {"bias", "stride", "padding", "dilation", "groups", NULL};
    int options_at = lua_istable(L, 3) ? 3 : 4;
    if (lua_gettop(L) > options_at)
        mr_misuse(L, "conv2d: %d arguments are too many: expected x, w, a bias and options",
                  lua_gettop(L));
    call->in[0].tensor = mr_check_tensor(L, 1);
    call->in[1].tensor = mr_check_tensor(L, 2);
    call->in_count = 2;
    mr_tensor *bias = options_at == 4 && !lua_isnoneornil(L, 3) ? mr_check_tensor(L, 3) : NULL;
    mr_option_slots options = mr_check_options(L, options_at, known);
    mr_tensor *other = mr_option_tensor(L, &options, "bias");
    if (bias && other) mr_misuse(L, "conv2d: the bias is given twice");
    if (bias || other) call->in[call->in_count++].tensor = bias ? bias : other;
    check_conv_window(L, "conv2d", &options, &call->params.conv.window);
}

static int convolve(lua_State *L) {
    mr_caller caller = mr_enter(L);
    mr_call call = {0};
    check_convolution(L, &call);
    mr_tensor *x = call.in[0].tensor;
    bool single = x->ndim == 3;
    if (!single && x->ndim != 4)
        mr_misuse(L,
                  "conv2d: the input must have 4 dims (images, channels, rows, columns) or, of one "
                  "image, 3; not %d",
                  x->ndim);
    if (single) call.in[0].tensor = mr_push_unsqueezed(L, &caller, x, 0);
    mr_push_result(L, &caller, &mr_ops[MR_OP_conv2d], &call, 0);
    if (single) mr_drop_batch(L, &caller, lua_gettop(L));
    return 1;
}

/* --- gradients ---------------------------------------------------------------------------------- */

/* mr.conv2d_input(input_shape, w, gradient, options), mr.conv2d_weight(x, weight_shape, gradient, options): the order
 * of torch.nn.grad. The row takes the gradient first. */
static int call_gradient(lua_State *L, const mr_op *op) {
    static const char *const known[] = {"stride", "padding", "dilation", "groups", NULL};
    mr_caller caller = mr_enter(L);
    bool of_input = op->id == MR_OP_conv2d_input;
    int shape_at = of_input ? 1 : 2;
    mr_call call = {.in_count = 2};
    mr_check_shape_argument(L, op->name, shape_at, &call);
    if (call.dim_count != 4)
        mr_misuse(L, "%s: the shape must have 4 sizes, not %d", op->name, call.dim_count);
    call.in[0].tensor = mr_check_tensor(L, 3);
    call.in[1].tensor = mr_check_tensor(L, 3 - shape_at);
    mr_option_slots options = mr_check_options(L, 4, known);
    check_conv_window(L, op->name, &options, &call.params.conv.window);
    return mr_push_result(L, &caller, op, &call, 0);
}

int mr_call_convolution(lua_State *L) {
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    return op->id == MR_OP_conv2d ? convolve(L) : call_gradient(L, op);
}
