/* Linear algebra made of several rows of the operation table. */
#include "bind/tensor.h"

/* Runs a row on two values; pushes the new result, or works in place on the tensor at the top. */
static void run(lua_State *L, mr_machine *machine, const char *row, mr_value a, mr_value b,
                bool in_place) {
    mr_call call = {.in = {a, b}, .in_count = 2, .in_place = in_place};
    if (in_place) call.out = a.tensor;
    mr_push_result(L, machine, mr_op_named(row), &call, in_place ? lua_gettop(L) : 0);
    if (in_place) lua_pop(L, 1);
}

/* All that could go wrong after the product has been submitted; its own arguments mm checks itself. */
static void check_sum(lua_State *L, const mr_tensor *x, const mr_tensor *a, const mr_tensor *b,
                      bool scaled) {
    char own[128], wanted[128];
    mr_dtype dtype = mr_dtype_promote((mr_dtype)a->dtype, (mr_dtype)b->dtype);
    mr_check_same_place(L, "addmm", x, a);
    if (mr_dtype_promote(dtype, (mr_dtype)x->dtype) != dtype)
        mr_misuse(L, "addmm: the product is %s and cannot hold x, which is %s",
                  mr_dtype_text(dtype), mr_dtype_text((mr_dtype)x->dtype));
    if (scaled && mr_dtype_category(dtype) < 2)
        mr_misuse(L, "addmm: alpha and beta are for products of floats, this one is %s",
                  mr_dtype_text(dtype));
    if (a->ndim != 2 || b->ndim != 2) return;
    int64_t shape[2] = {a->shape[0], b->shape[1]};
    bool fits = x->ndim <= 2;
    for (int d = 1; fits && d <= x->ndim; d++)
        fits = x->shape[x->ndim - d] == 1 || x->shape[x->ndim - d] == shape[2 - d];
    if (!fits)
        mr_misuse(L, "addmm: the product is %s, to which %s does not broadcast",
                  mr_shape_text(2, shape, wanted, sizeof wanted),
                  mr_shape_text(x->ndim, x->shape, own, sizeof own));
}

MR_FUNCTION(
    linear_addmm, "addmm",
    "x:addmm(a: tensor, b: tensor [, {beta: number=1, alpha: number=1}]) -> tensor",
    "beta * x + alpha * (a @ b): a matrix product to which x, broadcast, is added. With beta=0 the "
    "values of x do not count, not even NaN.") {
    static const char *const known[] = {"beta", "alpha", NULL};
    mr_machine *machine = mr_enter(L);
    mr_value x = {.tensor = mr_check_tensor(L, 1)}, a = {.tensor = mr_check_tensor(L, 2)},
             b = {.tensor = mr_check_tensor(L, 3)}, beta = {.scalar = {true, 1, 1}}, alpha = beta;
    if (mr_options_check(L, 4, known)) {
        beta.scalar.f = mr_option_number(L, 4, "beta", 1);
        alpha.scalar.f = mr_option_number(L, 4, "alpha", 1);
        beta.scalar.is_integer = beta.scalar.f == 1;
        alpha.scalar.is_integer = alpha.scalar.f == 1;
    }
    lua_settop(L, 3);
    check_sum(L, x.tensor, a.tensor, b.tensor, alpha.scalar.f != 1 || beta.scalar.f != 1);
    run(L, machine, "mm", a, b, false);
    mr_value product = {.tensor = mr_check_tensor(L, 4)};
    if (alpha.scalar.f != 1) run(L, machine, "mul", product, alpha, true);
    if (beta.scalar.f == 0) return 1;
    if (beta.scalar.f != 1) {
        run(L, machine, "mul", x, beta, false);
        x.tensor = mr_check_tensor(L, 5);
        lua_pushvalue(L, 4); /* to the top, for the result in place */
    }
    run(L, machine, "add", product, x, true);
    lua_settop(L, 4);
    return 1;
}

static const mr_function *const functions[] = {&linear_addmm_function, NULL};

const mr_class mr_linear_class = {"tensor", "Linear algebra.", functions, mr_no_properties};
const mr_class mr_linear_functions_class = {"mr", "Linear algebra.", functions, NULL};

void mr_open_linear(lua_State *L, mr_machine *machine) {
    mr_tensor_extend(L, machine, &mr_linear_class);
    mr_table_open(L, machine, &mr_linear_functions_class);
}
