/* Reductions in Lua: over everything, over one dim or over several. */
#include "bind/ops/reduce.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"

/* Dims as a number or a list of them at `index`; nil leaves it at "over everything". */
static void check_reduced_dims(lua_State *L, const mr_op *op, int index, int ndim, mr_call *call) {
    if (lua_isnoneornil(L, index)) return;
    call->dims_given = true;
    call->dim_count = mr_check_dims(L, op->name, index, index, ndim, call->dims);
    for (int i = 0; i < call->dim_count; i++)
        for (int j = 0; j < i; j++)
            if (call->dims[i] == call->dims[j])
                mr_misuse(L, "%s: dim %d is listed twice", op->name, call->dims[i] + 1);
}

/* The table at `arg`; returns where on the stack the tensor of out= stands, 0: there is none. */
static int check_reduction_options(lua_State *L, const mr_op *op, int arg, int ndim,
                                   mr_call *call) {
    static const char *const known[] = {"out", "dim", "keepdim", NULL};
    static const char *const known_by_var[] = {"out", "dim", "keepdim", "correction", NULL};
    bool correction = op->rules & MR_RULE_CORRECTION;
    mr_option_slots options = mr_check_options(L, arg, correction ? known_by_var : known);
    int dim = mr_option_at(L, &options, "dim");
    if (dim) check_reduced_dims(L, op, dim, ndim, call);
    call->keepdim = mr_option_boolean(L, &options, "keepdim", call->keepdim);
    if (correction) call->params.reduce.correction = mr_option_number(L, &options, "correction", 1);
    call->out = mr_option_tensor(L, &options, "out");
    return mr_option_at(L, &options, "out");
}

/* Reads x [, dim or dims [, keepdim]] [, options]; returns as check_reduction_options does. */
static int check_reduction(lua_State *L, const mr_op *op, mr_call *call) {
    const mr_tensor *t = mr_check_tensor(L, 1);
    int options, last = mr_split_options(L, 0, &options);
    call->in_count = 1;
    call->in[0].tensor = mr_check_tensor(L, 1);
    call->params.reduce.correction = 1;
    if (last > 3)
        mr_misuse(L, "%s: %d arguments are too many: expected dims, keepdim and options", op->name,
                  last - 1);
    if (last >= 2) check_reduced_dims(L, op, 2, t->ndim, call);
    if (last >= 3 && !lua_isnil(L, 3)) {
        if (!lua_isboolean(L, 3)) mr_bad_argument(L, 3, "true or false for keepdim");
        call->keepdim = lua_toboolean(L, 3);
    }
    return options ? check_reduction_options(L, op, options, t->ndim, call) : 0;
}

int mr_call_reduction(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    mr_call call = {0};
    int out_arg = check_reduction(L, op, &call);
    return mr_push_result(L, &caller, op, &call, out_arg);
}

/* max and min. With a dim they also return the positions, as in PyTorch. Two tensors are compared element by
 * element. */
int mr_call_extreme(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    mr_call call = {0};
    if (mr_test(L, 2, &mr_kind_tensor)) {
        if (lua_gettop(L) > 2)
            mr_misuse(L, "%s: too many arguments: expected two tensors, x:%s(y)", op->name,
                      op->name);
        call.in_count = 2;
        call.in[0] = mr_check_value(L, 1);
        call.in[1] = mr_check_value(L, 2);
        return mr_push_result(L, &caller, &mr_ops[op->variants[1]], &call, 0);
    }
    int out_arg = check_reduction(L, op, &call);
    mr_push_result(L, &caller, op, &call, out_arg);
    if (call.dim_count != 1) return 1;
    call.out = NULL;
    mr_push_result(L, &caller, &mr_ops[op->variants[0]], &call, 0);
    return 2;
}
