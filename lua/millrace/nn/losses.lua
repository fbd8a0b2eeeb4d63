-- Losses as modules.
return function(tools, module)
  local misuse = tools.misuse
  local losses = {}

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

  local SMOOTHED = { reduction = true, weight = true, ignore_index = true, label_smoothing = true }
  loss("CrossEntropyLoss", SMOOTHED, function(m, x, target)
    local options = options_of(m)
    options.label_smoothing = m.label_smoothing
    return x:cross_entropy(target, options)
  end)

  return losses
end
