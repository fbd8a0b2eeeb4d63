/* mr.nn, mr.optim and mr.data: the Lua modules of these names do the work. Here are their help texts, and what they cannot
 * ask the machine from Lua. */
#include <string.h>

#include "bind/foreign.h"
#include "bind/gradient.h"
#include "bind/internal.h"
#include "bind/open.h"
#include "bind/placement.h"
#include "ops/optimise.h"

/* The addresses are registry keys: of what the Lua modules give. */
static const char nn_key, optim_key, data_key;

/* --- tools of the Lua modules ------------------------------------------------------------------- */

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

/* step(row, flags, numbers, tensors): one command of the family OPTIMISE. The Lua module has made the two lists. */
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

static const luaL_Reg tools[] = {
    {"misuse", misuse}, {"is_tensor", is_tensor}, {"type_of", type_of}, {"dtype_of", dtype_of},
    {"step", step},     {"check", check},         {"replace", replace}, {NULL, NULL}};

/* Calls the function `name` of the table at the top of the stack, or of the table `part` in it, with the arguments of the
 * running one. */
static int call_in(lua_State *L, const char *part, const char *name) {
    if (part) {
        lua_getfield(L, -1, part);
        lua_remove(L, -2);
    }
    lua_getfield(L, -1, name);
    lua_remove(L, -2);
    lua_insert(L, 1);
    lua_call(L, lua_gettop(L) - 1, LUA_MULTRET);
    return lua_gettop(L);
}

/* The same with what a Lua module gives. */
static int call(lua_State *L, const void *key, const char *module, const char *part,
                const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    mr_push_embedded(L, key, module, tools);
    return call_in(L, part, name);
}

#define NN(id, name, usage, text)                                                                  \
    MR_FUNCTION(nn_##id, name, usage, text) {                                                      \
        return call(L, &nn_key, "millrace.nn", NULL, name);                                        \
    }
#define MODULE(id, name, usage, text)                                                              \
    MR_FUNCTION(module_##id, name, usage, text) {                                                  \
        return call(L, &nn_key, "millrace.nn", "Module", name);                                    \
    }
#define INIT(id, name, usage, text)                                                                \
    MR_FUNCTION(init_##id, name, usage, text) {                                                    \
        return call(L, &nn_key, "millrace.nn", "init", name);                                      \
    }

/* --- mr.nn.Module ------------------------------------------------------------------------------- */

/* mr.nn.Module(): the table stands before the arguments. */
static int call_module(lua_State *L) {
    if (lua_gettop(L) > 1)
        return mr_misuse(L, "Module: takes no arguments: a module with an `init` is one of a class "
                            "that mr.nn.Module.class(name) makes");
    lua_settop(L, 0);
    return call(L, &nn_key, "millrace.nn", NULL, "plain_module");
}

MODULE(class, "class", "mr.nn.Module.class(name: string [, parent: table]) -> class: table",
       "Makes a class of modules. Give it a method `init`, which gets the arguments of class(...) "
       "and assigns parameters and other modules to fields of self, and a method `forward`, which "
       "calling a module calls. mr.nn.Module() makes an empty module without a class: assign its "
       "parts and `forward` to its fields.")
MODULE(parameters, "parameters", "m:parameters() -> list: tensor[]",
       "Returns the parameters of the module and of all modules in it, each once, in the order of "
       "their assignment.")
MODULE(named_parameters, "named_parameters", "m:named_parameters() -> iterator: function",
       "For loops: for name, p in m:named_parameters() do. Names have dots: \"fc1.weight\".")
MODULE(buffers, "buffers", "m:buffers() -> list: tensor[]",
       "Returns the buffers, which are saved with the parameters and not trained.")
MODULE(named_buffers, "named_buffers", "m:named_buffers() -> iterator: function",
       "As named_parameters, for buffers.")
MODULE(modules, "modules", "m:modules() -> list: table[]",
       "Returns the module and all modules in it, parents first.")
MODULE(named_modules, "named_modules", "m:named_modules() -> iterator: function",
       "As named_parameters, for modules; the name of m itself is empty.")
MODULE(children, "children", "m:children() -> list: table[]",
       "Returns the modules that are fields of m.")
MODULE(named_children, "named_children", "m:named_children() -> iterator: function",
       "As named_parameters, for the modules that are fields of m.")
