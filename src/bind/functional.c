/* Functions of networks that are made of several rows: the Lua module millrace.functional carries them out, here are their
 * usage lines. */
#include "bind/open.h"
#include "bind/tensor.h"

static const char module_key; /* its address is the registry key of the Lua module's table */

/* --- tools of the Lua module -------------------------------------------------------------------- */

static int tool_misuse(lua_State *L) {
    return mr_misuse(L, "%s", luaL_checkstring(L, 1));
}

static int tool_is_tensor(lua_State *L) {
    lua_pushboolean(L, mr_test_tensor(L, 1) != NULL);
    return 1;
}

/* Raises if the tensor was freed. */
static int tool_check(lua_State *L) {
    mr_check_tensor(L, 1);
    return 0;
}

/* may_read(name, t): raises if a capture lets nobody wait for the values of t, as the function of that name does. */
static int tool_may_read(lua_State *L) {
    mr_caller caller = mr_enter_as(L, luaL_checkstring(L, 1));
    mr_raise(L, mr_may_read(&caller, mr_check_tensor(L, 2)));
    return 0;
}

static const luaL_Reg tools[] = {{"misuse", tool_misuse},
                                 {"is_tensor", tool_is_tensor},
                                 {"check", tool_check},
                                 {"may_read", tool_may_read},
                                 {NULL, NULL}};

