/* nll_loss and its gradient in Lua: their options, and the total weight as a second result. */
#include <string.h>

#include "bind/ops/network.h"
#include "bind/open.h"
#include "bind/ops/row.h"
#include "ops/ids.h"
#include "ops/network.h"

/* --- options ------------------------------------------------------------------------------------ */

/* MR_LOSS_NONE, MR_LOSS_MEAN or MR_LOSS_SUM. */
static int check_reduction(lua_State *L, const char *what, const mr_option_slots *options) {
    static const char *const names[] = {"none", "mean", "sum"};
    const char *name = mr_option_name(L, options, "reduction");
    if (!name) return MR_LOSS_MEAN;
    for (int i = 0; i < 3; i++)
        if (strcmp(name, names[i]) == 0) return i;
    return mr_misuse(L, "%s: reduction=\"%s\", expected \"none\", \"mean\" or \"sum\"", what, name);
}

/* weight, ignore_index and reduction; the weight becomes the next input. */
static void check_loss_options(lua_State *L, const char *what, const mr_option_slots *options,
                               mr_call *call) {
    mr_tensor *weight = mr_option_tensor(L, options, "weight");
    if (weight) call->in[call->in_count++].tensor = weight;
    call->params.loss.ignored = mr_option_integer(L, options, "ignore_index", -100);
    call->params.loss.reduction = check_reduction(L, what, options);
}

/* --- nll_loss ----------------------------------------------------------------------------------- */

/* x, target [, options] */
static int loss_forward(lua_State *L, const mr_op *op) {
    static const char *const known[] = {"weight", "ignore_index", "reduction",
                                        "return_total_weight", NULL};
    mr_caller caller = mr_enter(L);
    mr_call call = {.in_count = 2};
    call.in[0].tensor = mr_check_tensor(L, 1);
    call.in[1].tensor = mr_check_tensor(L, 2);
    mr_option_slots options = mr_check_options(L, 3, known);
    check_loss_options(L, op->name, &options, &call);
    if (!mr_option_boolean(L, &options, "return_total_weight", false))
        return mr_push_result(L, &caller, op, &call, 0);
    if (call.params.loss.reduction == MR_LOSS_NONE)
        mr_misuse(L, "%s: without a reduction there is no total weight", op->name);
    return mr_push_results(L, &caller, op, &call);
}

/* input_shape, gradient, target [, options] */
static int loss_backward(lua_State *L, const mr_op *op) {
    static const char *const known[] = {"weight", "ignore_index", "reduction", "total_weight",
                                        NULL};
    mr_caller caller = mr_enter(L);
    mr_call call = {.in_count = 2};
    mr_check_shape_argument(L, op->name, 1, &call);
    call.in[0].tensor = mr_check_tensor(L, 2);
    call.in[1].tensor = mr_check_tensor(L, 3);
    mr_option_slots options = mr_check_options(L, 4, known);
    check_loss_options(L, op->name, &options, &call);
    mr_tensor *total = mr_option_tensor(L, &options, "total_weight");
    bool reduced = call.params.loss.reduction != MR_LOSS_NONE;
    if (reduced && !total)
        mr_misuse(L, "%s: with a reduction, total_weight is the second result of nll_loss",
                  op->name);
    if (reduced) call.in[call.in_count++].tensor = total;
    return mr_push_result(L, &caller, op, &call, 0);
}

int mr_call_losses(lua_State *L) {
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    return op->id == MR_OP_nll_loss ? loss_forward(L, op) : loss_backward(L, op);
}