MODULE(apply, "apply", "m:apply(fn: function) -> m: table",
       "Calls fn(module) for all modules in m, then for m itself. Returns m.")
MODULE(train, "train", "m:train([on: boolean=true]) -> m: table",
       "Says that the module is being trained, which Dropout and BatchNorm2d ask: sets `training` "
       "of the module and of all in it. Returns m.")
MODULE(eval, "eval", "m:eval() -> m: table", "The same as m:train(false).")
MODULE(to, "to", "m:to(where: device|integer|string|tensor...) -> m: table",
       "Moves the parameters and buffers as t:to() does; a dtype is for those of floats. The "
       "parameters stay the same objects, so an optimiser that has them goes on with them. Returns "
       "m.")
MODULE(cpu, "cpu", "m:cpu() -> m: table", "The same as m:to(\"cpu\").")
MODULE(cuda, "cuda", "m:cuda([device: device|integer=current]) -> m: table",
       "Moves the parameters and buffers to a device. Returns m.")
MODULE(state_dict, "state_dict", "m:state_dict() -> state: table",
       "Returns the parameters and buffers by name, as tensors with the same memory: "
       "mr.save(\"m.safetensors\", m:state_dict()). The names are PyTorch's, so the modules of a "
       "Sequential or a list count from 0 in them: the weight of m[1] is \"0.weight\".")
MODULE(
    load_state_dict, "load_state_dict",
    "m:load_state_dict(state: table [, {strict: boolean=true}]) -> missing: string[], unexpected: "
    "string[]",
    "Copies the values of these tensors into the parameters and buffers. All names and shapes are "
    "checked first; with strict=false, names that only one side has are returned instead. A state "
    "in which the modules of all containers count from 1 is taken, too, if all names fit.")
MODULE(requires_grad, "requires_grad_", "m:requires_grad_([on: boolean=true]) -> m: table",
       "Calls requires_grad_ of all parameters. Returns m.")
MODULE(zero_grad, "zero_grad", "m:zero_grad([set_to_none: boolean=true])",
       "Drops the gradients of all parameters, or with false fills them with zeros.")
MODULE(register_buffer, "register_buffer",
       "m:register_buffer(name: string, t: tensor [, persistent: boolean=true])",
       "Makes the tensor a buffer of the module: it moves with it, and no optimiser changes it. "
       "It is in the state_dict of the module if it is persistent.")

/* --- mr.nn -------------------------------------------------------------------------------------- */

NN(parameter, "Parameter",
   "mr.nn.Parameter(t: tensor [, requires_grad: boolean=true]) -> t: tensor",
   "Makes t a parameter: it requires gradients, and a module that it is assigned to registers it.")
NN(linear, "Linear",
   "mr.nn.Linear(inputs: integer, outputs: integer [, {bias: boolean=true, dtype: string, device: "
   "device}]) -> module: table",
   "x times the transposed weight, plus the bias.")
NN(conv2d, "Conv2d",
   "mr.nn.Conv2d(inputs: integer, outputs: integer, kernel_size: integer|table [, {stride: "
   "integer|table=1, "
   "padding: integer|table|string=0, dilation: integer|table=1, groups: integer=1, bias: "
   "boolean=true, dtype: string, device: device}]) -> module: table",
   "The convolution of images (images, channels, rows, columns). Sizes are a number or {rows, "
   "columns}. With the padding \"same\" the result has as many rows and columns as the input; "
   "\"valid\" is none.")
NN(conv_transpose2d, "ConvTranspose2d",
   "mr.nn.ConvTranspose2d(inputs: integer, outputs: integer, kernel_size: integer|table [, "
   "{stride: integer|table=1, padding: integer|table=0, output_padding: integer|table=0, dilation: "
   "integer|table=1, groups: integer=1, bias: boolean=true, dtype: string, device: device}]) -> "
   "module: table",
   "The transposed convolution of images: x:conv_transpose2d.")
NN(upsample, "Upsample",
   "mr.nn.Upsample({size: integer|table, scale_factor: number|table, mode: string=\"nearest\", "
   "align_corners: boolean=false}) -> module: table",
   "x:interpolate with these options.")
