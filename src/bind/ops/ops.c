/* The operation table in Lua: for each row its function, method and in-place method. One C function
 * serves all rows of a family; its second upvalue is the row.
 *
 * `a:add_(b)` takes this path, which makes no table and does no lookup. */
#include "bind/ops/network.h"
#include "bind/ops/arranging.h"
#include "bind/ops/indexing.h"
#include "bind/open.h"
#include "bind/record.h"
#include "bind/ops/reduce.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "bind/ops/functional.h"
#include "ops/ids.h"

#define UP_OP lua_upvalueindex(2)

/* --- arguments ---------------------------------------------------------------------------------- */

/* Reads the row's inputs from argument 1 on; one of them must be a tensor. In place, the first is known already. */
static void check_inputs(lua_State *L, const mr_op *op, mr_call *call) {
    bool tensor = call->in_place;
    call->in_count = op->inputs;
    if (call->in_place) call->in[0].tensor = call->out;
    for (int i = call->in_place; i < op->inputs; i++) {
        call->in[i] = mr_check_value(L, i + 1);
        tensor |= call->in[i].tensor != NULL;
    }
    if (!tensor)
        mr_misuse(L, "%s: expected a tensor among the arguments, got numbers only", op->name);
}

/* The table {out=} at `arg`; returns where on the stack the output stands, 0: there is none. */
static int check_only_out(lua_State *L, int arg, mr_call *call) {
    static const char *const known[] = {"out", NULL};
    mr_option_slots options = mr_check_options(L, arg, known);
    call->out = mr_option_tensor(L, &options, "out");
    return mr_option_at(L, &options, "out");
}

static void no_more_arguments(lua_State *L, int last) {
    bool method;
    int count = lua_gettop(L);
    if (count <= last) return;
    const char *name = mr_called_name(L, &method);
    if (method)
        mr_misuse(L, "%s: %d arguments are too many: expected at most %d", name, count - 1,
                  last - 1);
    mr_misuse(L, "%s: %d arguments are too many: expected at most %d, with the tensor", name, count,
              last);
}

/* --- elementwise, matrix products --------------------------------------------------------------- */

static int call_values(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {0};
    check_inputs(L, op, &call);
    no_more_arguments(L, op->inputs + 1);
    return mr_push_result(L, &caller, op, &call, check_only_out(L, op->inputs + 1, &call));
}

static int call_values_in_place(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = true};
    call.out = mr_check_tensor(L, 1);
    check_inputs(L, op, &call);
    no_more_arguments(L, op->inputs);
    return mr_push_result(L, &caller, op, &call, 1);
}

/* x:clamp{min=, max=}: puts the bounds where they stand as arguments. */
static void place_named_bounds(lua_State *L) {
    static const char *const known[] = {"min", "max", NULL};
    if (lua_type(L, 2) != LUA_TTABLE) return;
    no_more_arguments(L, 2);
    mr_option_slots options = mr_check_options(L, 2, known);
    int least = mr_option_at(L, &options, "min"), greatest = mr_option_at(L, &options, "max");
    if (least) lua_pushvalue(L, least);
    else lua_pushnil(L);
    if (greatest) lua_pushvalue(L, greatest);
    else lua_pushnil(L);
    lua_replace(L, 3);
    lua_replace(L, 2);
    lua_settop(L, 3);
}

/* A row whose second or third input may be nil (clamp): a row with one input less does it then. */
static int call_bounds(lua_State *L, bool in_place) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = in_place, .in_count = 1};
    int out_arg = 0;
    place_named_bounds(L);
    lua_settop(L, in_place ? 3 : 4);
    mr_tensor *x = mr_check_tensor(L, 1);
    call.in[0].tensor = x;
    if (!lua_isnil(L, 2)) call.in[call.in_count++] = mr_check_value(L, 2);
    if (!lua_isnil(L, 3)) call.in[call.in_count++] = mr_check_value(L, 3);
    if (call.in_count == 1)
        return mr_misuse(L, "%s: expected a least or a greatest value, or both", op->name);
    if (call.in_count == 2) op = &mr_ops[op->variants[lua_isnil(L, 2)]];
    if (in_place) {
        call.out = x;
        out_arg = 1;
    } else {
        out_arg = check_only_out(L, 4, &call);
    }
    return mr_push_result(L, &caller, op, &call, out_arg);
}

static int call_bounded(lua_State *L) {
    return call_bounds(L, false);
}

