/* The operation table in Lua: for each row its function, method and in-place method. One C function
 * serves all rows of a family; which row it is for stands in its second upvalue.
 *
 * This is the path of `a:add_(b)`: no table is made on it and nothing is looked up. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bind/tensor.h"

#define UP_OP lua_upvalueindex(2)

const mr_op *mr_op_named(const char *name) {
    const mr_op *op = mr_op_find(name);
    if (op) return op;
    fprintf(stderr, "millrace: the operation table has no row `%s`\n", name);
    abort();
}

/* --- running a call ----------------------------------------------------------------------------- */

int mr_push_result(lua_State *L, mr_machine *machine, const mr_op *op, const mr_call *call,
                   int out_arg) {
    bool is_new;
    if (out_arg) {
        mr_tensor *out;
        mr_raise(L, mr_call_run(machine, op, call, &out, &is_new));
        mr_tensor_release(out); /* the box on the stack has its own reference */
        lua_pushvalue(L, out_arg);
        return 1;
    }
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_call_run(machine, op, call, slot, &is_new));
    mr_made_tensor(L, *slot);
    return 1;
}

mr_status mr_generate(mr_machine *machine, const mr_op *op, mr_tensor *out, bool in_place,
                      mr_stream *stream, const mr_params *params) {
    mr_call call = {.out = out, .in_place = in_place, .stream = stream, .params = *params};
    bool is_new;
    mr_tensor *same;
    MR_TRY(mr_call_run(machine, op, &call, &same, &is_new));
    mr_tensor_release(same);
    return MR_OK;
}

mr_status mr_fill_with(mr_machine *machine, mr_tensor *out, mr_scalar value) {
    static const mr_op *fill;
    if (!fill) fill = mr_op_named("fill");
    mr_params params = {.scalar[0] = value};
    return mr_generate(machine, fill, out, true, NULL, &params);
}

/* --- arguments ---------------------------------------------------------------------------------- */

mr_value mr_check_value(lua_State *L, int arg) {
    if (lua_type(L, arg) == LUA_TUSERDATA) return (mr_value){.tensor = mr_check_tensor(L, arg)};
    if (!mr_is_scalar(L, arg)) mr_bad_argument(L, arg, "a tensor or a number");
    return (mr_value){.scalar = mr_check_scalar(L, arg)};
}

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

/* The option out= of the table at `arg`: leaves its userdata on the stack and returns where, or 0. */
static int check_out(lua_State *L, int arg, mr_call *call) {
    if (mr_push_option(L, arg, "out") == LUA_TNIL) {
        lua_pop(L, 1);
        return 0;
    }
    if (!mr_test(L, -1, &mr_tensor_class))
        mr_misuse(L, "option `out`: expected a tensor, got %s", mr_type_text(L, -1));
    call->out = mr_check_tensor(L, lua_gettop(L));
    return lua_gettop(L);
}

/* The table {out=} at `arg`, where nothing else is known. */
static int check_only_out(lua_State *L, int arg, mr_call *call) {
    static const char *const known[] = {"out", NULL};
    return mr_options_check(L, arg, known) ? check_out(L, arg, call) : 0;
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
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {0};
    check_inputs(L, op, &call);
    no_more_arguments(L, op->inputs + 1);
    return mr_push_result(L, machine, op, &call, check_only_out(L, op->inputs + 1, &call));
}

static int call_values_in_place(lua_State *L) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = true};
    call.out = mr_check_tensor(L, 1);
    check_inputs(L, op, &call);
    no_more_arguments(L, op->inputs);
    return mr_push_result(L, machine, op, &call, 1);
}

/* clamp(x, least, greatest), either of which may be nil: a row with one input less does it then. */
static int clamp(lua_State *L, bool in_place) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {.in_place = in_place, .in_count = 1};
    int out_arg = 0;
    lua_settop(L, in_place ? 3 : 4);
    mr_tensor *x = mr_check_tensor(L, 1);
    call.in[0].tensor = x;
    if (!lua_isnil(L, 2)) call.in[call.in_count++] = mr_check_value(L, 2);
    if (!lua_isnil(L, 3)) call.in[call.in_count++] = mr_check_value(L, 3);
    if (call.in_count == 1)
        return mr_misuse(L, "clamp: expected a least or a greatest value, or both");
    if (call.in_count == 2) op = mr_op_named(lua_isnil(L, 3) ? "maximum" : "minimum");
    if (in_place) {
        call.out = x;
        out_arg = 1;
    } else {
        out_arg = check_only_out(L, 4, &call);
    }
    return mr_push_result(L, machine, op, &call, out_arg);
}

static int call_clamp(lua_State *L) {
    return clamp(L, false);
}

