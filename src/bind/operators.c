/* Lua's operators on tensors: rows of the operation table under other names. */
#include "bind/tensor.h"

static int operate(lua_State *L, const mr_op *op) {
    mr_machine *machine = mr_enter(L);
    mr_call call = {.in_count = op->inputs};
    for (int i = 0; i < op->inputs; i++) call.in[i] = mr_check_value(L, i + 1);
    return mr_push_result(L, machine, op, &call, 0);
}

#define OPERATOR_LIST(X)                                                                           \
    X(add, "__add", "x + y -> tensor", "x:add(y); one of them may be a number.")                   \
    X(sub, "__sub", "x - y -> tensor", "x:sub(y); one of them may be a number.")                   \
    X(mul, "__mul", "x * y -> tensor",                                                             \
      "x:mul(y), element by element; one of them may be a number. Matrix products are mm and "     \
      "matmul.")                                                                                   \
    X(div, "__div", "x / y -> tensor", "x:div(y); one of them may be a number.")                   \
    X(pow, "__pow", "x ^ y -> tensor", "x:pow(y); one of them may be a number.")                   \
    X(remainder, "__mod", "x % y -> tensor", "x:remainder(y); one of them may be a number.")       \
    X(neg, "__unm", "-x -> tensor", "x:neg().")

#define X(row, name, usage, text)                                                                  \
    MR_FUNCTION(operator_##row, name, usage, text) {                                               \
        static const mr_op *op;                                                                    \
        if (!op) op = mr_op_named(#row);                                                           \
        return operate(L, op);                                                                     \
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
    "Operators broadcast and promote dtypes as the methods do. `==` compares identity; `<` and the "
    "like "
    "do not exist, as Lua makes one boolean of their result: use lt, le, gt, ge, eq, ne.",
    functions,
    mr_no_properties,
};

void mr_open_operators(lua_State *L, mr_machine *machine) {
    mr_tensor_extend(L, machine, &mr_operators_class);
}