NN(lstm, "LSTM",
   "mr.nn.LSTM(inputs: integer, size: integer [, {num_layers: integer=1, bias: boolean=true, "
   "batch_first: boolean=false, dropout: number=0, bidirectional: boolean=false, dtype: string, "
   "device: device}]) -> module: table",
   "lstm(x, {h, c}) returns the results of all steps and the list {h, c} of the last states. x has "
   "the shape (steps, sequences, inputs), or with batch_first (sequences, steps, inputs); a state "
   "(layers * directions, sequences, size). Without states, they are 0.")
NN(gru, "GRU",
   "mr.nn.GRU(inputs: integer, size: integer [, {num_layers: integer=1, bias: boolean=true, "
   "batch_first: boolean=false, dropout: number=0, bidirectional: boolean=false, dtype: string, "
   "device: device}]) -> module: table",
   "gru(x, h) returns the results of all steps and the last state. Shapes are those of LSTM.")
NN(conv1d, "Conv1d",
   "mr.nn.Conv1d(inputs: integer, outputs: integer, kernel_size: integer [, {stride: integer=1, "
   "padding: integer|string=0, dilation: integer=1, groups: integer=1, bias: boolean=true, dtype: "
   "string, device: device}]) -> module: table",
   "The convolution of sequences (sequences, channels, elements). The padding can be a word as of "
   "Conv2d.")
NN(batch_norm_1d, "BatchNorm1d",
   "mr.nn.BatchNorm1d(channels: integer [, {eps: number=1e-5, momentum: number=0.1, affine: "
   "boolean=true, track_running_stats: boolean=true, dtype: string, device: device}]) -> module: "
   "table",
   "As BatchNorm2d, for rows (rows, channels) or sequences (sequences, channels, elements).")
NN(batch_norm, "BatchNorm2d",
   "mr.nn.BatchNorm2d(channels: integer [, {eps: number=1e-5, momentum: number=0.1, affine: "
   "boolean=true, "
   "track_running_stats: boolean=true, dtype: string, device: device}]) -> module: table",
   "Each channel of images less its mean, divided by its standard deviation: those of the batch "
   "while the "
   "module is trained, and running ones otherwise.")
NN(embedding, "Embedding",
   "mr.nn.Embedding(count: integer, size: integer [, {dtype: string, device: device}]) -> module: "
   "table",
   "A table of vectors; the input is a tensor of indices, which count from 1.")
NN(layer_norm, "LayerNorm",
   "mr.nn.LayerNorm(shape: integer|integer[] [, {eps: number=1e-5, elementwise_affine: "
   "boolean=true, dtype: "
   "string, device: device}]) -> module: table",
   "The input less its mean over the last dims, divided by its standard deviation.")
NN(relu, "ReLU", "mr.nn.ReLU() -> module: table", "x:relu().")
NN(gelu, "GELU", "mr.nn.GELU() -> module: table", "x:gelu().")
NN(silu, "SiLU", "mr.nn.SiLU() -> module: table", "x:silu().")
NN(softplus, "Softplus", "mr.nn.Softplus() -> module: table", "x:softplus().")
NN(leaky_relu, "LeakyReLU", "mr.nn.LeakyReLU([negative_slope: number=0.01]) -> module: table",
   "x:leaky_relu(negative_slope).")
NN(elu, "ELU", "mr.nn.ELU([alpha: number=1]) -> module: table", "x:elu(alpha).")
NN(tanh, "Tanh", "mr.nn.Tanh() -> module: table", "x:tanh().")
NN(sigmoid, "Sigmoid", "mr.nn.Sigmoid() -> module: table", "x:sigmoid().")
NN(softmax, "Softmax", "mr.nn.Softmax(dim: integer) -> module: table", "x:softmax(dim).")
NN(log_softmax, "LogSoftmax", "mr.nn.LogSoftmax(dim: integer) -> module: table",
   "x:log_softmax(dim).")
NN(dropout, "Dropout", "mr.nn.Dropout([p: number=0.5]) -> module: table",
   "Sets elements to 0 with probability p while the module is trained, and divides the others by 1 "
   "- p.")
NN(identity, "Identity", "mr.nn.Identity() -> module: table", "Returns its input.")
NN(flatten, "Flatten", "mr.nn.Flatten([first: integer=2 [, last: integer=-1]]) -> module: table",
   "x:flatten(first, last): by default all dims but that of the batch.")
