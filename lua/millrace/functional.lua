-- Functions of networks that are made of several operations. They are written with recorded operations, so gradients
-- flow through them without rules of their own.
--
-- All that can be wrong is checked before the first operation is submitted.
--
-- The module is a function of the tools that bind/ops/functional.c hands to it.
--# functional of tensor, mr: Networks.
local mr = require "millrace"
local check_pair = require "millrace.pairing"

return function(tools)
  local misuse, is_tensor = tools.misuse, tools.is_tensor
  local check = require "millrace.arguments"(tools)
  local shape_text = check.shape_text
  local M = require "millrace.composites"(tools, check)
  for name, fn in pairs(require "millrace.ordering"(tools, check)) do M[name] = fn end
  for name, fn in pairs(require "millrace.shaping"(tools, check, { get = M.get_index, set = M.set_index })) do
    M[name] = fn
  end
  for name, fn in pairs(require "millrace.resampling"(tools, check)) do M[name] = fn end
  M.einsum = require "millrace.einsum"(tools, check)

  -- ---------------------------------------------------------------- layers

  --- x:linear(w: tensor [, bias: tensor]) -> tensor
  --- x times the transpose of w (outputs, inputs), plus the bias. The last dim of x holds the inputs; all other dims
  --- are kept.
  function M.linear(x, w, bias)
    check.tensor("linear", "x", x)
    check.like("linear", "the weight", check.tensor("linear", "the weights", w), x)
    if w.ndim ~= 2 or x.ndim == 0 or x:size(-1) ~= w:size(2) then
      misuse(("linear: x of shape %s needs weights of shape (outputs, %s), got %s"):format(shape_text(x.shape),
        x.ndim > 0 and x:size(-1) or "inputs", shape_text(w.shape)))
    end
    check.like("linear", "the bias", bias, x, { w:size(1) })
    if bias and x.ndim == 2 then return bias:addmm(x, w:t()) end
    local y = x:matmul(w:t())
    return bias and y + bias or y
  end

  -- ---------------------------------------------------------------- convolutions

  local CONV = { bias = true, stride = true, padding = true, dilation = true, groups = true }

  --- x:conv1d(w: tensor [, bias: tensor] [, {bias: tensor, stride: integer=1, padding: integer|string=0, dilation:
  ---   integer=1, groups: integer=1}]) -> tensor
  --- The convolution of sequences (sequences, channels, elements) with weights (outputs, channels / groups,
  --- elements): conv2d with one row.
  -- conv1d is conv2d with images of one row.
  function M.conv1d(x, w, bias, options)
    if bias ~= nil and not is_tensor(bias) then bias, options = nil, bias end
    check.tensor("conv1d", "x", x)
    check.tensor("conv1d", "the weights", w)
    options = check.options("conv1d", options, CONV)
    for _, name in ipairs { "stride", "padding", "dilation" } do
      local value = options[name]
      if type(value) == "table" then
        if #value ~= 1 then misuse(("conv1d: has one dim: %s is a number"):format(name)) end
        value = value[1]
      end
      local is_word = name == "padding" and type(value) == "string"
      if value ~= nil then options[name] = is_word and value or { name == "padding" and 0 or 1, value } end
    end
    if w.ndim ~= 3 then
      misuse(("conv1d: the weights must have 3 dims (outputs, channels / groups, elements), not %d"):format(w.ndim))
    end
    if x.ndim ~= 2 and x.ndim ~= 3 then
      misuse(("conv1d: the input must have 3 dims (sequences, channels, elements) or, of one sequence, 2; not %d")
        :format(x.ndim))
    end
    return mr.conv2d(x:unsqueeze(-2), w:unsqueeze(-2), bias, options):squeeze(-2)
  end

  -- A number or {rows, columns} as two numbers; the row's own checks report other errors.
  local function pair(value, otherwise)
    if type(value) == "table" then return value[1] or otherwise, value[2] or value[1] or otherwise end
    return value or otherwise, value or otherwise
  end

  -- conv2d with the padding "valid" (no padding) or "same" (the result has as many rows and columns as x).
  -- If the total padding is odd, the greater part is at the end, as in PyTorch. Both sides get the greater part, and
  -- the surplus at the front is then left out.
  function M.conv2d(x, w, bias, options)
    if type(bias) == "table" then bias, options = nil, bias end
    check.tensor("conv2d", "x", x)
    check.tensor("conv2d", "the weights", w)
    options = check.options("conv2d", options, CONV)
    if options.padding == "valid" then
      options.padding = nil
      return mr.conv2d(x, w, bias, options)
    end
    if options.padding ~= "same" then
      misuse(("conv2d: padding=\"%s\", expected numbers, \"same\" or \"valid\""):format(options.padding))
    end
    local stride_rows, stride_columns = pair(options.stride, 1)
    if stride_rows ~= 1 or stride_columns ~= 1 then misuse "conv2d: padding=\"same\" needs a stride of 1" end
    if w.ndim ~= 4 then return mr.conv2d(x, w, bias) end -- which says so
    local odd, padding, dilation = {}, {}, table.pack(pair(options.dilation, 1))
    for k = 1, 2 do
      local whole = math.type(dilation[k]) == "integer" and dilation[k] or 1
      local all = whole * (w:size(k + 2) - 1)
      odd[k], padding[k] = all % 2 == 1, math.max((all + 1) // 2, 0)
    end
    options.padding = padding
    local y = mr.conv2d(x, w, bias, options)
    for k = 1, 2 do
      if odd[k] then y = y:narrow(k - 3, 2, y:size(k - 3) - 1) end
    end
    return y
  end

  local DROPOUT = { p = true, training = true }

  --- x:dropout([p: number=0.5 [, training: boolean=true]]) -> tensor
  --- Each element becomes 0 with probability p; the other elements are divided by 1 - p. Without training it returns x.
  --- {p=, training=} can be given instead.
  -- Kept elements are divided by their probability, so that the mean stays.
  function M.dropout(x, p, training)
    check.tensor("dropout", "x", x)
    if type(p) == "table" then
      local options = check.options("dropout", p, DROPOUT)
      p, training = options.p, options.training
    end
    p = check.number("dropout", "p", p, 0.5, 0, 1)
    check.floats("dropout", x)
    if training == false or p == 0 then return x end
    if p == 1 then return x * 0 end
    local kept = mr.no_grad(function() return mr.empty_like(x):bernoulli_(1 - p):mul_(1 / (1 - p)) end)
    return x * kept
  end

  -- ---------------------------------------------------------------- norms

  local function scaled(y, weight, bias)
    if weight then y = y * weight end
    return bias and y + bias or y
  end

  local LAYER_NORM = { weight = true, bias = true, eps = true }

  --- x:layer_norm(shape: integer|integer[] [, {weight: tensor, bias: tensor, eps: number=1e-5}]) -> tensor
  --- Subtracts the mean over the last dims, whose sizes `shape` lists, and divides by the root of their variance plus
  --- eps. Then it multiplies by the weight and adds the bias.
  function M.layer_norm(x, shape, options)
    check.tensor("layer_norm", "x", x)
    check.floats("layer_norm", x)
    options = check.options("layer_norm", options, LAYER_NORM)
    if type(shape) == "number" then shape = { shape } end
    if type(shape) ~= "table" or #shape == 0 then
      misuse("layer_norm: expected the shape that is normalized, a number or a list")
    end
    local sizes, dims = x.shape, {}
    for d = 1, #shape do
      dims[d] = x.ndim - #shape + d
      if sizes[dims[d]] ~= shape[d] then
        misuse(("layer_norm: x of shape %s does not end in the shape %s"):format(shape_text(sizes), shape_text(shape)))
      end
    end
    local eps = check.number("layer_norm", "eps", options.eps, 1e-5, 0, math.huge)
    check.like("layer_norm", "the weight", options.weight, x, shape)
    check.like("layer_norm", "the bias", options.bias, x, shape)
    local dtype = x.dtype
    x = check.wide(x)
    local centred = x - x:mean(dims, true)
    local scale = (x:var(dims, true, { correction = 0 }) + eps):rsqrt()
    local y = centred.requires_grad and centred * scale or centred:mul_(scale) -- in place if it is not needed again
    return scaled(y, options.weight, options.bias):to(dtype)
  end

  local BATCH_NORM = { weight = true, bias = true, training = true, momentum = true, eps = true }

  -- running <- (1 - momentum) * running + momentum * new
  local function follow(running, new, momentum)
    if not running then return end
    if running.dtype == new.dtype then running:mul_(1 - momentum):add_(new * momentum)
    else running:copy_(check.wide(running) * (1 - momentum) + new * momentum) end
  end

  --- x:batch_norm(running_mean: tensor|nil, running_var: tensor|nil [, {weight: tensor, bias: tensor, training:
  ---   boolean=false, momentum: number=0.1, eps: number=1e-5}]) -> tensor
  --- Normalizes each channel, which is the second dim. With training it uses the mean and variance of x, and moves the
  --- running mean and variance towards them by the momentum (with the variance of a sample). Otherwise it uses the
  --- running mean and variance.
  function M.batch_norm(x, running_mean, running_var, options)
    check.tensor("batch_norm", "x", x)
    check.floats("batch_norm", x)
    options = check.options("batch_norm", options, BATCH_NORM)
    if x.ndim < 2 then misuse("batch_norm: x must have the shape (items, channels, ...)") end
    local channels, across, dims = { x:size(2) }, {}, { 1 }
    for d = 1, x.ndim do across[d] = d == 2 and x:size(2) or 1 end
    for d = 3, x.ndim do dims[#dims + 1] = d end
    local momentum = check.number("batch_norm", "momentum", options.momentum, 0.1, 0, 1)
    local eps = check.number("batch_norm", "eps", options.eps, 1e-5, 0, math.huge)
    check.like("batch_norm", "the running mean", running_mean, x, channels)
    check.like("batch_norm", "the running variance", running_var, x, channels)
    check.like("batch_norm", "the weight", options.weight, x, channels)
    check.like("batch_norm", "the bias", options.bias, x, channels)
    local dtype, mean, var = x.dtype, check.wide(running_mean), check.wide(running_var)
    x = check.wide(x)
    if options.training then
      local items = x.numel // math.max(channels[1], 1)
      if items < 2 then
        misuse(("batch_norm: training needs more than one value a channel, x has the shape %s"):format(
          shape_text(x.shape)))
      end
      mean, var = x:mean(dims), x:var(dims, { correction = 0 })
      mr.no_grad(function()
        follow(running_mean, mean, momentum)
        follow(running_var, var * (items / (items - 1)), momentum)
      end)
    elseif not (mean and var) then
      misuse("batch_norm: needs a running mean and variance, or training=true")
    end
    local scale = (var + eps):rsqrt()
    if options.weight then scale = scale * options.weight end
    local y = (x - mean:view(across)) * scale:view(across)
    return scaled(y, nil, options.bias and options.bias:view(across)):to(dtype)
  end

  -- ---------------------------------------------------------------- losses

  local function check_reduction(name, options)
    local reduction = options.reduction or "mean"
    if reduction ~= "none" and reduction ~= "mean" and reduction ~= "sum" then
      misuse(("%s: reduction=%s, expected \"none\", \"mean\" or \"sum\""):format(name, tostring(reduction)))
    end
    return reduction
  end

  local CROSS_ENTROPY = { weight = true, ignore_index = true, reduction = true, label_smoothing = true }

  -- t times the weights of the classes, which are along this dim.
  local function weighted(t, weight, classes)
    if not weight then return t end
    local across = {}
    for d = 1, t.ndim do across[d] = d == classes and weight.numel or 1 end
    return t * weight:view(across)
  end

  -- The loss of targets that are probabilities of the classes; its mean is over the items, whatever the weights are.
  local function of_probabilities(logs, target, classes, part, options)
    local count = logs:size(classes)
    if part > 0 then target = target * (1 - part) + part / count end
    local each = -weighted(logs * target, options.weight, classes):sum(classes)
    if options.reduction == "none" then return each end
    local sum = each:sum()
    return options.reduction == "sum" and sum or sum / (logs.numel // math.max(count, 1))
  end

  -- The loss of targets that are spread in part over all classes: (1 - part) times that of the target, and part times
  -- the mean over the classes.
  local function smoothed(logs, target, classes, part, options)
    local reduction = options.reduction or "mean"
    options.label_smoothing, options.return_total_weight = nil, reduction == "mean"
    local loss, total = logs:nll_loss(target, options)
    local all = -weighted(logs, options.weight, classes):sum(classes)
    all = all:masked_fill(target:eq(options.ignore_index or -100), 0)
    if reduction ~= "none" then all = all:sum() end
    if reduction == "mean" then all = all / total end
    return loss * (1 - part) + all * (part / logs:size(classes))
  end

  local function check_classes(x, target, classes)
    local rest = x.shape
    table.remove(rest, classes)
    if shape_text(target.shape) ~= shape_text(rest) or target.ndim ~= #rest then
      misuse(("cross_entropy: the input has shape %s, so the targets must have the shape %s, but it is %s"):format(
        shape_text(x.shape), shape_text(rest), shape_text(target.shape)))
    end
    if target.dtype ~= "i64" and target.dtype ~= "i32" then
      misuse(("cross_entropy: targets are i64 or i32, or probabilities of the classes, not %s; convert with " ..
        "x:to(\"i64\")"):format(target.dtype))
    end
  end

  --- x:cross_entropy(target: tensor [, {weight: tensor, ignore_index: integer=-100, reduction: string="mean",
  ---   label_smoothing: number=0}]) -> tensor
  --- The cross entropy of scores x (items, classes, ...) and targets, which are classes and count from 1: nll_loss of
  --- log_softmax. Targets of floats, of the shape of x, are the probabilities of the classes. With label_smoothing,
  --- that part of each target is spread over all classes.
  function M.cross_entropy(x, target, options)
    check.tensor("cross_entropy", "x", x)
    check.tensor("cross_entropy", "the targets", target)
    check.floats("cross_entropy", x)
    options = check.options("cross_entropy", options, CROSS_ENTROPY)
    local classes, rest = x.ndim > 1 and 2 or 1, x.shape
    if x.ndim == 0 then misuse "cross_entropy: x must have the shape (items, classes, ...)" end
    local is_probable = target.dtype:find "f" ~= nil
    if is_probable then check.like("cross_entropy", "the target", target, x, rest)
    else check_classes(x, target, classes) end
    check.place("cross_entropy", "the target", target, x)
    check.like("cross_entropy", "the weight", options.weight, x, { x:size(classes) })
    local part = check.number("cross_entropy", "label_smoothing", options.label_smoothing, 0, 0, 1)
    options.label_smoothing = nil
    check_reduction("cross_entropy", options)
    if options.ignore_index ~= nil and math.type(options.ignore_index) ~= "integer" then
      misuse(("cross_entropy: ignore_index is %s, expected an integer"):format(tostring(options.ignore_index)))
    end
    if is_probable and options.ignore_index then
      misuse "cross_entropy: ignore_index is for targets that are classes"
    end
    local logs = check.wide(x):log_softmax(classes)
    options.weight = check.wide(options.weight)
    if is_probable then return of_probabilities(logs, check.wide(target), classes, part, options):to(x.dtype) end
    return (part == 0 and logs:nll_loss(target, options) or smoothed(logs, target, classes, part, options)):to(x.dtype)
  end

  local PAIRS = { reduction = true }

  -- each(x, target) gives the losses of the elements.
  local function loss_of_pairs(name, x, target, options, each)
    check.tensor(name, "x", x)
    check.tensor(name, "the target", target)
    local reduction = check_reduction(name, check.options(name, options, PAIRS))
    check_pair(misuse, name, x, target)
    local dtype = x.dtype == target.dtype and x.dtype:find "16" and x.dtype
    if dtype then x, target = check.wide(x), check.wide(target) end
    local loss = each(x, target)
    if reduction ~= "none" then loss = reduction == "mean" and loss:mean() or loss:sum() end
    return dtype and loss:to(dtype) or loss
  end

  --- x:mse_loss(target: tensor [, {reduction: string="mean"}]) -> tensor
  --- The squares of the differences: their mean, their sum, or ("none") all of them.
  function M.mse_loss(x, target, options)
    return loss_of_pairs("mse_loss", x, target, options, function(a, b) return (a - b):square() end)
  end

  --- x:l1_loss(target: tensor [, {reduction: string="mean"}]) -> tensor
  --- The absolute differences: their mean, their sum, or ("none") all of them.
  function M.l1_loss(x, target, options)
    return loss_of_pairs("l1_loss", x, target, options, function(a, b) return (a - b):abs() end)
  end

  local function bounded_log(x) return x:log():clamp(-100, nil) end

  local cross_entropy_of_two -- made at the first use: mr.autograd is not there yet

  -- The logarithms are at least -100, so the loss is finite where x is 0 or 1; the gradient is, too.
  local function new_cross_entropy_of_two()
    return mr.autograd.Function {
      name = "binary_cross_entropy",
      forward = function(ctx, x, target)
        ctx:save_for_backward(x, target)
        return -(target * bounded_log(x) + (1 - target) * bounded_log(1 - x))
      end,
      backward = function(ctx, g)
        local x, target = ctx:saved_tensors()
        return g * (x - target) / ((1 - x) * x):clamp(1e-12, nil), g * (bounded_log(1 - x) - bounded_log(x))
      end,
    }
  end

  --- x:binary_cross_entropy(target: tensor [, {reduction: string="mean"}]) -> tensor
  --- The cross entropy of two classes: x has the probabilities of the target 1, and the targets are floats from 0 to
  --- 1. Logarithms count as at least -100.
  function M.binary_cross_entropy(x, target, options)
    local name = "binary_cross_entropy"
    check.floats(name, check.tensor(name, "x", x))
    check.like(name, "the target", check.tensor(name, "the target", target), x, x.shape)
    cross_entropy_of_two = cross_entropy_of_two or new_cross_entropy_of_two()
    return loss_of_pairs(name, x, target, options, cross_entropy_of_two)
  end

  return M
end