static int call_bounded_in_place(lua_State *L) {
    return call_bounds(L, true);
}

/* A row whose second input is a parameter that may be left out (elu). */
static int activate(lua_State *L, bool in_place) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = in_place, .in_count = 2};
    call.in[0].tensor = mr_check_tensor(L, 1);
    int given = lua_gettop(L) >= 2 && !lua_istable(L, 2), out_arg = in_place;
    no_more_arguments(L, 1 + given + !in_place);
    if (given && !lua_isnil(L, 2)) call.in[1] = mr_check_value(L, 2);
    else call.in[1].scalar = (mr_scalar){.f = op->numbers.otherwise[0]};
    if (in_place) call.out = call.in[0].tensor;
    else out_arg = check_only_out(L, 2 + given, &call);
    return mr_push_result(L, &caller, op, &call, out_arg);
}

static int call_activation(lua_State *L) {
    return activate(L, false);
}

static int call_activation_in_place(lua_State *L) {
    return activate(L, true);
}

/* masked_fill(x, mask, value): the row's inputs are in another order. */
static int fill_masked(lua_State *L, bool in_place) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = in_place, .in_count = 3};
    int out_arg = in_place;
    call.in[2].tensor = mr_check_tensor(L, 1);
    call.in[0].tensor = mr_check_tensor(L, 2);
    call.in[1] = mr_check_value(L, 3);
    no_more_arguments(L, in_place ? 3 : 4);
    if (in_place) call.out = call.in[2].tensor;
    else out_arg = check_only_out(L, 4, &call);
    return mr_push_result(L, &caller, op, &call, out_arg);
}

static int call_masked_fill(lua_State *L) {
    return fill_masked(L, false);
}

static int call_masked_fill_in_place(lua_State *L) {
    return fill_masked(L, true);
}

/* --- along a dim -------------------------------------------------------------------------------- */

static int call_along_dim(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_tensor *x = mr_check_tensor(L, 1);
    mr_call call = {.in[0].tensor = x, .in_count = 1, .dims_given = true, .dim_count = 1};
    call.dims[0] = mr_check_dim(L, op->name, 2, x->ndim);
    no_more_arguments(L, 3);
    return mr_push_result(L, &caller, op, &call, check_only_out(L, 3, &call));
}

/* --- fills -------------------------------------------------------------------------------------- */

static int call_filling(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    const mr_op_numbers *taken = &op->numbers;
    int most = taken->required + taken->optional;
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_scalar numbers[2] = {{0}};
    no_more_arguments(L, 1 + most);
    for (int i = 0; i < most; i++) {
        if (i >= taken->required && lua_isnoneornil(L, 2 + i))
            numbers[i] = (mr_scalar){.f = taken->otherwise[i - taken->required]};
        else numbers[i] = mr_check_scalar(L, 2 + i);
    }
    mr_raise(L, mr_generate(&caller, op, t, true, NULL, numbers));
    lua_settop(L, 1);
    return 1;
}

/* --- registration ------------------------------------------------------------------------------- */

/* The C functions that call the rows of a family; NULL: the rows have functions of their own. */
typedef struct {
    lua_CFunction plain, in_place;
} callers;

static const callers by_family[] = {
    [MR_FAMILY_UNARY] = {call_values, call_values_in_place},
    [MR_FAMILY_BINARY] = {call_values, call_values_in_place},
    [MR_FAMILY_COMPARE] = {call_values, NULL},
    [MR_FAMILY_TERNARY] = {call_values, call_values_in_place},
    [MR_FAMILY_FILL] = {NULL, call_filling},
    [MR_FAMILY_RANDOM] = {NULL, call_filling},
    [MR_FAMILY_REDUCE] = {mr_call_reduction, NULL},
    [MR_FAMILY_SOFTMAX] = {call_along_dim, NULL},
    [MR_FAMILY_MATMUL] = {call_values, NULL},
    [MR_FAMILY_COPY] = {NULL, NULL},
    [MR_FAMILY_BYTES] = {NULL, NULL},
    [MR_FAMILY_ABSTRACT] = {NULL, NULL},
    [MR_FAMILY_CONV] = {mr_call_convolution, NULL},
    [MR_FAMILY_POOL] = {mr_call_pooling, NULL},
    [MR_FAMILY_LOSS] = {mr_call_losses, NULL},
    [MR_FAMILY_OPTIMISE] = {NULL, NULL},
    [MR_FAMILY_INDEX] = {mr_call_pick, mr_call_place},
    [MR_FAMILY_SCAN] = {call_along_dim, NULL},
    [MR_FAMILY_SORT] = {mr_call_sorting, NULL},
    [MR_FAMILY_MOVE] = {mr_call_moving, NULL},
    [MR_FAMILY_COMPACT] = {mr_call_compacting, NULL},
    [MR_FAMILY_KERNEL] = {NULL, NULL},
    [MR_FAMILY_COLLECTIVE] = {NULL, NULL},
};
_Static_assert(sizeof by_family / sizeof *by_family == MR_FAMILY_COUNT, "callers a family");