NN(max_pool, "MaxPool2d",
   "mr.nn.MaxPool2d(kernel_size: integer|table [, {stride: integer|table=kernel_size, padding: "
   "integer|table=0, "
   "dilation: integer|table=1, ceil_mode: boolean=false}]) -> module: table",
   "The greatest element of each window.")
NN(avg_pool, "AvgPool2d",
   "mr.nn.AvgPool2d(kernel_size: integer|table [, {stride: integer|table=kernel_size, padding: "
   "integer|table=0, "
   "ceil_mode: boolean=false, count_include_pad: boolean=true}]) -> module: table",
   "The mean of each window.")
NN(adaptive, "AdaptiveAvgPool2d", "mr.nn.AdaptiveAvgPool2d(size: integer|table) -> module: table",
   "The means of as many windows as the result shall have rows and columns.")
NN(sequential, "Sequential", "mr.nn.Sequential(module: table...) -> module: table",
   "Calls its modules one after the other. They are named from \"1\" on: m:get(1) is the first.")
NN(module_list, "ModuleList", "mr.nn.ModuleList([modules: table[]]) -> module: table",
   "A list of modules. It is registered where it is assigned, unlike a table of modules. l[i], "
   "l:get(i), #l, l:append(module); it has no forward.")
NN(l1, "L1Loss", "mr.nn.L1Loss([{reduction: string=\"mean\"}]) -> module: table",
   "The mean of the absolute differences: loss(x, target).")
NN(huber, "HuberLoss",
   "mr.nn.HuberLoss([{delta: number=1, reduction: string=\"mean\"}]) -> module: table",
   "Half of the square of a difference up to delta, and delta times the rest of it from there on.")
NN(smooth_l1, "SmoothL1Loss",
   "mr.nn.SmoothL1Loss([{beta: number=1, reduction: string=\"mean\"}]) -> module: table",
   "HuberLoss with delta=beta, divided by beta.")
NN(bce, "BCELoss", "mr.nn.BCELoss([{weight: tensor, reduction: string=\"mean\"}]) -> module: table",
   "x:binary_cross_entropy(target): loss(probabilities, target).")
NN(bce_logits, "BCEWithLogitsLoss",
   "mr.nn.BCEWithLogitsLoss([{weight: tensor, pos_weight: tensor, reduction: string=\"mean\"}]) "
   "-> module: table",
   "The cross entropy of two classes: loss(x, target), where sigmoid(x) is the probability of the "
   "target 1, and the targets are floats from 0 to 1. pos_weight multiplies the loss of the "
   "targets "
   "1.")
NN(mse, "MSELoss", "mr.nn.MSELoss([{reduction: string=\"mean\"}]) -> module: table",
   "The mean of the squares of the differences: loss(x, target). reduction is \"mean\", \"sum\" or "
   "\"none\".")
NN(nll, "NLLLoss",
   "mr.nn.NLLLoss([{weight: tensor, ignore_index: integer, reduction: string=\"mean\"}]) -> "
   "module: table",
   "The negative logarithm of the probability of the target class: loss(log_probabilities, "
   "classes); classes "
   "count from 1.")
NN(cross_entropy, "CrossEntropyLoss",
   "mr.nn.CrossEntropyLoss([{weight: tensor, ignore_index: integer, reduction: string=\"mean\", "
   "label_smoothing: number=0}]) -> module: table",
   "NLLLoss of the log_softmax of the input: loss(scores, classes).")

/* --- mr.nn.init, mr.nn.utils -------------------------------------------------------------------- */

INIT(uniform, "uniform_",
     "mr.nn.init.uniform_(t: tensor [, low: number=0, high: number=1]) -> t: tensor",
     "t:uniform_(low, high), which no gradient records.")
INIT(normal, "normal_",
     "mr.nn.init.normal_(t: tensor [, mean: number=0, std: number=1]) -> t: tensor",
     "t:normal_(mean, std), which no gradient records.")
INIT(constant, "constant_", "mr.nn.init.constant_(t: tensor, value: number) -> t: tensor",
     "t:fill_(value), which no gradient records.")
INIT(zeros, "zeros_", "mr.nn.init.zeros_(t: tensor) -> t: tensor",
     "t:zero_(), which no gradient records.")
