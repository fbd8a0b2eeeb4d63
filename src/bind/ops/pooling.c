/* Pools in Lua: the options of the window, images without a batch, and positions as a second result. */
#include "bind/ops/network.h"
#include "bind/open.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "ops/ids.h"

static bool is_max(const mr_op *op) {
    return op->id == MR_OP_max_pool2d || op->id == MR_OP_max_pool2d_backward;
}

static bool is_adaptive(const mr_op *op) {
    return op->id == MR_OP_adaptive_avg_pool2d || op->id == MR_OP_adaptive_avg_pool2d_backward;
}

static bool is_backward(const mr_op *op) {
    return op->id == MR_OP_max_pool2d_backward || op->id == MR_OP_avg_pool2d_backward ||
           op->id == MR_OP_adaptive_avg_pool2d_backward;
}

/* The options of max_pool2d and avg_pool2d in the table at `arg`, once the size of the window is known. */
static mr_option_slots check_pool_options(lua_State *L, const mr_op *op, int arg, mr_call *call) {
    static const char *const of_max[] = {"stride",    "padding",        "dilation",
                                         "ceil_mode", "return_indices", NULL};
    static const char *const of_avg[] = {
        "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override", NULL};
    mr_window *w = &call->params.pool.window;
    mr_option_slots options = mr_check_options(L, arg, is_max(op) ? of_max : of_avg);
    mr_option_pair(L, op->name, &options, "padding", 0, w->padding);
    if (mr_option_at(L, &options, "stride"))
        mr_option_pair(L, op->name, &options, "stride", 1, w->stride);
    else
        for (int d = 0; d < 2; d++) w->stride[d] = w->size[d];
    call->keepdim = mr_option_boolean(L, &options, "ceil_mode", false);
    if (is_max(op)) {
        mr_option_pair(L, op->name, &options, "dilation", 1, w->dilation);
        return options;
    }
    w->dilation[0] = w->dilation[1] = 1;
    call->params.pool.include_padding = mr_option_boolean(L, &options, "count_include_pad", true);
    if (mr_option_at(L, &options, "divisor_override")) {
        call->params.pool.divisor = mr_option_integer(L, &options, "divisor_override", 1);
        if (call->params.pool.divisor == 0)
            mr_misuse(L, "%s: divisor_override must not be 0", op->name);
    }
    return options;
}

/* x, size [, options] */
static int pool_forward(lua_State *L, const mr_op *op) {
    mr_caller caller = mr_enter(L);
    mr_call call = {.in_count = 1};
    mr_tensor *x = mr_check_tensor(L, 1);
    bool positions = false, single = x->ndim == 3;
    if (lua_isnoneornil(L, 2))
        mr_bad_argument(L, 2, "the window's size, a number or {rows, columns}");
    mr_check_pair(L, op->name, "size", 2, call.params.pool.window.size);
    if (!is_adaptive(op)) {
        mr_option_slots options = check_pool_options(L, op, 3, &call);
        positions = is_max(op) && mr_option_boolean(L, &options, "return_indices", false);
    } else if (!lua_isnoneornil(L, 3)) {
        mr_misuse(L, "%s: takes the size only", op->name);
    }
    call.in[0].tensor = single ? mr_push_unsqueezed(L, &caller, x, 0) : x;
    if (positions) mr_push_results(L, &caller, op, &call);
    else mr_push_result(L, &caller, op, &call, 0);
    int last = lua_gettop(L);
    for (int at = last - positions; single && at <= last; at++) mr_drop_batch(L, &caller, at);
    return 1 + positions;
}

/* input_shape, gradient [, positions], size [, options]; adaptive: without a size. */
static int pool_backward(lua_State *L, const mr_op *op) {
    mr_caller caller = mr_enter(L);
    mr_call call = {.in_count = op->inputs};
    mr_check_shape_argument(L, op->name, 1, &call);
    if (call.dim_count != 4)
        mr_misuse(L, "%s: the shape must have 4 sizes, not %d", op->name, call.dim_count);
    for (int i = 0; i < op->inputs; i++) call.in[i].tensor = mr_check_tensor(L, 2 + i);
    int at = 2 + op->inputs;
    if (!is_adaptive(op)) {
        if (lua_isnoneornil(L, at))
            mr_bad_argument(L, at, "the window's size, a number or {rows, columns}");
        mr_check_pair(L, op->name, "size", at, call.params.pool.window.size);
        check_pool_options(L, op, at + 1, &call);
    }
    return mr_push_result(L, &caller, op, &call, 0);
}

int mr_call_pooling(lua_State *L) {
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    return is_backward(op) ? pool_backward(L, op) : pool_forward(L, op);
}
