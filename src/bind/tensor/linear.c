/* Linear algebra made of several rows of the operation table. */
#include "bind/open.h"
#include "bind/record.h"
#include "bind/ops/row.h"
#include "bind/tensor/tensor.h"
#include "ops/ids.h"

/* Runs a row on two values; pushes the new result, or works in place on the tensor at the top. */
static void run(lua_State *L, const mr_caller *caller, mr_op_id row, mr_value a, mr_value b,
                bool in_place) {
    mr_call call = {.in = {a, b}, .in_count = 2, .in_place = in_place};
    if (in_place) call.out = a.tensor;
    mr_push_result(L, caller, &mr_ops[row], &call, in_place ? lua_gettop(L) : 0);
    if (in_place) lua_pop(L, 1);
}

/* Makes all checks that could otherwise fail after the product was submitted; mm checks its own arguments. */
static void check_sum(lua_State *L, const mr_tensor *x, const mr_tensor *a, const mr_tensor *b,
                      bool scaled) {
    char own[128], wanted[128];
    mr_dtype dtype = mr_dtype_promote((mr_dtype)a->dtype, (mr_dtype)b->dtype);
    mr_promotion promotion = {0};
    mr_check_same_place(L, "addmm", x, a);
    mr_promotion_add(&promotion, MR_RANK_DIMS, dtype);
    mr_promotion_add(&promotion, x->ndim > 0 ? MR_RANK_DIMS : MR_RANK_NO_DIMS, (mr_dtype)x->dtype);
    if (mr_promotion_result(&promotion) != dtype)
        mr_misuse(L, "addmm: x is %s, but the product is %s; convert x with x:to(\"%s\")",
                  mr_dtype_text((mr_dtype)x->dtype), mr_dtype_text(dtype), mr_dtype_text(dtype));
    if (scaled && mr_dtype_category(dtype) < 2)
        mr_misuse(L, "addmm: alpha and beta need a product of floats, this one is %s",
                  mr_dtype_text(dtype));
    if (a->ndim != 2 || b->ndim != 2) return;
    int64_t shape[2] = {a->shape[0], b->shape[1]};
    bool fits = x->ndim <= 2;
    for (int d = 1; fits && d <= x->ndim; d++)
        fits = x->shape[x->ndim - d] == 1 || x->shape[x->ndim - d] == shape[2 - d];
    if (!fits)
        mr_misuse(L, "addmm: the product has shape %s, and x of shape %s does not broadcast to it",
                  mr_shape_text(2, shape, wanted, sizeof wanted),
                  mr_shape_text(x->ndim, x->shape, own, sizeof own));
}

MR_RECORDED_FUNCTION(
    linear_addmm, "addmm",
    "x:addmm(a: tensor, b: tensor [, {beta: number=1, alpha: number=1}]) -> tensor",
    "Returns beta * x + alpha * (a @ b): a matrix product to which x is added after "
    "broadcasting. With beta=0, the values of x are not used, so NaN in x has no effect.") {
    static const char *const known[] = {"beta", "alpha", NULL};
    mr_caller caller = mr_enter(L);
    mr_value x = {.tensor = mr_check_tensor(L, 1)}, a = {.tensor = mr_check_tensor(L, 2)},
             b = {.tensor = mr_check_tensor(L, 3)}, beta = {.scalar = {true, false, 1, 1}},
             alpha = beta;
    mr_option_slots options = mr_check_options(L, 4, known);
    beta.scalar.f = mr_option_number(L, &options, "beta", 1);
    alpha.scalar.f = mr_option_number(L, &options, "alpha", 1);
    beta.scalar.is_integer = beta.scalar.f == 1;
    alpha.scalar.is_integer = alpha.scalar.f == 1;
    check_sum(L, x.tensor, a.tensor, b.tensor, alpha.scalar.f != 1 || beta.scalar.f != 1);
    run(L, &caller, MR_OP_mm, a, b, false);
    int result = lua_gettop(L);
    mr_value product = {.tensor = mr_check_tensor(L, result)};
    if (alpha.scalar.f != 1) run(L, &caller, MR_OP_mul, product, alpha, true);
    if (beta.scalar.f == 0) return 1;
    if (beta.scalar.f != 1) {
        run(L, &caller, MR_OP_mul, x, beta, false);
        x.tensor = mr_check_tensor(L, result + 1);
        lua_pushvalue(L, result); /* to the top, for the result in place */
    }
    run(L, &caller, MR_OP_add, product, x, true);
    lua_pushvalue(L, result);
    return 1;
}

MR_RECORDED_FUNCTION(
    linear_outer, "outer", "x:outer(y: tensor) -> tensor",
    "Returns the outer product of two vectors: element i of x times element j of y at row "
    "i and column j.") {
    mr_caller caller = mr_enter_as(L, "outer");
    mr_tensor *x = mr_check_tensor(L, 1), *y = mr_check_tensor(L, 2);
    if (x->ndim != 1 || y->ndim != 1)
        mr_misuse(L, "outer: expected two vectors, got tensors with %d and %d dims", x->ndim,
                  y->ndim);
    mr_check_same_place(L, "outer", x, y);
    lua_settop(L, 2);
    mr_tensor **column = mr_new_tensor(L);
    mr_raise(L, mr_tensor_unsqueeze(&caller, x, 1, column));
    mr_value left = {.tensor = *column}, right = {.tensor = y};
    run(L, &caller, MR_OP_mul, left, right, false);
    mr_let_go(L, 3);
    return 1;
}

static const mr_function *const functions[] = {&linear_addmm_function, &linear_outer_function,
                                               NULL};

const mr_class mr_linear_class = {"tensor", "Linear algebra.", functions, NULL, &mr_kind_tensor};
const mr_class mr_linear_functions_class = {"mr", "Linear algebra.", functions, NULL, NULL};

void mr_open_linear(lua_State *L) {
    mr_class_extend(L, &mr_linear_class);
    mr_table_open(L, &mr_linear_functions_class);
}
