-- Losses as modules.
--# nn
local check_pair = require "millrace.pairing"

return function(tools, module)
  local misuse = tools.misuse
  local losses = {}

  local function check_tensor(name, what, t)
    if not tools.is_tensor(t) then
      misuse(("%s: the %s is %s, expected a tensor"):format(name, what, tools.type_of(t)))
    end
    tools.check(t)
  end

  local function loss(name, known, forward)
    local class = module.class(name)
    function class.init(m, options, more)
      if more ~= nil then
        misuse(("%s: argument 2 is %s, expected no more arguments"):format(name, tools.type_of(more)))
      end
      if options ~= nil and type(options) ~= "table" then
        misuse(("%s: expected a table of options, got %s"):format(name, tools.type_of(options)))
      end
      for key, value in pairs(options or {}) do
        if not known[key] then misuse(name .. ": " .. tools.no_option(key, require "millrace.words".keys(known))) end
        -- Weights move with the module.
        if tools.is_tensor(value) then m:register_buffer(key, value) else m[key] = value end
      end
      m.reduction = m.reduction or "mean"
      if m.reduction ~= "mean" and m.reduction ~= "sum" and m.reduction ~= "none" then
        misuse(("%s: the reduction is \"mean\", \"sum\" or \"none\", not %q"):format(name, m.reduction))
      end
    end
    function class.forward(m, x, target)
      module.check(m, "forward")
      check_tensor(name, "input", x)
      check_tensor(name, "target", target)
      return forward(m, x, target)
    end
    losses[name] = class
  end

  --- mr.nn.MSELoss([{reduction: string="mean"}]) -> module: table
  --- The mean of the squares of the differences: loss(x, target). reduction is "mean", "sum" or "none".
  loss("MSELoss", { reduction = true }, function(m, x, target)
    return x:mse_loss(target, { reduction = m.reduction })
  end)

  -- ---------------------------------------------------------------- of pairs of elements

  -- The mean or the sum of the losses of the elements, or these.
  local function reduced(m, each)
    if m.reduction == "none" then return each end
    return m.reduction == "mean" and each:mean() or each:sum()
  end

  -- each(m, x, target) gives the losses of the elements.
  local function loss_of_pairs(name, known, each)
    known.reduction = true
    loss(name, known, function(m, x, target)
      check_pair(misuse, name, x, target)
      return reduced(m, each(m, x, target))
    end)
  end

  --- mr.nn.L1Loss([{reduction: string="mean"}]) -> module: table
  --- The mean of the absolute differences: loss(x, target).
  loss_of_pairs("L1Loss", {}, function(_, x, target)
    return x:l1_loss(target, { reduction = "none" })
  end)

  local function threshold(name, what, value)
    if value == nil then return 1 end
    if type(value) ~= "number" or value ~= value or value <= 0 then
      misuse(("%s: %s is %s, expected a number above 0"):format(name, what, tostring(value)))
    end
    return value
  end

  -- limit times the distance less half of limit where it is at least limit; half of its square elsewhere
  local function huber(x, target, limit)
    local distance = (x - target):abs()
    local near = distance:clamp(nil, limit)
    return near * (distance - near * 0.5)
  end

  --- mr.nn.HuberLoss([{delta: number=1, reduction: string="mean"}]) -> module: table
  --- For a difference d: d^2 / 2 if |d| <= delta, otherwise delta * (|d| - delta / 2).
  loss_of_pairs("HuberLoss", { delta = true }, function(m, x, target)
    return huber(x, target, threshold("HuberLoss", "delta", m.delta))
  end)

  --- mr.nn.SmoothL1Loss([{beta: number=1, reduction: string="mean"}]) -> module: table
  --- HuberLoss with delta=beta, divided by beta.
  loss_of_pairs("SmoothL1Loss", { beta = true }, function(m, x, target)
    local beta = threshold("SmoothL1Loss", "beta", m.beta)
    return huber(x, target, beta) / beta
  end)

  --- mr.nn.BCELoss([{weight: tensor, reduction: string="mean"}]) -> module: table
  --- x:binary_cross_entropy(target): loss(probabilities, target).
  loss_of_pairs("BCELoss", { weight = true }, function(m, x, target)
    local each = x:binary_cross_entropy(target, { reduction = "none" })
    return m.weight and each * m.weight or each
  end)

  --- mr.nn.BCEWithLogitsLoss([{weight: tensor, pos_weight: tensor, reduction: string="mean"}]) -> module: table
  --- The cross entropy of two classes: loss(x, target), where sigmoid(x) is the probability of the target 1, and the
  --- targets are floats from 0 to 1. pos_weight multiplies the loss of targets that are 1.
  -- softplus(-x) is the negative logarithm of sigmoid(x), without its overflow.
  loss_of_pairs("BCEWithLogitsLoss", { weight = true, pos_weight = true }, function(m, x, target)
    local factor = m.pos_weight and (m.pos_weight - 1) * target + 1
    local of_ones = (-x):softplus()
    local each = (1 - target) * x + (factor and factor * of_ones or of_ones)
    return m.weight and each * m.weight or each
  end)

  -- ---------------------------------------------------------------- of classes

  local CLASSES = { reduction = true, weight = true, ignore_index = true }
  local function options_of(m)
    return { reduction = m.reduction, weight = m.weight, ignore_index = m.ignore_index }
  end

  --- mr.nn.NLLLoss([{weight: tensor, ignore_index: integer, reduction: string="mean"}]) -> module: table
  --- The negative logarithm of the probability of the target class: loss(log_probabilities, classes); classes count
  --- from 1.
  loss("NLLLoss", CLASSES, function(m, x, target) return x:nll_loss(target, options_of(m)) end)

  local SMOOTHED = { reduction = true, weight = true, ignore_index = true, label_smoothing = true }

  --- mr.nn.CrossEntropyLoss([{weight: tensor, ignore_index: integer, reduction: string="mean", label_smoothing:
  ---   number=0}]) -> module: table
  --- NLLLoss of the log_softmax of the input: loss(scores, classes).
  loss("CrossEntropyLoss", SMOOTHED, function(m, x, target)
    local options = options_of(m)
    options.label_smoothing = m.label_smoothing
    return x:cross_entropy(target, options)
  end)

  return losses
end
