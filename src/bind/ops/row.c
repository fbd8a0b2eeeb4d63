/* Running a row of the operation table for a script. */
#include "bind/ops/row.h"
#include "bind/internal.h"
#include "ops/ids.h"

/* Finding the name that the script called costs more than most operations, so only an error does it. */
void mr_no_more_arguments(lua_State *L, const mr_op *op, int given, int most) {
    bool method;
    if (given <= most) return;
    mr_misuse(L, "%s: too many arguments: expected %s", mr_called_name(L, &method), op->usage);
}

int mr_push_result(lua_State *L, const mr_caller *caller, const mr_op *op, mr_call *call,
                   int out_arg) {
    bool is_new;
    call->allow_tf32 = mr_module_of(L)->allow_tf32;
    if (out_arg) {
        mr_tensor *out;
        mr_raise(L, mr_call_run(caller, op, call, &out, &is_new));
        mr_tensor_release(out); /* the box on the stack has its own reference */
        lua_pushvalue(L, out_arg);
        return 1;
    }
    mr_tensor **slot = mr_new_tensor(L);
    mr_raise(L, mr_call_run(caller, op, call, slot, &is_new));
    mr_made_tensor(L, *slot);
    return 1;
}

int mr_push_results(lua_State *L, const mr_caller *caller, const mr_op *op, const mr_call *call) {
    mr_call both = *call;
    bool is_new;
    mr_tensor **first = mr_new_tensor(L), **second = mr_new_tensor(L);
    both.out_second = second;
    mr_raise(L, mr_call_run(caller, op, &both, first, &is_new));
    mr_made_tensor(L, *first);
    mr_made_tensor(L, *second);
    return 2;
}

mr_status mr_generate(const mr_caller *caller, const mr_op *op, mr_tensor *out, bool in_place,
                      mr_stream *stream, const mr_scalar numbers[2]) {
    mr_call call = {.out = out, .in_place = in_place, .stream = stream};
    for (int i = 0; i < 2; i++) call.in[i].scalar = numbers[i];
    bool is_new;
    mr_tensor *same;
    MR_TRY(mr_call_run(caller, op, &call, &same, &is_new));
    mr_tensor_release(same);
    return MR_OK;
}

mr_status mr_fill_with(const mr_caller *caller, mr_tensor *out, mr_scalar value) {
    const mr_scalar numbers[2] = {value};
    return mr_generate(caller, &mr_ops[MR_OP_fill], out, true, NULL, numbers);
}

mr_value mr_check_value(lua_State *L, int arg) {
    if (lua_type(L, arg) == LUA_TUSERDATA) return (mr_value){.tensor = mr_check_tensor(L, arg)};
    if (!mr_is_scalar(L, arg)) mr_bad_argument(L, arg, "a tensor or a number");
    return (mr_value){.scalar = mr_check_scalar(L, arg)};
}
