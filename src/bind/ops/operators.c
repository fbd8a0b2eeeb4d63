/* Lua's operators on tensors. Each runs a row of the operation table. */
#include "bind/open.h"
#include "bind/record.h"
#include "bind/ops/row.h"
#include "ops/ids.h"

static int operate(lua_State *L, const mr_op *op) {
    mr_caller caller = mr_enter(L);
    mr_call call = {.in_count = op->inputs};
    for (int i = 0; i < op->inputs; i++) call.in[i] = mr_check_value(L, i + 1);
    return mr_push_result(L, &caller, op, &call, 0);
}

#define OPERATOR_LIST(X)                                                                           \
    X(add, "__add", "x + y -> tensor", "The same as x:add(y); one of the two may be a number.")    \
    X(sub, "__sub", "x - y -> tensor", "The same as x:sub(y); one of the two may be a number.")    \
    X(mul, "__mul", "x * y -> tensor",                                                             \
      "x:mul(y), element by element; one of them may be a number. Matrix products are mm and "     \
      "matmul.")                                                                                   \
    X(div, "__div", "x / y -> tensor", "The same as x:div(y); one of the two may be a number.")    \
    X(pow, "__pow", "x ^ y -> tensor", "The same as x:pow(y); one of the two may be a number.")    \
    X(remainder, "__mod", "x % y -> tensor",                                                       \
      "The same as x:remainder(y); one of the two may be a number.")                               \
    X(neg, "__unm", "-x -> tensor", "The same as x:neg().")                                        \
    X(floor_divide, "__idiv", "x // y -> tensor",                                                  \
      "The same as x:floor_divide(y); one of the two may be a number.")                            \
    X(bitwise_and, "__band", "x & y -> tensor",                                                    \
      "The same as x:bitwise_and(y), for integers and bools; one of the two may be a number.")     \
    X(bitwise_or, "__bor", "x | y -> tensor",                                                      \
      "The same as x:bitwise_or(y), for integers and bools; one of the two may be a number.")      \
    X(bitwise_xor, "__bxor", "x ~ y -> tensor",                                                    \
      "The same as x:bitwise_xor(y), for integers and bools; one of the two may be a number.")     \
    X(bitwise_not, "__bnot", "~x -> tensor",                                                       \
      "The same as x:bitwise_not(), for integers and bools.")                                      \
    X(bitwise_left_shift, "__shl", "x << y -> tensor",                                             \
      "The same as x:bitwise_left_shift(y); one of the two may be a number.")                      \
    X(bitwise_right_shift, "__shr", "x >> y -> tensor",                                            \
      "The same as x:bitwise_right_shift(y), which keeps the sign; one of the two may be a "       \
      "number.")

#define X(row, name, usage, text)                                                                  \
    MR_RECORDED_FUNCTION(operator_##row, name, usage, text) {                                      \
        return operate(L, &mr_ops[MR_OP_##row]);                                                   \
    }
OPERATOR_LIST(X)
#undef X

static const mr_function *const functions[] = {
#define X(row, name, usage, text) &operator_##row##_function,
    OPERATOR_LIST(X)
#undef X
        NULL};

const mr_class mr_operators_class = {
    "tensor",
    "Operators broadcast and promote dtypes as the methods do, by PyTorch's rule. The categories "
    "are, from high to low: float, integer, bool; inside a category, the wider type is taken. A "
    "tensor without dimensions changes the dtype only if its category is higher than that of all "
    "tensors with dimensions. A plain number does so only if its category is higher than that of "
    "all tensors. `==` compares identity. `<`, `<=`, `>` and `>=` do not exist, because Lua would "
    "convert their result to one boolean: use lt, le, gt, ge, eq, ne.",
    functions,
    NULL,
    &mr_kind_tensor,
};

void mr_open_operators(lua_State *L) {
    mr_class_extend(L, &mr_operators_class);
}
