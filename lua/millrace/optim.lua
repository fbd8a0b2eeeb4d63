-- mr.optim: optimisers as in torch.optim. A step of all parameters is one command (src/ops/optimise.h).
--
-- Parameters that have no gradient are left out, as in PyTorch. So parameters may be at different steps, and Adam's
-- factors depend on the step: one command is submitted for each step number, dtype and device that there is; usually
-- that is one.
local mr = require "millrace"

local DECAYS, DECOUPLED, NESTEROV, FIRST = 1, 2, 4, 8 -- as in src/ops/optimise_flags.h

return function(tools)
  local misuse = tools.misuse
  local optim = {}

  -- ---------------------------------------------------------------- what they have in common

  local function check_number(what, name, value, least, most)
    if type(value) ~= "number" or value ~= value or value < least or (most and value >= most) then
      misuse(("%s: %s is %s, expected a number from %g %s"):format(what, name, tostring(value), least,
        most and "to below " .. most or "on"))
    end
  end

  -- A group: its options, with the defaults for what is not given, and `params`.
  local function new_group(class, given, defaults, seen)
    local group = {}
    for name, value in pairs(defaults) do group[name] = value end
    for name, value in pairs(given) do
      if name ~= "params" and defaults[name] == nil then
        misuse(("%s: there is no option `%s`"):format(class.name, tostring(name)))
      end
      group[name] = value
    end
    if type(group.params) ~= "table" or #group.params == 0 then
      misuse(class.name .. ": the list of parameters is empty")
    end
    for i, p in ipairs(group.params) do
      if not tools.is_tensor(p) then
        misuse(("%s: parameter %d is %s, expected a tensor"):format(class.name, i, tools.type_of(p)))
      end
      if not p.is_leaf then
        misuse(("%s: parameter %d is the result of an operation, not a leaf"):format(class.name, i))
      end
      if seen[p] then misuse(("%s: parameter %d is listed twice"):format(class.name, i)) end
      seen[p] = true
    end
    class.check(group)
    return group
  end

  local function is_group(value) return type(value) == "table" and value.params ~= nil end

  -- parameters: a list of tensors, or of groups {params=, lr=, ...}
  local function new(class, parameters, options)
    if type(parameters) ~= "table" then
      misuse(("%s: expected a list of parameters, got %s"):format(class.name, tools.type_of(parameters)))
    end
    if options ~= nil and type(options) ~= "table" then
      misuse(("%s: expected a table of options, got %s"):format(class.name, tools.type_of(options)))
    end
    local defaults, seen, groups = {}, {}, {}
    for name, value in pairs(class.defaults) do defaults[name] = value end
    for name, value in pairs(options or {}) do
      if defaults[name] == nil then misuse(("%s: there is no option `%s`"):format(class.name, tostring(name))) end
      defaults[name] = value
    end
    if is_group(parameters[1]) then
      for i, given in ipairs(parameters) do groups[i] = new_group(class, given, defaults, seen) end
    else
      groups[1] = new_group(class, { params = parameters }, defaults, seen)
    end
    return setmetatable({ param_groups = groups, state = setmetatable({}, { __mode = "k" }) }, class.metatable)
  end

  -- Lists of parameters with a gradient that can share one command: { {p, g, state}, ... } by step, dtype and device.
  local function batches(o, group, new_state)
    local by_key, list = {}, {}
    for _, p in ipairs(group.params) do
      local g = p.grad
      if g then
        local state = o.state[p]
        if not state then
          state = new_state(p)
          o.state[p] = state
        end
        local step = o.steps_alike and math.min(state.step, 1) or state.step
        local key = ("%d %s %s"):format(step, p.dtype, tostring(p.device))
        if not by_key[key] then
          by_key[key] = { step = state.step }
          list[#list + 1] = by_key[key]
        end
        table.insert(by_key[key], { p, g:contiguous(), state })
        state.step = state.step + 1
      end
    end
    return list
  end

  -- Submits one command; `names` are those of the states.
  local function submit(row, batch, names, flags, numbers)
    local tensors = {}
    for _, one in ipairs(batch) do
      tensors[#tensors + 1] = one[1]
      tensors[#tensors + 1] = one[2]
      for _, name in ipairs(names) do tensors[#tensors + 1] = one[3][name] end
    end
    tools.step(row, flags, numbers, tensors)
  end

  local methods = {}

  function methods.zero_grad(o)
    for _, group in ipairs(o.param_groups) do
      for _, p in ipairs(group.params) do p.grad = nil end
    end
  end

  -- Each parameter with its number, over all groups.
  local function each_parameter(o, visit)
    local number = 0
    for _, group in ipairs(o.param_groups) do
      for _, p in ipairs(group.params) do
        number = number + 1
        visit(p, number)
      end
    end
  end

  function methods.state_dict(o)
    local dict = {}
    each_parameter(o, function(p, number)
      for name, value in pairs(o.state[p] or {}) do
        dict[number .. "." .. name] = tools.is_tensor(value) and value:detach() or
          mr.tensor(value, { dtype = "i64", device = "cpu" })
      end
    end)
    return dict
  end

  function methods.load_state_dict(o, dict)
    local found, used, given = {}, 0, 0
    for _ in pairs(dict) do given = given + 1 end
    each_parameter(o, function(p, number)
      local step = dict[number .. ".step"]
      if not step then return end
      local state = { step = step:item() }
      used = used + 1
      for _, name in ipairs(o.states) do
        local value = dict[number .. "." .. name]
        if value then
          if table.concat(value.shape, "x") ~= table.concat(p.shape, "x") then
            misuse(("load_state_dict: `%d.%s` has another shape than parameter %d"):format(number, name, number))
          end
          state[name] = value:to(p.device, p.dtype):clone()
          used = used + 1
        end
      end
      found[p] = state
    end)
    if used ~= given then
      misuse(("load_state_dict: %d of the %d entries belong to no parameter of this optimiser"):format(given - used,
        given))
    end
    for p, state in pairs(found) do o.state[p] = state end
  end

  -- o.lr reads the rate of the first group, and sets those of all.
  local function new_class(name, class)
    class.name = name
    class.metatable = {
      __name = name,
      __index = function(o, key)
        if key == "lr" then return o.param_groups[1].lr end
        return class[key] or methods[key]
      end,
      __newindex = function(o, key, value)
        if key ~= "lr" then misuse(("%s: `%s` cannot be set; `lr` can"):format(name, tostring(key))) end
        check_number(name, "lr", value, 0)
        for _, group in ipairs(o.param_groups) do group.lr = value end
      end,
      __tostring = function(o) return ("%s (%d groups, lr %g)"):format(name, #o.param_groups, o.lr) end,
    }
    optim[name] = function(parameters, options) return new(class, parameters, options) end
  end

  -- ---------------------------------------------------------------- SGD

  local function zeros_like(p) return mr.zeros_like(p:detach()):contiguous() end

  local SGD = {
    defaults = { lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false },
    states = { "momentum_buffer" },
    steps_alike = true, -- all behind the first
    check = function(group)
      for _, name in ipairs { "lr", "momentum", "weight_decay" } do check_number("SGD", name, group[name], 0) end
      if group.nesterov and (group.momentum == 0 or group.dampening ~= 0) then
        misuse("SGD: nesterov needs a momentum, and no dampening")
      end
    end,
  }

  function SGD.step(o)
    for _, group in ipairs(o.param_groups) do
      local has_momentum = group.momentum ~= 0
      local function new_state(p) return { step = 0, momentum_buffer = has_momentum and zeros_like(p) or nil } end
      local flags = (group.weight_decay ~= 0 and DECAYS or 0) | (group.nesterov and NESTEROV or 0)
      local numbers = { group.lr, group.weight_decay, group.momentum, 1 - group.dampening }
      for _, batch in ipairs(batches(o, group, new_state)) do
        local first = batch.step == 0 and FIRST or 0
        if has_momentum then submit("momentum_step", batch, SGD.states, flags | first, numbers)
        else submit("sgd_step", batch, {}, flags, numbers) end
      end
    end
  end

  -- ---------------------------------------------------------------- Adam, AdamW

  local function adam(name, decay, decoupled)
    local class = {
      defaults = { lr = 0.001, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = decay },
      states = { "exp_avg", "exp_avg_sq" },
      check = function(group)
        for _, option in ipairs { "lr", "eps", "weight_decay" } do check_number(name, option, group[option], 0) end
        if type(group.betas) ~= "table" then misuse(name .. ": betas are a table of two numbers") end
        for i = 1, 2 do check_number(name, "a beta", group.betas[i], 0, 1) end
      end,
    }
    local function new_state(p) return { step = 0, exp_avg = zeros_like(p), exp_avg_sq = zeros_like(p) } end

    function class.step(o)
      for _, group in ipairs(o.param_groups) do
        local b1, b2 = group.betas[1], group.betas[2]
        local flags = group.weight_decay == 0 and 0 or decoupled and DECAYS | DECOUPLED or DECAYS
        local factor = decoupled and 1 - group.lr * group.weight_decay or group.weight_decay
        for _, batch in ipairs(batches(o, group, new_state)) do
          local step = batch.step + 1
          submit("adam_step", batch, class.states, flags, { group.lr / (1 - b1 ^ step), factor, b1, 1 - b1, b2, 1 - b2,
            math.sqrt(1 - b2 ^ step), group.eps })
        end
      end
    end
    new_class(name, class)
  end

  new_class("SGD", SGD)
  adam("Adam", 0, false)
  adam("AdamW", 0.01, true)
  return optim
end
