-- The derivatives of the rows of networks, in the form of derivatives.lua: pools and losses. Each of their
-- gradients is a row of its own, and those are linear: the derivative of a row of gradients is made of the other
-- rows.
--
-- A rule's `arrange` brings the arguments into one order before the call is recorded: tensors stand in front, and a
-- second result that the gradient needs is asked for. `asked` tells whether the script wanted it, too.
local mr = require "millrace"

local R = {}

local function copy_of(options)
  local copy = {}
  for key, value in pairs(options or {}) do copy[key] = type(value) == "table" and { table.unpack(value) } or value end
  return copy
end

-- The shape of a batch, and a gradient with the dim of the batch.
local function batched(shape) return #shape == 3 and { 1, table.unpack(shape) } or shape end
local function with_batch(t) return t.ndim == 3 and t:unsqueeze(1) or t end

-- ---------------------------------------------------------------- pools

local EACH = { reduction = "none" }

local function keep_pool(n, _, x, size, options)
  n.shape, n.size = x.shape, type(size) == "table" and { table.unpack(size) } or size
  n.options = copy_of(options)
  n.options.return_indices = nil
end

R.max_pool2d = {
  formula = "g at the positions of the greatest elements",
  inputs = 1,
  needs = { "d" },
  second = true,
  arrange = function(x, size, options)
    options = copy_of(options)
    options.return_indices = true
    return x, size, options
  end,
  asked = function(_, _, options) return options and options.return_indices end,
  keep = keep_pool,
  back = function(g, n)
    local positions = with_batch(n.d)
    return mr.max_pool2d_backward(batched(n.shape), with_batch(g), positions, n.size, n.options):view(n.shape)
  end,
}

R.max_pool2d_backward = {
  formula = "-; g, gathered at the positions",
  inputs = 3,
  needs = { "", "c", "" },
  -- nll_loss picks an element for each target: here each output is a target, and all have the plane's elements.
  back = function(g, n)
    local planes, made = n.c:size(1) * n.c:size(2), n.c:size(3) * n.c:size(4)
    local elements = g:reshape(planes, -1, 1)
    local picked = elements:expand(planes, elements:size(2), made):nll_loss(n.c:reshape(planes, made), EACH)
    return -picked:view(n.c.shape)
  end,
}

R.avg_pool2d = {
  formula = "avg_pool2d_backward(g)",
  inputs = 1,
  needs = { "" },
  keep = keep_pool,
  back = function(g, n)
    return mr.avg_pool2d_backward(batched(n.shape), with_batch(g), n.size, n.options):view(n.shape)
  end,
}

R.avg_pool2d_backward = {
  formula = "-; avg_pool2d(g)",
  inputs = 2,
  needs = { "", "" },
  keep = function(n, _, _, _, size, options)
    n.size, n.options = type(size) == "table" and { table.unpack(size) } or size, copy_of(options)
  end,
  back = function(g, n) return g:avg_pool2d(n.size, n.options) end,
}

R.adaptive_avg_pool2d = {
  formula = "adaptive_avg_pool2d_backward(g)",
  inputs = 1,
  needs = { "" },
  keep = function(n, _, x) n.shape = x.shape end,
  back = function(g, n) return mr.adaptive_avg_pool2d_backward(batched(n.shape), with_batch(g)):view(n.shape) end,
}

R.adaptive_avg_pool2d_backward = {
  formula = "-; adaptive_avg_pool2d(g)",
  inputs = 2,
  needs = { "", "" },
  keep = function(n, _, _, gradient) n.size = { gradient:size(3), gradient:size(4) } end,
  back = function(g, n) return g:adaptive_avg_pool2d(n.size) end,
}

-- ---------------------------------------------------------------- losses

-- The weights of the classes are an option, and are read again: they are kept like the other tensors.
local function weight_of(options) return options and options.weight or nil end

local function keep_loss_options(n, options)
  n.options = copy_of(options)
  n.options.weight, n.options.return_total_weight, n.options.total_weight = nil, nil, nil
end

local function with_weight(n, weight, total)
  local options = copy_of(n.options)
  options.weight, options.total_weight = weight, total
  return options
end

R.nll_loss = {
  formula = "nll_loss_backward(g, target)",
  inputs = 2,
  constant = "weight",
  needs = { "b c d", "" },
  second = true,
  arrange = function(x, target, options)
    options = copy_of(options)
    options.return_total_weight = options.reduction ~= "none"
    return x, target, options
  end,
  asked = function(_, _, options) return options and options.return_total_weight end,
  arguments = function(x, target, options) return x, target, weight_of(options) end,
  keep = function(n, _, x, _, options)
    n.shape = x.shape
    keep_loss_options(n, options)
  end,
  back = function(g, n) return mr.nll_loss_backward(n.shape, g, n.b, with_weight(n, n.c, n.d)) end,
}

R.nll_loss_backward = {
  formula = "-; nll_loss(g, target)",
  inputs = 3,
  constant = "weight",
  needs = { "", "c d", "" },
  arguments = function(shape, gradient, target, options) return shape, gradient, target, weight_of(options) end,
  keep = function(n, _, _, _, _, options) keep_loss_options(n, options) end,
  back = function(g, n) return g:nll_loss(n.c, with_weight(n, n.d)) end,
}

return R