INIT(ones, "ones_", "mr.nn.init.ones_(t: tensor) -> t: tensor",
     "t:fill_(1), which no gradient records.")
INIT(kaiming_normal, "kaiming_normal_",
     "mr.nn.init.kaiming_normal_(t: tensor [, {a: number=0}]) -> t: tensor",
     "Normal numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.")
INIT(kaiming, "kaiming_uniform_",
     "mr.nn.init.kaiming_uniform_(t: tensor [, {a: number=0}]) -> t: tensor",
     "Uniform numbers whose variance is 2 / (1 + a^2) / inputs, for layers before a ReLU.")
INIT(xavier, "xavier_uniform_",
     "mr.nn.init.xavier_uniform_(t: tensor [, {gain: number=1}]) -> t: tensor",
     "Uniform numbers whose variance is 2 gain^2 / (inputs + outputs).")

#define UTILS(id, name, usage, text)                                                               \
    MR_FUNCTION(utils_##id, name, usage, text) {                                                   \
        return call(L, &nn_key, "millrace.nn", "utils", name);                                     \
    }

UTILS(
    clip, "clip_grad_norm_",
    "mr.nn.utils.clip_grad_norm_(parameters: tensor[], most: number [, {norm_type: number=2}]) -> "
    "norm: tensor",
    "Scales the gradients so that the norm of all of them together is at most this number. "
    "norm_type is the p of the norm; math.huge stands for the greatest absolute value. Returns "
    "the norm that they had, as a tensor: nothing waits.")
UTILS(clip_value, "clip_grad_value_",
      "mr.nn.utils.clip_grad_value_(parameters: tensor[], most: number)",
      "Limits each element of the gradients to the range from -most to most.")

/* --- mr.optim ----------------------------------------------------------------------------------- */

#define OPTIM(id, name, usage, text)                                                               \
    MR_FUNCTION(optim_##id, name, usage, text) {                                                   \
        return call(L, &optim_key, "millrace.optim", NULL, name);                                  \
    }

OPTIM(sgd, "SGD",
      "mr.optim.SGD(parameters: tensor[] [, {lr: number=0.001, momentum: number=0, dampening: "
      "number=0, weight_decay: "
      "number=0, nesterov: boolean=false}]) -> optimiser: table",
      "Stochastic gradient descent. optimiser:step() changes all parameters that have a gradient, "
      "in one command on "
      "the current stream; optimiser:zero_grad() drops the gradients; optimiser.lr can be set. The "
      "parameters are a "
      "list of tensors, or of groups {params=, lr=, ...}.")
OPTIM(adam, "Adam",
      "mr.optim.Adam(parameters: tensor[] [, {lr: number=0.001, betas: number[]={0.9, 0.999}, eps: "
      "number=1e-8, "
      "weight_decay: number=0}]) -> optimiser: table",
      "Adam; methods as those of SGD. optimiser:state_dict() and load_state_dict() are for its "
      "averages.")
OPTIM(adamw, "AdamW",
      "mr.optim.AdamW(parameters: tensor[] [, {lr: number=0.001, betas: number[]={0.9, 0.999}, "
      "eps: number=1e-8, "
      "weight_decay: number=0.01}]) -> optimiser: table",
      "Adam with a weight decay that shrinks the parameters by itself.")

OPTIM(rmsprop, "RMSprop",
      "mr.optim.RMSprop(parameters: tensor[] [, {lr: number=0.01, alpha: number=0.99, eps: "
      "number=1e-8, weight_decay: number=0, momentum: number=0}]) -> optimiser: table",
      "Divides each gradient by the root of the average of its squares; methods as those of SGD.")

#define OPTIMIZER(id, name, usage, text)                                                           \
    MR_FUNCTION(optimizer_##id, name, usage, text) {                                               \
        return call(L, &optim_key, "millrace.optim", "Optimizer", name);                           \
    }

OPTIMIZER(step, "step", "o:step([closure: function]) -> loss: any",
          "Changes all parameters that have a gradient, in one command on the current stream. A "
          "closure is called first: it computes the gradients, and what it returns is returned.")
OPTIMIZER(zero_grad, "zero_grad", "o:zero_grad([set_to_none: boolean=true])",
          "Drops the gradients of the parameters, or with false fills them with zeros.")
