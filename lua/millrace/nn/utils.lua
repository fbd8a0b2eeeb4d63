-- mr.nn.utils: operations on gradients between backward() and a step. None of them makes the host wait.
--# nn_utils of mr.nn.utils: Gradients before a step.
local mr = require "millrace"

return function(tools, module)
  local misuse = tools.misuse
  local utils = {}

  -- The gradients of a list of parameters, or of one.
  local function gradients_of(what, parameters)
    if tools.is_tensor(parameters) then parameters = { parameters } end
    if module.is_module(parameters) then
      misuse(what .. ": expected a list of parameters, got a module: write module:parameters()")
    end
    if type(parameters) ~= "table" then
      misuse(("%s: expected a list of parameters, got %s"):format(what, tools.type_of(parameters)))
    end
    local gradients = {}
    for i, p in ipairs(parameters) do
      if not tools.is_tensor(p) then
        misuse(("%s: parameter %d is %s, expected a tensor"):format(what, i, tools.type_of(p)))
      end
      local g = p.grad
      if g then
        tools.check(g)
        gradients[#gradients + 1] = g:detach()
      end
    end
    return gradients
  end

  local function check_limit(what, text, value)
    if type(value) ~= "number" or value ~= value or value <= 0 then
      misuse(("%s: the greatest %s is a number above 0, not %s"):format(what, text, tostring(value)))
    end
  end

  local function norm_type(options)
    if options ~= nil and type(options) ~= "table" then
      misuse(("clip_grad_norm_: argument 3 is %s, expected a table of options: {norm_type=}"):format(
        tools.type_of(options)))
    end
    for name in pairs(options or {}) do
      if name ~= "norm_type" then misuse("clip_grad_norm_: " .. tools.no_option(name, "norm_type")) end
    end
    local kind = options and options.norm_type or 2
    if type(kind) ~= "number" or kind ~= kind or kind <= 0 then
      misuse(("clip_grad_norm_: norm_type is %s, expected a number above 0, or math.huge"):format(tostring(kind)))
    end
    return kind
  end

  local function norm_of(t, kind)
    if kind == math.huge then return t:abs():max() end
    if kind == 2 then return t:norm() end
    if kind == 1 then return t:abs():sum() end
    return (t:abs() ^ kind):sum() ^ (1 / kind)
  end

  --- mr.nn.utils.clip_grad_norm_(parameters: tensor[], most: number [, {norm_type: number=2}]) -> norm: tensor
  --- Scales the gradients so that the norm of all of them together is at most this number. norm_type is the p of the
  --- norm; math.huge stands for the greatest absolute value. Returns the norm before scaling, as a tensor: nothing
  --- waits.
  -- The norm is a tensor, so nothing waits; the gradients are scaled by at most 1.
  function utils.clip_grad_norm_(parameters, most, options)
    local gradients = gradients_of("clip_grad_norm_", parameters)
    check_limit("clip_grad_norm_", "norm", most)
    local kind, norms = norm_type(options), {}
    for _, g in ipairs(gradients) do
      if g.numel > 0 then norms[#norms + 1] = norm_of(g, kind) end
    end
    if #norms == 0 then return mr.zeros({}) end
    return mr.no_grad(function()
      local total = norm_of(mr.stack(norms), kind)
      local scale = (most / (total + 1e-6)):clamp(nil, 1)
      for _, g in ipairs(gradients) do g:mul_(scale) end
      return total
    end)
  end

  --- mr.nn.utils.clip_grad_value_(parameters: tensor[], most: number)
  --- Limits each element of the gradients to the range from -most to most.
  function utils.clip_grad_value_(parameters, most)
    local gradients = gradients_of("clip_grad_value_", parameters)
    check_limit("clip_grad_value_", "value", most)
    mr.no_grad(function()
      for _, g in ipairs(gradients) do g:copy_(g:clamp(-most, most)) end
    end)
  end

  return utils
end
