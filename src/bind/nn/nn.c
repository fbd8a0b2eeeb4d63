/* mr.nn, mr.optim and mr.data: the Lua modules of these names do the work. This file has the functions that they cannot
 * write in Lua. */
#include "bind/missing.h"
#include "bind/nn/gradient.h"
#include "bind/internal.h"
#include "bind/lua_body.h"
#include "bind/open.h"
#include "ops/optimise.h"

/* misuse(text): raises at the script's line. */
static int misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

/* is_tensor(x) */
static int is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test(L, 1, &mr_kind_tensor) != NULL);
    return 1;
}

/* check(t): raises if it cannot be used */
static int check(lua_State *L) {
    mr_check_tensor(L, 1);
    return 0;
}

/* type_of(x) -> "a table", for messages */
static int type_of(lua_State *L) {
    lua_pushstring(L, mr_type_text(L, 1));
    return 1;
}

/* dtype_of(where) -> the dtype that an argument of t:to() asks for, or nil */
static int dtype_of(lua_State *L) {
    mr_dtype dtype;
    if (mr_test(L, 1, &mr_kind_tensor)) dtype = (mr_dtype)mr_check_tensor(L, 1)->dtype;
    else if (lua_type(L, 1) != LUA_TSTRING || !mr_dtype_find(lua_tostring(L, 1), &dtype)) return 0;
    lua_pushstring(L, mr_dtype_text(dtype));
    return 1;
}

/* step(row, flags, numbers, tensors): submits one command of the family OPTIMISE. The two lists come from the Lua
 * module. */
static int step(lua_State *L) {
    mr_caller caller = mr_enter(L);
    const mr_op *op = mr_op_find(luaL_checkstring(L, 1));
    mr_step step = {.flags = (uint32_t)luaL_checkinteger(L, 2)};
    for (int i = 0; i < MR_STEP_NUMBERS; i++) {
        lua_rawgeti(L, 3, i + 1);
        step.number[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
    int count;
    mr_tensor **tensors = mr_check_tensors(L, 4, "step", &count);
    step.parameters = (uint32_t)(count / op->inputs);
    mr_raise(L, mr_optimise(&caller, op, &step, tensors));
    return 0;
}

/* replace(t, other, gradient or nil): see lua/millrace/autograd.lua */
static int replace(lua_State *L) {
    return mr_call_autograd(L, "replace");
}

/* group_device(name, group or nil): see lua/millrace/dist.lua */
static int group_device(lua_State *L) {
    return mr_call_lua_named(L, &mr_lua_dist, "", "device_of");
}

static const luaL_Reg tools[] = {{"misuse", misuse},   {"is_tensor", is_tensor},
                                 {"type_of", type_of}, {"dtype_of", dtype_of},
                                 {"step", step},       {"check", check},
                                 {"replace", replace}, {"group_device", group_device},
                                 {NULL, NULL}};

const mr_lua_module mr_lua_nn = {"millrace.nn", tools};
const mr_lua_module mr_lua_optim = {"millrace.optim", tools};
const mr_lua_module mr_lua_data = {"millrace.data", tools};

/* mr.nn.Module(): the table stands before the arguments. */
static int call_module(lua_State *L) {
    lua_remove(L, 1);
    return mr_call_lua_named(L, &mr_lua_nn, "", "plain_module");
}

/* Adds the table of a class to the one at the top, as a field. */
static void open_table(lua_State *L, const mr_class *class, const char *field) {
    lua_newtable(L);
    mr_table_open(L, class);
    mr_refuse_missing(L, class->name);
    lua_setfield(L, -2, field);
}

/* The table in field `field` of the one at the top, which open_table added. */
static void make_callable(lua_State *L, const char *field, lua_CFunction function) {
    lua_getfield(L, -1, field);
    lua_getmetatable(L, -1);
    mr_push_module(L);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, "__call");
    lua_pop(L, 2);
}

void mr_open_nn(lua_State *L) {
    lua_newtable(L);
    mr_table_open(L, &mr_optim_class);
    open_table(L, &mr_optimizer_class, "Optimizer");
    lua_newtable(L);
    mr_table_open(L, &mr_lr_scheduler_class);
    open_table(L, &mr_scheduler_class, "Scheduler");
    mr_refuse_missing(L, mr_lr_scheduler_class.name);
    lua_setfield(L, -2, "lr_scheduler");
    mr_refuse_missing(L, mr_optim_class.name);
    lua_setfield(L, -2, "optim");
    open_table(L, &mr_data_class, "data");
    lua_newtable(L);
    mr_table_open(L, &mr_nn_class);
    open_table(L, &mr_nn_module_class, "Module");
    make_callable(L, "Module", call_module);
    open_table(L, &mr_nn_init_class, "init");
    open_table(L, &mr_nn_utils_class, "utils");
    open_table(L, &mr_nn_parallel_class, "parallel");
    mr_refuse_missing(L, mr_nn_class.name);
    lua_setfield(L, -2, "nn");
}
