-- Losses as modules, and mr.nn.utils.
local mr = require "millrace"

return function(tools, module)
  local misuse = tools.misuse
  local losses = {}

  local function loss(name, known, forward)
    local class = module.class(name)
    function class.init(m, options)
      if options ~= nil and type(options) ~= "table" then
        misuse(("%s: expected a table of options, got %s"):format(name, tools.type_of(options)))
      end
      for key, value in pairs(options or {}) do
        if not known[key] then misuse(("%s: there is no option `%s`"):format(name, tostring(key))) end
        m[key] = value
      end
      m.reduction = m.reduction or "mean"
      if m.reduction ~= "mean" and m.reduction ~= "sum" and m.reduction ~= "none" then
        misuse(("%s: the reduction is \"mean\", \"sum\" or \"none\", not %q"):format(name, m.reduction))
      end
    end
    class.forward = forward
    losses[name] = class
  end

  loss("MSELoss", { reduction = true }, function(m, x, target)
    return x:mse_loss(target, { reduction = m.reduction })
  end)

  local CLASSES = { reduction = true, weight = true, ignore_index = true }
  local function options_of(m)
    return { reduction = m.reduction, weight = m.weight, ignore_index = m.ignore_index }
  end
  loss("NLLLoss", CLASSES, function(m, x, target) return x:nll_loss(target, options_of(m)) end)
  loss("CrossEntropyLoss", CLASSES, function(m, x, target) return x:cross_entropy(target, options_of(m)) end)

  -- ---------------------------------------------------------------- utils

  local utils = {}

  -- The gradients' norm as a tensor, so nothing waits; they are scaled by at most 1.
  function utils.clip_grad_norm_(parameters, most, options)
    if tools.is_tensor(parameters) then parameters = { parameters } end
    if type(parameters) ~= "table" then
      misuse("clip_grad_norm_: expected a list of parameters, got " .. tools.type_of(parameters))
    end
    if type(most) ~= "number" or most ~= most or most <= 0 then
      misuse("clip_grad_norm_: the greatest norm is a number above 0")
    end
    local kind = type(options) == "table" and options.norm_type or 2
    if kind ~= 2 and kind ~= math.huge then misuse("clip_grad_norm_: norm_type is 2 or math.huge") end
    local gradients, norms = {}, {}
    for _, p in ipairs(parameters) do
      local g = p.grad
      if g then
        g = g:detach()
        gradients[#gradients + 1] = g
        norms[#norms + 1] = kind == 2 and g:norm() or g:abs():max()
      end
    end
    if #gradients == 0 then return mr.zeros({}) end
    return mr.no_grad(function()
      local all = mr.stack(norms)
      local total = kind == 2 and all:norm() or all:max()
      local scale = (most / (total + 1e-6)):clamp(nil, 1)
      for _, g in ipairs(gradients) do g:mul_(scale) end
      return total
    end)
  end

  losses.utils = utils
  return losses
end