OPTIMIZER(state_dict, "state_dict", "o:state_dict() -> state: table",
          "Returns the averages and step numbers as tensors, by the number of the parameter: "
          "mr.save(\"o.safetensors\", o:state_dict()).")
OPTIMIZER(load_state_dict, "load_state_dict", "o:load_state_dict(state: table)",
          "Goes on where the optimiser that gave this state was. All entries are checked first.")

/* mr.optim.lr_scheduler, or the table `part` in it */
static int call_scheduler(lua_State *L, const char *part, const char *name) {
    mr_set_context(L);
    luaL_checkstack(L, 4, name);
    mr_push_embedded(L, &optim_key, "millrace.optim", tools);
    lua_getfield(L, -1, "lr_scheduler");
    lua_remove(L, -2);
    return call_in(L, part, name);
}

#define SCHEDULER(id, part, name, usage, text)                                                     \
    MR_FUNCTION(scheduler_##id, name, usage, text) {                                               \
        return call_scheduler(L, part, name);                                                      \
    }

SCHEDULER(step_lr, NULL, "StepLR",
          "mr.optim.lr_scheduler.StepLR(o: table, step_size: integer [, {gamma: number=0.1}]) -> "
          "scheduler: table",
          "Multiplies the rates of the optimiser by gamma every step_size epochs. "
          "scheduler:step() ends an epoch.")
SCHEDULER(cosine_lr, NULL, "CosineAnnealingLR",
          "mr.optim.lr_scheduler.CosineAnnealingLR(o: table, t_max: integer [, {eta_min: "
          "number=0}]) -> scheduler: table",
          "Lowers the rates to eta_min in t_max epochs, as half a wave of a cosine.")
SCHEDULER(lambda_lr, NULL, "LambdaLR",
          "mr.optim.lr_scheduler.LambdaLR(o: table, fn: function) -> scheduler: table",
          "Multiplies the first rates by fn(epoch). The first epoch is 0.")
SCHEDULER(step, "Scheduler", "step", "scheduler:step()",
          "Ends an epoch: sets the rates of the optimiser for the next one.")
SCHEDULER(get_last_lr, "Scheduler", "get_last_lr", "scheduler:get_last_lr() -> rates: number[]",
          "Returns the rates of the groups of the optimiser.")
SCHEDULER(state_dict, "Scheduler", "state_dict", "scheduler:state_dict() -> state: table",
          "Returns the epoch and the first rates, as tensors.")
SCHEDULER(load_state_dict, "Scheduler", "load_state_dict",
          "scheduler:load_state_dict(state: table)",
          "Goes on in the epoch of this state, and sets the rates of the optimiser.")

/* --- mr.data ------------------------------------------------------------------------------------ */

MR_FUNCTION(
    data_batches, "batches",
    "mr.data.batches(tensors: tensor|tensor[] [, {batch_size: integer=1, shuffle: boolean=false, "
    "drop_last: "
    "boolean=false, device: device, depth: integer=2, stream: stream}]) -> iterator: function",
    "For loops over the rows of host tensors: for x, y in mr.data.batches({xs, ys}, "
    "{batch_size=64}) do. The "
    "batches are copied to the device on a stream of their own, `depth` of them ahead, from pinned "
    "memory; the "
    "current stream waits for a batch when the loop gets it.") {
    return call(L, &data_key, "millrace.data", NULL, "batches");
}

/* --- docs --------------------------------------------------------------------------------------- */

static const mr_function *const module_functions[] = {&module_class_function,
                                                      &module_parameters_function,
                                                      &module_named_parameters_function,
                                                      &module_buffers_function,
                                                      &module_named_buffers_function,
                                                      &module_register_buffer_function,
                                                      &module_modules_function,
                                                      &module_named_modules_function,
                                                      &module_children_function,
                                                      &module_named_children_function,
                                                      &module_apply_function,
                                                      &module_train_function,
                                                      &module_eval_function,
                                                      &module_to_function,
                                                      &module_cpu_function,
                                                      &module_cuda_function,
                                                      &module_state_dict_function,
                                                      &module_load_state_dict_function,
                                                      &module_requires_grad_function,
                                                      &module_zero_grad_function,
                                                      NULL};