/* The same of rows with variants. */
static const callers with_variants[MR_FAMILY_COUNT] = {
    [MR_FAMILY_TERNARY] = {call_bounded, call_bounded_in_place},
    [MR_FAMILY_REDUCE] = {mr_call_extreme, NULL},
};

/* For rows with a parameter, and for those that fill where a mask is true. */
static const callers with_parameter[MR_FAMILY_COUNT] = {
    [MR_FAMILY_BINARY] = {call_activation, call_activation_in_place},
};
static const callers with_mask[MR_FAMILY_COUNT] = {
    [MR_FAMILY_TERNARY] = {call_masked_fill, call_masked_fill_in_place},
};

static lua_CFunction function_of(const mr_op *op, bool in_place) {
    const callers *c = by_family;
    if (op->variants[0]) c = with_variants;
    else if (op->family->id == MR_FAMILY_BINARY && op->numbers.optional) c = with_parameter;
    else if (op->rules & MR_RULE_MASK) c = with_mask;
    c += op->family->id;
    return in_place ? c->in_place : c->plain;
}

static int call_row(lua_State *L) {
    const mr_op *op = lua_touserdata(L, UP_OP);
    return mr_record(L, function_of(op, false), op->name);
}

static int call_row_in_place(lua_State *L) {
    const mr_op *op = lua_touserdata(L, UP_OP);
    return mr_record(L, function_of(op, true), op->name_in_place);
}

/* The option that makes a row a function of several rows, of lua/millrace/functional.lua. NULL: the row has none. */
static const char *composing_option(const mr_op *op) {
    switch (op->id) {
    case MR_OP_norm: return "p";
    case MR_OP_conv2d: return "padding"; /* if it is a word */
    case MR_OP_add:
    case MR_OP_sub: return "alpha";
    case MR_OP_div: return "rounding_mode";
    default: return NULL;
    }
}

static bool is_composed(lua_State *L, const mr_op *op) {
    int type = mr_last_option_type(L, composing_option(op));
    return op->id == MR_OP_conv2d ? type == LUA_TSTRING : type != LUA_TNIL;
}

static int call_row_or_composed(lua_State *L) {
    const mr_op *op = lua_touserdata(L, UP_OP);
    return is_composed(L, op) ? mr_functional_call(L, op->name) : call_row(L);
}

static int call_row_in_place_or_composed(lua_State *L) {
    const mr_op *op = lua_touserdata(L, UP_OP);
    return is_composed(L, op) ? mr_functional_call(L, op->name_in_place) : call_row_in_place(L);
}

static lua_CFunction row_function(const mr_op *op, bool in_place) {
    if (!composing_option(op)) return in_place ? call_row_in_place : call_row;
    return in_place ? call_row_in_place_or_composed : call_row_or_composed;
}

/* Sets the function in the table at the top of the stack. */
static void set_function(lua_State *L, const mr_op *op, bool in_place) {
    lua_CFunction call = row_function(op, in_place);
    if (!function_of(op, in_place)) return;
    lua_pushfstring(L, "%s%s", op->name, in_place ? "_" : "");
    mr_push_module(L);
    lua_pushlightuserdata(L, (void *)op);
    lua_pushcclosure(L, call, 2);
    lua_rawset(L, -3);
}

void mr_open_ops(lua_State *L) {
    int mr = lua_gettop(L);
    mr_push_methods(L, &mr_kind_tensor);
    for (int id = MR_OP_FIRST; id < MR_OP_COUNT; id++) {
        const mr_op *op = &mr_ops[id];
        if (op->forms & MR_FORM_METHOD) set_function(L, op, false);
        if (op->forms & MR_FORM_INPLACE) set_function(L, op, true);
        if (!(op->forms & MR_FORM_FUNCTION)) continue;
        lua_pushvalue(L, mr);
        set_function(L, op, false);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}
