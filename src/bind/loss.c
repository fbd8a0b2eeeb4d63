/* Losses in Lua: nll_loss and its gradient are rows; cross_entropy and mse_loss are made of several rows. */
#include <string.h>

#include "bind/network.h"
#include "bind/open.h"
#include "bind/row.h"
#include "bind/tensor.h"
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
    call->params.integer[0] = mr_option_integer(L, options, "ignore_index", -100);
    call->params.integer[1] = check_reduction(L, what, options);
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
    if (call.params.integer[1] == MR_LOSS_NONE)
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
    bool reduced = call.params.integer[1] != MR_LOSS_NONE;
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

/* --- cross_entropy ------------------------------------------------------------------------------ */

/* What nll_loss will refuse, before anything is submitted. */
static void check_classes(lua_State *L, const mr_tensor *x, const mr_tensor *target) {
    char a[192], b[192];
    mr_check_same_place(L, "cross_entropy", x, target);
    if (x->ndim == 0) mr_misuse(L, "cross_entropy: the input has no dim of classes");
    if (mr_dtype_category((mr_dtype)x->dtype) != 2)
        mr_misuse(L, "cross_entropy: takes floats, not %s", mr_dtype_text((mr_dtype)x->dtype));
    if (target->dtype != MR_I64 && target->dtype != MR_I32)
        mr_misuse(L, "cross_entropy: targets are i64 or i32, not %s; convert with x:to(\"i64\")",
                  mr_dtype_text((mr_dtype)target->dtype));
    int classes = x->ndim > 1, n = 0;
    bool same = target->ndim == x->ndim - 1;
    for (int d = 0; same && d < x->ndim; d++)
        if (d != classes) same = target->shape[n++] == x->shape[d];
    if (!same)
        mr_misuse(L,
                  "cross_entropy: the input has shape %s; the targets, of shape %s, must have it "
                  "without the dim of classes",
                  mr_shape_text(x->ndim, x->shape, a, sizeof a),
                  mr_shape_text(target->ndim, target->shape, b, sizeof b));
}

static void check_class_weight(lua_State *L, const mr_tensor *x, const mr_tensor *weight) {
    int64_t classes = x->shape[x->ndim > 1];
    mr_check_same_place(L, "cross_entropy", x, weight);
    if (weight->dtype != x->dtype || weight->ndim != 1 || weight->shape[0] != classes)
        mr_misuse(L, "cross_entropy: the weights must be %s, of shape %lld, one for each class",
                  mr_dtype_text((mr_dtype)x->dtype), (long long)classes);
}

MR_FUNCTION(loss_cross_entropy, "cross_entropy",
            "x:cross_entropy(target: tensor [, {weight: tensor, ignore_index: integer=-100, "
            "reduction: string=\"mean\"}]) -> tensor",
            "The cross entropy of scores x (items, classes, ...) and targets, which are classes "
            "and count from 1: nll_loss of log_softmax.") {
    static const char *const known[] = {"weight", "ignore_index", "reduction", NULL};
    mr_caller caller = mr_enter_as(L, "cross_entropy");
    mr_call call = {.in_count = 2};
    mr_tensor *x = mr_check_tensor(L, 1);
    call.in[1].tensor = mr_check_tensor(L, 2);
    mr_option_slots options = mr_check_options(L, 3, known);
    check_loss_options(L, "cross_entropy", &options, &call);
    check_classes(L, x, call.in[1].tensor);
    if (call.in_count > 2) check_class_weight(L, x, call.in[2].tensor);
    mr_call softmax = {.in = {{.tensor = x}}, .in_count = 1, .dims_given = true, .dim_count = 1};
    softmax.dims[0] = x->ndim > 1;
    mr_push_result(L, &caller, &mr_ops[MR_OP_log_softmax], &softmax, 0);
    int probabilities = lua_gettop(L);
    call.in[0].tensor = mr_check_tensor(L, probabilities);
    mr_push_result(L, &caller, &mr_ops[MR_OP_nll_loss], &call, 0);
    mr_let_go(L, probabilities);
    return 1;
}

/* --- mse_loss ----------------------------------------------------------------------------------- */

MR_FUNCTION(loss_mse_loss, "mse_loss",
            "x:mse_loss(target: tensor [, {reduction: string=\"mean\"}]) -> tensor",
            "The squares of the differences, their mean or their sum.") {
    static const char *const known[] = {"reduction", NULL};
    static const mr_op_id reduced[] = {[MR_LOSS_MEAN] = MR_OP_mean, [MR_LOSS_SUM] = MR_OP_sum};
    mr_caller caller = mr_enter_as(L, "mse_loss");
    mr_call sub = {.in = {{.tensor = mr_check_tensor(L, 1)}, {.tensor = mr_check_tensor(L, 2)}},
                   .in_count = 2};
    mr_option_slots options = mr_check_options(L, 3, known);
    int reduction = check_reduction(L, "mse_loss", &options);
    mr_push_result(L, &caller, &mr_ops[MR_OP_sub], &sub, 0);
    int difference = lua_gettop(L);
    mr_tensor *t = mr_check_tensor(L, difference);
    mr_call square = {.in = {{.tensor = t}}, .in_count = 1, .out = t, .in_place = true};
    mr_push_result(L, &caller, &mr_ops[MR_OP_square], &square, difference);
    if (reduction == MR_LOSS_NONE) return 1;
    mr_call reduce = {.in = {{.tensor = t}}, .in_count = 1};
    mr_push_result(L, &caller, &mr_ops[reduced[reduction]], &reduce, 0);
    mr_let_go(L, difference);
    return 1;
}

static const mr_function *const functions[] = {&loss_cross_entropy_function,
                                               &loss_mse_loss_function, NULL};

const mr_class mr_loss_class = {"tensor", "Losses.", functions, NULL, &mr_kind_tensor};
const mr_class mr_loss_functions_class = {"mr", "Losses.", functions, NULL, NULL};

void mr_open_loss(lua_State *L) {
    mr_class_extend(L, &mr_loss_class);
    mr_table_open(L, &mr_loss_functions_class);
}