static const mr_function *const nn_functions[] = {&nn_parameter_function,
                                                  &nn_sequential_function,
                                                  &nn_module_list_function,
                                                  &nn_linear_function,
                                                  &nn_conv1d_function,
                                                  &nn_conv2d_function,
                                                  &nn_conv_transpose2d_function,
                                                  &nn_upsample_function,
                                                  &nn_lstm_function,
                                                  &nn_gru_function,
                                                  &nn_bce_function,
                                                  &nn_batch_norm_1d_function,
                                                  &nn_batch_norm_function,
                                                  &nn_embedding_function,
                                                  &nn_layer_norm_function,
                                                  &nn_relu_function,
                                                  &nn_gelu_function,
                                                  &nn_silu_function,
                                                  &nn_softplus_function,
                                                  &nn_leaky_relu_function,
                                                  &nn_elu_function,
                                                  &nn_tanh_function,
                                                  &nn_sigmoid_function,
                                                  &nn_softmax_function,
                                                  &nn_log_softmax_function,
                                                  &nn_dropout_function,
                                                  &nn_identity_function,
                                                  &nn_flatten_function,
                                                  &nn_max_pool_function,
                                                  &nn_avg_pool_function,
                                                  &nn_adaptive_function,
                                                  &nn_mse_function,
                                                  &nn_l1_function,
                                                  &nn_huber_function,
                                                  &nn_smooth_l1_function,
                                                  &nn_bce_logits_function,
                                                  &nn_nll_function,
                                                  &nn_cross_entropy_function,
                                                  NULL};
static const mr_function *const init_functions[] = {
    &init_uniform_function, &init_normal_function, &init_constant_function,
    &init_zeros_function,   &init_ones_function,   &init_kaiming_normal_function,
    &init_kaiming_function, &init_xavier_function, NULL};
static const mr_function *const utils_functions[] = {&utils_clip_function,
                                                     &utils_clip_value_function, NULL};
static const mr_function *const optim_functions[] = {&optim_sgd_function, &optim_rmsprop_function,
                                                     &optim_adam_function, &optim_adamw_function,
                                                     NULL};
static const mr_function *const optimizer_functions[] = {
    &optimizer_step_function, &optimizer_zero_grad_function, &optimizer_state_dict_function,
    &optimizer_load_state_dict_function, NULL};
static const mr_function *const lr_scheduler_functions[] = {&scheduler_step_lr_function,
                                                            &scheduler_cosine_lr_function,
                                                            &scheduler_lambda_lr_function, NULL};
static const mr_function *const scheduler_functions[] = {
    &scheduler_step_function, &scheduler_get_last_lr_function, &scheduler_state_dict_function,
    &scheduler_load_state_dict_function, NULL};
static const mr_function *const data_functions[] = {&data_batches_function, NULL};

const mr_class mr_nn_class = {
    "mr.nn", "Modules: the layers of networks, and losses. docs/nn.md explains them.", nn_functions,
    NULL, NULL};
const mr_class mr_nn_module_class = {"mr.nn.Module",
                                     "What all modules have. A module is called: m(x).",
                                     module_functions, NULL, NULL};
const mr_class mr_nn_init_class = {"mr.nn.init", "The values that parameters begin with.",
                                   init_functions, NULL, NULL};
const mr_class mr_nn_utils_class = {"mr.nn.utils", "Gradients before a step.", utils_functions,
                                    NULL, NULL};
const mr_class mr_optim_class = {"mr.optim", "Optimisers: a step of all parameters is one command.",
                                 optim_functions, NULL, NULL};
const mr_class mr_optimizer_class = {"mr.optim.Optimizer", "What all optimisers have.",
                                     optimizer_functions, NULL, NULL};
const mr_class mr_lr_scheduler_class = {"mr.optim.lr_scheduler",
                                        "Rates that depend on the number of epochs.",
                                        lr_scheduler_functions, NULL, NULL};
const mr_class mr_scheduler_class = {"mr.optim.lr_scheduler.Scheduler", "What all schedulers have.",
                                     scheduler_functions, NULL, NULL};
const mr_class mr_data_class = {"mr.data", "Batches on their way to the device.", data_functions,
                                NULL, NULL};

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
    mr_refuse_missing(L, mr_nn_class.name);
    lua_setfield(L, -2, "nn");
}
