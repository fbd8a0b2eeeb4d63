/* Rows that put elements in another order, or choose some of them, in Lua: sort, argsort, topk; flip, roll, tril, triu;
 * nonzero, masked_select. */
#include "bind/ops/arranging.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/tensor_box.h"
#include "ops/ids.h"

#define UP_OP lua_upvalueindex(2)

static bool check_boolean(lua_State *L, int arg, const char *what, bool otherwise) {
    if (lua_isnoneornil(L, arg)) return otherwise;
    if (!lua_isboolean(L, arg)) mr_bad_argument(L, arg, what);
    return lua_toboolean(L, arg);
}

/* ------------------------------------------------------------------------- sort */

/* x [, dim [, descending]] or x, k [, dim [, largest]]; then options, which may also name these. */
static mr_sort_call check_sorting(lua_State *L, const mr_op *op) {
    static const char *const of_sort[] = {"dim", "descending", NULL};
    static const char *const of_topk[] = {"dim", "largest", NULL};
    bool top = op->id == MR_OP_topk;
    int options_arg, last = mr_split_options(L, 0, &options_arg), arg = 2;
    mr_sort_call call = {.in = mr_check_tensor(L, 1), .dim = -1, .taken = -1};
    mr_no_more_arguments(L, op, last, top ? 4 : 3);
    if (top) {
        call.taken = mr_check_integer(L, arg++);
        if (call.taken < 0)
            mr_misuse(L, "topk: expected 0 or more elements, got %d", (int)call.taken);
    }
    if (arg <= last && !lua_isnil(L, arg)) call.dim = mr_check_dim(L, op->name, arg, call.in->ndim);
    bool flag = top;
    if (arg + 1 <= last)
        flag = check_boolean(
            L, arg + 1, top ? "true or false for largest" : "true or false for descending", flag);
    if (options_arg) {
        mr_option_slots options = mr_check_options(L, options_arg, top ? of_topk : of_sort);
        int dim = mr_option_at(L, &options, "dim");
        if (dim) call.dim = mr_check_dim(L, op->name, dim, call.in->ndim);
        flag = mr_option_boolean(L, &options, top ? "largest" : "descending", flag);
    }
    call.descending = flag;
    return call;
}

int mr_call_sorting(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_sort_call call = check_sorting(L, op);
    mr_tensor **values = op->id == MR_OP_argsort ? NULL : mr_new_tensor(L);
    mr_tensor **order = mr_new_tensor(L);
    mr_raise(L, mr_sort(&caller, op, &call, values, order));
    if (values) mr_made_tensor(L, *values);
    mr_made_tensor(L, *order);
    return values ? 2 : 1;
}

/* ------------------------------------------------------------------------- flip, tril, triu */

/* The table {out=} after argument `last`. */
static int push_moved(lua_State *L, const mr_caller *caller, const mr_op *op, mr_call *call,
                      int options_arg) {
    static const char *const known[] = {"out", NULL};
    mr_option_slots options = {0};
    if (options_arg) options = mr_check_options(L, options_arg, known);
    call->in_count = 1;
    call->out = options_arg ? mr_option_tensor(L, &options, "out") : NULL;
    return mr_push_result(L, caller, op, call, options_arg ? mr_option_at(L, &options, "out") : 0);
}

static int flip(lua_State *L, const mr_caller *caller, const mr_op *op) {
    int options, last = mr_split_options(L, 2, &options);
    mr_call call = {.in[0].tensor = mr_check_tensor(L, 1)};
    call.dim_count = mr_check_dims(L, op->name, 2, last, call.in[0].tensor->ndim, call.dims);
    for (int i = 0; i < call.dim_count; i++)
        for (int j = 0; j < i; j++)
            if (call.dims[i] == call.dims[j])
                mr_misuse(L, "flip: dim %d is listed twice", call.dims[i] + 1);
    return push_moved(L, caller, op, &call, options);
}

static int cut(lua_State *L, const mr_caller *caller, const mr_op *op) {
    int options, last = mr_split_options(L, 0, &options);
    mr_call call = {.in[0].tensor = mr_check_tensor(L, 1)};
    mr_no_more_arguments(L, op, last, 2);
    if (last >= 2 && !lua_isnil(L, 2)) call.params.move.diagonal = mr_check_integer(L, 2);
    return push_moved(L, caller, op, &call, options);
}

