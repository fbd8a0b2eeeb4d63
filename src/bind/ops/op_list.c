/* mr.ops: the rows of the operation table as data, for the reference page, for tests that go through all rows, and for
 * people. It is a copy: what a script does to it changes no operation.
 *
 * Derivatives are not part of the table. The embedded Lua module millrace.derivatives returns them by row name: a text
 * ("none", or how the gradients are made), or a table with that text as `formula`. Without the module, or for rows that
 * it does not have, the field is nil. */
#include "base/embedded.h"
#include "bind/field.h"
#include "bind/open.h"
#include "ops/ids.h"

static const char *result_text(int result) {
    static const char *const texts[] = {[MR_RESULT_SAME] = "same",
                                        [MR_RESULT_FLOAT] = "float",
                                        [MR_RESULT_BOOL] = "bool",
                                        [MR_RESULT_SUM] = "sum",
                                        [MR_RESULT_INDEX] = "i64"};
    return texts[result];
}

static void add_forms(lua_State *L, const mr_op *op) {
    lua_createtable(L, 0, 3);
    if (op->forms & MR_FORM_METHOD) mr_set_text(L, "method", op->name);
    if (op->forms & MR_FORM_INPLACE) mr_set_text(L, "in_place", op->name_in_place);
    if (op->forms & MR_FORM_FUNCTION) mr_set_text(L, "mr", op->name);
    lua_setfield(L, -2, "forms");
}

static void add_dtypes(lua_State *L, const mr_op *op) {
    static const uint8_t taken[] = {MR_TAKES_BOOL, MR_TAKES_INTEGER, MR_TAKES_FLOAT};
    int count = 0;
    lua_newtable(L);
    for (mr_dtype dtype = 0; dtype < MR_DTYPE_COUNT; dtype++) {
        if (!(op->dtypes & taken[mr_dtype_category(dtype)])) continue;
        lua_pushstring(L, mr_dtype_text(dtype));
        lua_rawseti(L, -2, ++count);
    }
    lua_setfield(L, -2, "dtypes");
}

static int load_derivatives(lua_State *L) {
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_getfield(L, -1, lua_tostring(L, 1));
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

/* Pushes the module's table, or nil. */
static void push_derivatives(lua_State *L) {
    if (mr_embedded_find("lua/millrace/derivatives.lua"))
        luaL_requiref(L, "millrace.derivatives", load_derivatives, false);
    else lua_pushnil(L);
}

/* For the row at the top; `derivatives` is what push_derivatives pushed. */
static void add_derivative(lua_State *L, const mr_op *op, int derivatives) {
    if (!lua_istable(L, derivatives)) return;
    lua_getfield(L, derivatives, op->name);
    if (lua_istable(L, -1)) {
        lua_getfield(L, -1, "formula");
        lua_remove(L, -2);
    }
    lua_setfield(L, -2, "derivative");
}

MR_FUNCTION(
    op_list_ops, "ops", "mr.ops() -> rows: table[]",
    "Returns the operation table as data. Each row is {name=, family=, inputs=, dtypes=, "
    "result=, flops=, formula=, derivative=, forms=, usage=, help=}. `inputs` is how many "
    "tensors or numbers it reads besides its output, `dtypes` lists the dtypes that it takes, "
    "and `flops` is the work for each item. `result` is the dtype of the output: \"same\" as "
    "the inputs (promoted), \"float\" (integers become f32), \"sum\" (integers become i64), "
    "\"bool\" or \"i64\". `formula` is the expression in C that the loops are made of, if it "
    "is one. `derivative` is \"none\" or says how gradients are made. `forms` has the names "
    "under which a script calls it: {method=, in_place=, mr=}.") {
    lua_settop(L, 0);
    push_derivatives(L);
    lua_createtable(L, MR_OP_COUNT - MR_OP_FIRST, 0);
    for (int id = MR_OP_FIRST; id < MR_OP_COUNT; id++) {
        const mr_op *op = &mr_ops[id];
        lua_createtable(L, 0, 11);
        mr_set_text(L, "name", op->name);
        mr_set_text(L, "family", op->family->name);
        mr_set_text(L, "result", result_text(op->result));
        mr_set_text(L, "formula", op->expression);
        mr_set_text(L, "usage", op->usage);
        mr_set_text(L, "help", op->help);
        lua_pushinteger(L, op->inputs);
        lua_setfield(L, -2, "inputs");
        lua_pushnumber(L, op->flops);
        lua_setfield(L, -2, "flops");
        add_forms(L, op);
        add_dtypes(L, op);
        add_derivative(L, op, 1);
        lua_rawseti(L, 2, id - MR_OP_FIRST + 1);
    }
    return 1;
}

static const mr_function *const functions[] = {&op_list_ops_function, NULL};

const mr_class mr_op_list_class = {
    .name = "mr", .text = "The operation table.", .functions = functions};

void mr_open_op_list(lua_State *L) {
    mr_table_open(L, &mr_op_list_class);
}
