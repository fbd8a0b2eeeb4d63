/* Gradients, as scripts see them: properties and methods of tensors, and mr.autograd. Each calls the function of
 * lua/millrace/autograd.lua that does it; docs/autograd.md is the user's page. */
#include "bind/nn/gradient.h"

#include "bind/open.h"
#include "bind/record.h"
#include "bind/tensor_box.h"

static const char module_key; /* its address is the registry key of the Lua module's table */

/* Pushes the Lua module's table. Its first load starts the recording of calls. */
static void push_autograd(lua_State *L) {
    mr_push_embedded(L, &module_key, "millrace.autograd", mr_gradient_tools);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &mr_record_key) == LUA_TNIL) {
        lua_getfield(L, -2, "record");
        lua_rawsetp(L, LUA_REGISTRYINDEX, &mr_record_key);
    }
    lua_pop(L, 1);
}

int mr_call_autograd(lua_State *L, const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    push_autograd(L);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* --- tensors ------------------------------------------------------------------------------------ */

MR_FUNCTION(gradient_requires_grad, "requires_grad_",
            "t:requires_grad_([on: boolean=true]) -> tensor",
            "Requests gradients for this tensor: operations on it are recorded from now on, and "
            "backward() of a result adds to t.grad. Only tensors of "
            "floats can require gradients. Returns t.") {
    mr_check_tensor(L, 1);
    return mr_call_autograd(L, "requires_grad");
}

MR_FUNCTION(gradient_detach, "detach", "t:detach() -> tensor",
            "Returns a tensor with the same memory that takes no part in gradients.") {
    mr_check_tensor(L, 1);
    return mr_call_autograd(L, "detach");
}

MR_FUNCTION(gradient_retain_grad, "retain_grad", "t:retain_grad() -> tensor",
            "Requests t.grad although t is the result of an operation; otherwise only leaves get a "
            "gradient. Returns t.") {
    mr_check_tensor(L, 1);
    return mr_call_autograd(L, "retain_grad");
}

MR_FUNCTION(gradient_hook, "register_post_accumulate_grad_hook",
            "t:register_post_accumulate_grad_hook(fn: function) -> remove: function",
            "Calls fn(t) in each backward pass as soon as t.grad is complete, while the pass "
            "continues. t is a leaf that requires gradients; the stream of its gradient is "
            "current. A second argument of fn is a function: after at_end(g), g() is called when "
            "the pass has ended, also if it has failed. mr.autograd.grad calls no hooks. Returns a "
            "function that removes "
            "fn.") {
    mr_check_tensor(L, 1);
    return mr_call_autograd(L, "add_hook");
}

MR_FUNCTION(
    gradient_backward, "backward",
    "t:backward([gradient: tensor] [, {retain_graph: boolean=false}])",
    "Computes the gradients of t with respect to the leaves that it was computed from, and adds "
    "them to their `grad`. `gradient` is the gradient of t itself; for a tensor with one element "
    "it can be left out and is 1. Each operation's gradient is computed on the stream on which the "
    "operation ran. The work of this call begins after the earlier work of the current stream, and "
    "the current stream waits for all gradients. The graph is freed, unless retain_graph is set. "
    "The host does not wait.") {
    mr_check_tensor(L, 1);
    return mr_call_autograd(L, "backward");
}

static int get_requires_grad(lua_State *L) {
    mr_check_facts(L, 1, NULL);
    if (!mr_requires_grad(L, 1) && mr_is_tracked(L, 1)) return mr_call_autograd(L, "is_recorded");
    lua_pushboolean(L, mr_requires_grad(L, 1));
    return 1;
}

static int get_is_leaf(lua_State *L) {
    mr_check_facts(L, 1, NULL);
    return mr_call_autograd(L, "is_leaf");
}

static int get_grad(lua_State *L) {
    mr_check_facts(L, 1, NULL);
    mr_push_gradient_state(L, 1);
    if (!lua_isnil(L, -1)) lua_getfield(L, -1, "grad");
    return 1;
}

static int get_grad_fn(lua_State *L) {
    mr_check_facts(L, 1, NULL);
    return mr_call_autograd(L, "grad_fn");
}

void mr_gradient_require(lua_State *L, int index) {
    index = lua_absindex(L, index);
    push_autograd(L);
    lua_getfield(L, -1, "requires_grad");
    lua_pushvalue(L, index);
    lua_pushboolean(L, true);
    lua_call(L, 2, 0);
    lua_pop(L, 1);
}

void mr_push_gradient_text(lua_State *L, int index) {
    if (!mr_requires_grad(L, index)) {
        lua_pushliteral(L, "");
        return;
    }
    push_autograd(L);
    lua_getfield(L, -1, "grad_fn");
    lua_remove(L, -2);
    lua_pushvalue(L, index);
    lua_call(L, 1, 1);
    if (lua_isnil(L, -1)) lua_pushliteral(L, ", requires_grad");
    else lua_pushfstring(L, ", grad_fn %s", lua_tostring(L, -1));
    lua_remove(L, -2);
}

int mr_gradient_set_field(lua_State *L) {
    mr_check_facts(L, 1, NULL);
    return mr_call_autograd(L, "set_field");
}

static const mr_property properties[] = {
    {"requires_grad", "boolean",
     "Whether operations on it are recorded for gradients. Can be assigned.", get_requires_grad},
    {"is_leaf", "boolean", "Whether it is not the result of an operation that was recorded.",
     get_is_leaf},
    {"grad", "tensor or nil",
     "The gradient that backward() has added up. Can be assigned: a tensor of the same shape, "
     "dtype and device, or nil.",
     get_grad},
    {"grad_fn", "string or nil",
     "The operation that made it and its line, if that was recorded: \"mul at train.lua:7\".",
     get_grad_fn},
    {NULL, NULL, NULL, NULL}};

/* --- the mode ----------------------------------------------------------------------------------- */

/* Calls argument 1 with the other arguments, with recording on or off, and then restores the mode, also after an
 * error. */
static int call_with(lua_State *L, bool off) {
    mr_set_context(L);
    mr_module *module = mr_module_of(L);
    bool before = module->gradients_off;
    if (!lua_isfunction(L, 1)) {
        if (luaL_getmetafield(L, 1, "__call") == LUA_TNIL) mr_bad_argument(L, 1, "a function");
        lua_pop(L, 1);
    }
    module->gradients_off = off;
    int status = lua_pcall(L, lua_gettop(L) - 1, LUA_MULTRET, 0);
    module->gradients_off = before;
    if (status != LUA_OK) return lua_error(L);
    return lua_gettop(L);
}

MR_FUNCTION(gradient_no_grad, "no_grad", "mr.no_grad(fn: function, ...) -> ...",
            "Calls fn(...) without recording operations for gradients, and returns its results.") {
    return call_with(L, true);
}

MR_FUNCTION(gradient_enable_grad, "enable_grad", "mr.enable_grad(fn: function, ...) -> ...",
            "Calls fn(...) with recording on, inside mr.no_grad, too, and returns its results.") {
    return call_with(L, false);
}

MR_FUNCTION(gradient_is_enabled, "is_grad_enabled", "mr.is_grad_enabled() -> boolean",
            "Returns false inside mr.no_grad, otherwise true.") {
    lua_pushboolean(L, !mr_module_of(L)->gradients_off);
    return 1;
}

/* --- mr.autograd -------------------------------------------------------------------------------- */

MR_FUNCTION(
    gradient_grad, "grad",
    "mr.autograd.grad(outputs: tensor|tensor[], inputs: tensor|tensor[] [, gradients: "
    "tensor|tensor[]] [, {retain_graph: boolean=false, allow_unused: boolean=false, create_graph: "
    "boolean=false}]) -> tensor...",
    "Returns the gradients of the sum of the outputs with respect to each input, and leaves every "
    "`grad` as it is. An input that no output depends on is an error; with allow_unused=true its "
    "gradient is nil. With create_graph=true the gradients are recorded, so that they have "
    "gradients "
    "themselves, and the graph stays. Streams are as for t:backward().") {
    return mr_call_autograd(L, "grad");
}

MR_FUNCTION(
    gradient_function, "Function",
    "mr.autograd.Function({forward: function, backward: function, name: string}) -> f: function",
    "Makes an operation with a derivative of its own. f(...) calls forward(ctx, ...), whose "
    "operations are not recorded. backward(ctx, g1, ...) gets the gradient of each result and "
    "returns the gradient of each argument, or nil. ctx:save_for_backward(t, ...) keeps tensors, "
    "which ctx:saved_tensors() returns in backward; other fields of ctx are free. A result without "
    "a gradient has zeros in backward, or nil after ctx:set_materialize_grads(false).") {
    return mr_call_autograd(L, "Function");
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const methods[] = {
    &gradient_requires_grad_function, &gradient_detach_function,   &gradient_retain_grad_function,
    &gradient_hook_function,          &gradient_backward_function, NULL};
static const mr_function *const modes[] = {&gradient_no_grad_function,
                                           &gradient_enable_grad_function,
                                           &gradient_is_enabled_function, NULL};
static const mr_function *const functions[] = {&gradient_grad_function, &gradient_function_function,
                                               NULL};

const mr_class mr_gradient_class = {"tensor", "Gradients: docs/autograd.md explains them.", methods,
                                    properties, &mr_kind_tensor};
const mr_class mr_gradient_mode_class = {"mr", "Whether operations are recorded for gradients.",
                                         modes, NULL, NULL};
const mr_class mr_autograd_class = {
    "mr.autograd",
    "Gradients other than by t:backward(), and operations with derivatives of your own.", functions,
    NULL, NULL};

void mr_open_gradient(lua_State *L) {
    mr_class_extend(L, &mr_gradient_class);
    mr_table_open(L, &mr_gradient_mode_class);
    lua_createtable(L, 0, 2);
    mr_table_open(L, &mr_autograd_class);
    lua_setfield(L, -2, "autograd");
}