/* ------------------------------------------------------------------------- roll */

static void roll_along(lua_State *L, const mr_caller *caller, const mr_op *op, mr_tensor *x,
                       int dim, lua_Integer shift) {
    mr_call call = {.in[0].tensor = x, .in_count = 1, .dims[0] = dim, .dim_count = 1};
    call.params.move.shift = shift;
    mr_push_result(L, caller, op, &call, 0);
}

/* Without dims, as if all were one. */
static int roll_flat(lua_State *L, const mr_caller *caller, const mr_op *op, mr_tensor *x,
                     lua_Integer shift) {
    mr_call copy = {.in[0].tensor = x, .in_count = 1};
    int64_t count = x->numel;
    int base = lua_gettop(L);
    if (x->contiguous) lua_pushvalue(L, 1);
    else mr_push_result(L, caller, &mr_ops[MR_OP_copy], &copy, 0);
    mr_tensor *dense = mr_check_tensor(L, base + 1);
    mr_tensor **flat = mr_new_tensor(L);
    mr_raise(L, mr_tensor_reshape(caller, dense, 1, &count, flat));
    roll_along(L, caller, op, *flat, 0, shift);
    mr_tensor *rolled = mr_check_tensor(L, base + 3);
    mr_tensor **result = mr_new_tensor(L);
    mr_raise(L, mr_tensor_reshape(caller, rolled, x->ndim, x->shape, result));
    mr_made_tensor(L, *result);
    mr_let_go(L, base + 3);
    mr_let_go(L, base + 2);
    if (dense != x) mr_let_go(L, base + 1);
    return 1;
}

/* A number or a list of them at `arg`; returns how many. */
static int check_shifts(lua_State *L, int arg, lua_Integer *out) {
    if (lua_type(L, arg) != LUA_TTABLE) {
        out[0] = mr_check_integer(L, arg);
        return 1;
    }
    int64_t shifts[MR_MAX_DIMS];
    int count = mr_check_shape(L, "roll", arg, arg, shifts);
    for (int i = 0; i < count; i++) out[i] = shifts[i];
    return count;
}

static int roll(lua_State *L, const mr_caller *caller, const mr_op *op) {
    lua_Integer shifts[MR_MAX_DIMS];
    int dims[MR_MAX_DIMS];
    mr_tensor *x = mr_check_tensor(L, 1);
    mr_no_more_arguments(L, op, lua_gettop(L), 3);
    int count = check_shifts(L, 2, shifts);
    if (lua_isnoneornil(L, 3)) {
        if (count != 1) mr_misuse(L, "roll: several shifts need as many dims");
        return roll_flat(L, caller, op, x, shifts[0]);
    }
    if (mr_check_dims(L, "roll", 3, 3, x->ndim, dims) != count)
        mr_misuse(L, "roll: there must be as many shifts as dims");
    if (count == 0) mr_misuse(L, "roll: expected a dim or several");
    int base = lua_gettop(L);
    for (int i = 0; i < count; i++) {
        roll_along(L, caller, op, x, dims[i], shifts[i]);
        if (i > 0) mr_let_go(L, base + i); /* no script has seen it */
        x = mr_check_tensor(L, base + i + 1);
    }
    return 1;
}

int mr_call_moving(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    switch (op->id) {
    case MR_OP_flip: return flip(L, &caller, op);
    case MR_OP_roll: return roll(L, &caller, op);
    default: return cut(L, &caller, op);
    }
}

/* ------------------------------------------------------------------------- nonzero, masked_select */

int mr_call_compacting(lua_State *L) {
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_caller caller = mr_enter_as(L, op->name);
    mr_tensor *x = mr_check_tensor(L, 1);
    bool masked = op->id == MR_OP_masked_select;
    mr_tensor *mask = masked ? mr_check_tensor(L, 2) : NULL;
    mr_no_more_arguments(L, op, lua_gettop(L), masked ? 2 : 1);
    mr_tensor **out = mr_new_tensor(L);
    mr_raise(L, masked ? mr_masked_select(&caller, x, mask, out) : mr_nonzero(&caller, x, out));
    mr_made_tensor(L, *out);
    return 1;
}