int mr_functional_call(lua_State *L, const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    mr_push_embedded(L, &module_key, "millrace.functional", tools);
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

int mr_functional_get_index(lua_State *L) {
    return mr_functional_call(L, "get_index");
}

int mr_functional_set_index(lua_State *L) {
    return mr_functional_call(L, "set_index");
}

/* --- functions ---------------------------------------------------------------------------------- */

MR_FUNCTION(functional_linear, "linear", "x:linear(w: tensor [, bias: tensor]) -> tensor",
            "x times the transpose of w (outputs, inputs), plus the bias. The last dim of x holds "
            "the inputs; all other dims are kept.") {
    return mr_functional_call(L, "linear");
}

MR_FUNCTION(functional_conv1d, "conv1d",
            "x:conv1d(w: tensor [, bias: tensor] [, {bias: tensor, stride: integer=1, padding: "
            "integer|string=0, dilation: integer=1, groups: integer=1}]) -> tensor",
            "The convolution of sequences (sequences, channels, elements) with weights (outputs, "
            "channels / groups, elements): conv2d with one row.") {
    return mr_functional_call(L, "conv1d");
}

MR_FUNCTION(functional_dropout, "dropout",
            "x:dropout([p: number=0.5 [, training: boolean=true]]) -> tensor",
            "Each element becomes 0 with probability p; what is kept is divided by 1 - p. Without "
            "training it returns x. {p=, training=} can be given instead.") {
    return mr_functional_call(L, "dropout");
}

MR_FUNCTION(functional_layer_norm, "layer_norm",
            "x:layer_norm(shape: integer|integer[] [, {weight: tensor, bias: tensor, eps: "
            "number=1e-5}]) -> tensor",
            "Subtracts the mean over the last dims, whose sizes `shape` lists, divides by the root "
            "of their variance plus eps, and multiplies by the weight and adds the bias.") {
    return mr_functional_call(L, "layer_norm");
}

MR_FUNCTION(functional_batch_norm, "batch_norm",
            "x:batch_norm(running_mean: tensor|nil, running_var: tensor|nil [, {weight: tensor, "
            "bias: tensor, training: boolean=false, momentum: number=0.1, eps: number=1e-5}]) -> "
            "tensor",
            "Normalizes each channel, which is the second dim. With training it takes mean and "
            "variance of x, and moves the running ones towards them by the momentum (the variance "
            "as that of a sample); otherwise it takes the running ones.") {
    return mr_functional_call(L, "batch_norm");
}

MR_FUNCTION(functional_cross_entropy, "cross_entropy",
            "x:cross_entropy(target: tensor [, {weight: tensor, ignore_index: integer=-100, "
            "reduction: string=\"mean\", label_smoothing: number=0}]) -> tensor",
            "The cross entropy of scores x (items, classes, ...) and targets, which are classes "
            "and count from 1: nll_loss of log_softmax. Targets of floats, of the shape of x, are "
            "the probabilities of the classes. With label_smoothing, that part of each "
            "target is spread over all classes.") {
    return mr_functional_call(L, "cross_entropy");
}

MR_FUNCTION(functional_mse_loss, "mse_loss",
            "x:mse_loss(target: tensor [, {reduction: string=\"mean\"}]) -> tensor",
            "The squares of the differences: their mean, their sum, or (\"none\") all of them.") {
    return mr_functional_call(L, "mse_loss");
}

MR_FUNCTION(functional_l1_loss, "l1_loss",
            "x:l1_loss(target: tensor [, {reduction: string=\"mean\"}]) -> tensor",
            "The absolute differences: their mean, their sum, or (\"none\") all of them.") {
    return mr_functional_call(L, "l1_loss");
}

MR_FUNCTION(functional_binary_cross_entropy, "binary_cross_entropy",
            "x:binary_cross_entropy(target: tensor [, {reduction: string=\"mean\"}]) -> tensor",
            "The cross entropy of two classes: x has the probabilities of the target 1, and the "
            "targets are floats from 0 to 1. Logarithms count as at least -100.") {
    return mr_functional_call(L, "binary_cross_entropy");
}

MR_FUNCTION(functional_conv_transpose2d, "conv_transpose2d",
            "x:conv_transpose2d(w: tensor [, bias: tensor] [, {bias: tensor, stride: "
            "integer|table=1, padding: integer|table=0, output_padding: integer|table=0, dilation: "
            "integer|table=1, groups: integer=1}]) -> tensor",
            "The transposed convolution of images (images, inputs, rows, columns) with weights "
            "(inputs, outputs / groups, rows, columns): the gradient of conv2d with the same "
            "options.") {
    return mr_functional_call(L, "conv_transpose2d");
}

MR_FUNCTION(functional_interpolate, "interpolate",
            "x:interpolate({size: integer|table, scale_factor: number|table, mode: "
            "string=\"nearest\", align_corners: boolean=false}) -> tensor",
            "Another size of the dims behind items and channels, by size= or scale_factor=. The "
            "modes are \"nearest\", \"linear\" for sequences and \"bilinear\" for images.") {
    return mr_functional_call(L, "interpolate");
}

MR_FUNCTION(functional_attention, "scaled_dot_product_attention",
            "q:scaled_dot_product_attention(k: tensor, v: tensor [, {attn_mask: tensor, dropout_p: "
            "number=0, is_causal: boolean=false, scale: number}]) -> tensor",
            "softmax(q @ k^T * scale + mask) @ v. A mask of bools says which keys a query sees; "
            "one of floats is added. is_causal lets query i see the keys up to i. The scale is 1 / "
            "sqrt(the last size of q) by default.") {
    return mr_functional_call(L, "scaled_dot_product_attention");
}

static const mr_function *const functions[] = {&functional_linear_function,
                                               &functional_conv1d_function,
                                               &functional_dropout_function,
                                               &functional_layer_norm_function,
                                               &functional_batch_norm_function,
                                               &functional_cross_entropy_function,
                                               &functional_mse_loss_function,
                                               &functional_l1_loss_function,
                                               &functional_binary_cross_entropy_function,
                                               &functional_conv_transpose2d_function,
                                               &functional_interpolate_function,
                                               &functional_attention_function,
                                               NULL};

const mr_class mr_functional_class = {"tensor", "Networks.", functions, NULL, &mr_kind_tensor};
const mr_class mr_functional_functions_class = {"mr", "Networks.", functions, NULL, NULL};

void mr_open_functional(lua_State *L) {
    mr_class_extend(L, &mr_functional_class);
    mr_table_open(L, &mr_functional_functions_class);
}
