/* Reductions in Lua: over everything, over one dim or over several. */
#include <string.h>

#include "bind/tensor.h"

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

/* The table at `arg`. Leaves the tensor of out= on the stack and returns where, or 0. */
static int check_reduction_options(lua_State *L, const mr_op *op, int arg, int ndim,
                                   mr_call *call) {
    static const char *const known[] = {"out", "dim", "keepdim", NULL};
    static const char *const known_by_var[] = {"out", "dim", "keepdim", "correction", NULL};
    bool correction = op->rules & MR_RULE_CORRECTION;
    if (!mr_options_check(L, arg, correction ? known_by_var : known)) return 0;
    mr_push_option(L, arg, "dim");
    check_reduced_dims(L, op, lua_gettop(L), ndim, call);
    lua_pop(L, 1);
    call->keepdim = mr_option_boolean(L, arg, "keepdim", call->keepdim);
    if (correction) call->params.scalar[0].f = mr_option_number(L, arg, "correction", 1);
    if (mr_push_option(L, arg, "out") == LUA_TNIL) {
        lua_pop(L, 1);
        return 0;
    }
    if (!mr_test(L, -1, &mr_tensor_class))
        mr_misuse(L, "option `out`: expected a tensor, got %s", mr_type_text(L, -1));
    call->out = mr_check_tensor(L, lua_gettop(L));
    return lua_gettop(L);
}

/* Reads x [, dim or dims [, keepdim]] [, options]; returns as check_reduction_options does. */
static int check_reduction(lua_State *L, const mr_op *op, mr_call *call) {
    const mr_tensor *t = mr_check_tensor(L, 1);
    int options, last = mr_split_options(L, &options);
    call->in_count = 1;
    call->in[0].tensor = mr_check_tensor(L, 1);
    call->params.scalar[0] = (mr_scalar){true, 1, 1};
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

static int call_reduction(lua_State *L) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    mr_call call = {0};
    int out_arg = check_reduction(L, op, &call);
    return mr_push_result(L, machine, op, &call, out_arg);
}

/* max and min: with a dim also the positions, as in PyTorch; of two tensors the elementwise ones. */
static int call_extreme(lua_State *L) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, lua_upvalueindex(2));
    bool max = strcmp(op->name, "max") == 0;
    mr_call call = {0};
    if (mr_test(L, 2, &mr_tensor_class)) {
        call.in_count = 2;
        call.in[0] = mr_check_value(L, 1);
        call.in[1] = mr_check_value(L, 2);
        return mr_push_result(L, machine, mr_op_named(max ? "maximum" : "minimum"), &call, 0);
    }
    int out_arg = check_reduction(L, op, &call);
    mr_push_result(L, machine, op, &call, out_arg);
    if (call.dim_count != 1) return 1;
    call.out = NULL;
    mr_push_result(L, machine, mr_op_named(max ? "argmax" : "argmin"), &call, 0);
    return 2;
}

lua_CFunction mr_reduction_of(const mr_op *op) {
    bool extreme = strcmp(op->name, "max") == 0 || strcmp(op->name, "min") == 0;
    return extreme ? call_extreme : call_reduction;
}
