-- Functions that modules and optimisers share for parameters. The module is a function of the tools that bind/nn/nn.c
-- hands to both.
local mr = require "millrace"

return function(tools)
  local misuse = tools.misuse
  local parameters = {}

  -- A boolean that is true by default; every other value is an error.
  function parameters.check_switch(what, name, value)
    if value ~= nil and type(value) ~= "boolean" then
      misuse(("%s: %s is %s, expected true or false"):format(what, name, tools.type_of(value)))
    end
    return value ~= false
  end

  -- Drops the gradients of a list, or with set_to_none=false fills them with zeros.
  function parameters.zero_grad(list, set_to_none)
    if type(set_to_none) == "table" and set_to_none.set_to_none ~= nil then
      misuse(("zero_grad: write zero_grad(%s): set_to_none is the argument itself"):format(
        tostring(set_to_none.set_to_none)))
    end
    local drops = parameters.check_switch("zero_grad", "set_to_none", set_to_none)
    for _, p in ipairs(list) do
      if drops then p.grad = nil elseif p.grad then tools.check(p.grad) end
    end
    if drops then return end
    mr.no_grad(function()
      for _, p in ipairs(list) do
        if p.grad then p.grad:zero_() end
      end
    end)
  end

  return parameters
end
