/* Rows whose elements an index chooses, in Lua: index_select, gather, embedding; scatter_, scatter_add_, index_add_. */
#include "bind/ops/indexing.h"
#include "bind/open.h"
#include "bind/record.h"
#include "bind/ops/row.h"
#include "bind/ops/shape.h"
#include "ops/ids.h"

#define UP_OP lua_upvalueindex(2)

static int push_picked(lua_State *L, const mr_caller *caller, const mr_op *op, mr_call *call,
                       int options_arg) {
    static const char *const known[] = {"out", NULL};
    mr_no_more_arguments(L, op, lua_gettop(L), options_arg);
    mr_option_slots options = mr_check_options(L, options_arg, known);
    call->out = mr_option_tensor(L, &options, "out");
    call->in_count = 2;
    call->dim_count = 1;
    return mr_push_result(L, caller, op, call, mr_option_at(L, &options, "out"));
}

/* x, dim, index [, options]; of embedding: index, table [, options]. */
int mr_call_pick(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = lua_touserdata(L, UP_OP);
    mr_call call = {0};
    if (op->id == MR_OP_embedding) {
        call.in[1].tensor = mr_check_tensor(L, 1);
        call.in[0].tensor = mr_check_tensor(L, 2);
        return push_picked(L, &caller, op, &call, 3);
    }
    call.in[0].tensor = mr_check_tensor(L, 1);
    call.dims[0] = mr_check_dim(L, op->name, 2, call.in[0].tensor->ndim);
    call.in[1].tensor = mr_check_tensor(L, 3);
    return push_picked(L, &caller, op, &call, 4);
}

/* x, dim, index, source: a tensor, or (scatter) a number. */
static int push_placed(lua_State *L, const mr_op *op, bool in_place) {
    mr_caller caller = mr_enter(L);
    mr_tensor *x = mr_check_tensor(L, 1);
    mr_call call = {.in_place = in_place, .in_count = 3, .dim_count = 1};
    call.out = in_place ? x : NULL;
    call.in[0].tensor = x;
    call.dims[0] = mr_check_dim(L, in_place ? op->name_in_place : op->name, 2, x->ndim);
    call.in[1].tensor = mr_check_tensor(L, 3);
    if (op->id == MR_OP_scatter) call.in[2] = mr_check_value(L, 4);
    else call.in[2].tensor = mr_check_tensor(L, 4);
    mr_no_more_arguments(L, op, lua_gettop(L), 4);
    return mr_push_result(L, &caller, op, &call, in_place);
}

int mr_call_place(lua_State *L) {
    return push_placed(L, lua_touserdata(L, UP_OP), true);
}

/* --- the same as new tensors -------------------------------------------------------------------- */

MR_RECORDED_FUNCTION(indexing_scatter, "scatter",
                     "x:scatter(dim: integer, index: tensor, source: tensor|number) -> tensor",
                     "Returns a copy of x in which scatter_ has set elements.") {
    return push_placed(L, &mr_ops[MR_OP_scatter], false);
}

MR_RECORDED_FUNCTION(indexing_scatter_add, "scatter_add",
                     "x:scatter_add(dim: integer, index: tensor, source: tensor) -> tensor",
                     "Returns a copy of x to which scatter_add_ has added.") {
    return push_placed(L, &mr_ops[MR_OP_scatter_add], false);
}

MR_RECORDED_FUNCTION(indexing_index_add, "index_add",
                     "x:index_add(dim: integer, index: tensor, source: tensor) -> tensor",
                     "Returns a copy of x to which index_add_ has added.") {
    return push_placed(L, &mr_ops[MR_OP_index_add], false);
}

static const mr_function *const functions[] = {
    &indexing_scatter_function, &indexing_scatter_add_function, &indexing_index_add_function, NULL};

const mr_class mr_indexing_class = {
    "tensor", "The forms of scatter_, scatter_add_ and index_add_ that return a new tensor.",
    functions, NULL, &mr_kind_tensor};
const mr_class mr_indexing_functions_class = {"mr", "", functions, NULL, NULL};

void mr_open_indexing(lua_State *L) {
    mr_class_extend(L, &mr_indexing_class);
    mr_table_open(L, &mr_indexing_functions_class);
}