static int call_clamp_in_place(lua_State *L) {
    return clamp(L, true);
}

/* --- along a dim -------------------------------------------------------------------------------- */

static int call_along_dim(lua_State *L) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_tensor *x = mr_check_tensor(L, 1);
    mr_call call = {.in[0].tensor = x, .in_count = 1, .dims_given = true, .dim_count = 1};
    call.dims[0] = mr_check_dim(L, op->name, 2, x->ndim);
    no_more_arguments(L, 3);
    return mr_push_result(L, machine, op, &call, check_only_out(L, 3, &call));
}

/* --- fills -------------------------------------------------------------------------------------- */

/* The arguments of the in-place fills: how many, and what they are when they are left out. */
static const struct filling {
    const char *op;
    int required, optional;
    double otherwise[2];
} fillings[] = {
    {"fill", 1, 0, {0, 0}},   {"zero", 0, 0, {0, 0}},        {"uniform", 0, 2, {0, 1}},
    {"normal", 0, 2, {0, 1}}, {"bernoulli", 0, 1, {0.5, 0}},
};

static void check_filling(lua_State *L, const char *op, const mr_scalar *s) {
    if (strcmp(op, "uniform") == 0 && !(s[0].f <= s[1].f && isfinite(s[1].f - s[0].f)))
        mr_misuse(L, "uniform_: from %g to %g is not a range of numbers", s[0].f, s[1].f);
    if (strcmp(op, "normal") == 0 && !(s[1].f >= 0))
        mr_misuse(L, "normal_: the standard deviation is %g, expected 0 or more", s[1].f);
    if (strcmp(op, "bernoulli") == 0 && !(s[0].f >= 0 && s[0].f <= 1))
        mr_misuse(L, "bernoulli_: the probability is %g, expected 0 to 1", s[0].f);
}

static int call_filling(lua_State *L) {
    mr_machine *machine = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    const struct filling *f = fillings;
    mr_tensor *t = mr_check_tensor(L, 1);
    mr_params params = {0};
    while (strcmp(f->op, op->name) != 0) f++; /* registered only for those in the list */
    no_more_arguments(L, 1 + f->required + f->optional);
    for (int i = 0; i < f->required + f->optional; i++) {
        if (i >= f->required && lua_isnoneornil(L, 2 + i))
            params.scalar[i] = (mr_scalar){false, 0, f->otherwise[i]};
        else params.scalar[i] = mr_check_scalar(L, 2 + i);
    }
    check_filling(L, op->name, params.scalar);
    mr_raise(L, mr_generate(machine, op, t, true, NULL, &params));
    lua_settop(L, 1);
    return 1;
}

static bool is_filling(const char *name) {
    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++)
        if (strcmp(fillings[i].op, name) == 0) return true;
    return false;
}

/* --- registration ------------------------------------------------------------------------------- */

static lua_CFunction function_of(const mr_op *op, bool in_place) {
    if (strcmp(op->name, "clamp") == 0) return in_place ? call_clamp_in_place : call_clamp;
    switch (op->family) {
    case MR_FAMILY_FILL:
    case MR_FAMILY_RANDOM: return is_filling(op->name) ? call_filling : NULL;
    case MR_FAMILY_REDUCE: return mr_reduction_of(op);
    case MR_FAMILY_SOFTMAX: return call_along_dim;
    case MR_FAMILY_UNARY:
    case MR_FAMILY_BINARY:
    case MR_FAMILY_COMPARE:
    case MR_FAMILY_TERNARY:
    case MR_FAMILY_MATMUL: return in_place ? call_values_in_place : call_values;
    default: return NULL;
    }
}

/* Sets the function in the table at the top of the stack. */
static void set_function(lua_State *L, mr_machine *machine, const mr_op *op, bool in_place) {
    lua_CFunction call = function_of(op, in_place);
    if (!call) return;
    lua_pushfstring(L, "%s%s", op->name, in_place ? "_" : "");
    lua_pushlightuserdata(L, machine);
    lua_pushlightuserdata(L, (void *)op);
    lua_pushcclosure(L, call, 2);
    lua_rawset(L, -3);
}

void mr_open_ops(lua_State *L, mr_machine *machine) {
    int mr = lua_gettop(L);
    mr_tensor_push_methods(L);
    for (const mr_op *op = mr_ops; op < mr_ops + mr_op_count; op++) {
        if (op->forms & MR_FORM_METHOD) set_function(L, machine, op, false);
        if (op->forms & MR_FORM_INPLACE) set_function(L, machine, op, true);
        if (!(op->forms & MR_FORM_FUNCTION)) continue;
        lua_pushvalue(L, mr);
        set_function(L, machine, op, false);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    mr_open_operators(L, machine);
    mr_open_linear(L, machine);
}
