-- mr.optim: optimisers as in torch.optim. A step of all parameters is one command (src/ops/optimise.h).
--
-- Parameters that have no gradient are left out, as in PyTorch. So parameters may be at different steps, and Adam's
-- factors depend on the step. One command is submitted for each step number, dtype and device that there is; usually
-- that is one.
--# optim of mr.optim: Optimisers: a step of all parameters is one command.
--# optimizer of mr.optim.Optimizer: What all optimisers have.
local mr = require "millrace"
local words = require "millrace.words"
local plural = words.plural

local DECAYS, DECOUPLED, NESTEROV, FIRST = 1, 2, 4, 8 -- as in src/ops/optimise_flags.h

return function(tools)
  local misuse = tools.misuse
  local common = require "millrace.parameters" (tools)
  local optim = {}

  -- ---------------------------------------------------------------- what they have in common

  local function check_number(what, name, value, least, most)
    if type(value) ~= "number" or value ~= value or value < least or (most and value >= most) then
      misuse(words.format("%s: %s is %s, expected a number from %g %s", what, name, tostring(value), least,
        most and "to below " .. most or "on"))
    end
  end

  local function check_dtype(class, i, p)
    local dtype = p.dtype
    if dtype ~= "f32" and dtype ~= "f64" then
      misuse(("%s: parameter %d: parameters are f32 or f64, not %s: keep an f32 copy of it"):format(class.name, i,
        dtype))
    end
  end

  local function check_parameter(class, i, p)
    if not tools.is_tensor(p) then
      misuse(("%s: parameter %d is %s, expected a tensor"):format(class.name, i, tools.type_of(p)))
    end
    tools.check(p)
    if not p.is_leaf then
      misuse(("%s: parameter %d is the result of an operation, not a leaf"):format(class.name, i))
    end
    check_dtype(class, i, p)
    if not p.contiguous then
      misuse(("%s: parameter %d is not contiguous: make the parameter of its contiguous()"):format(class.name, i))
    end
  end

  -- The parameters of a step are changed side by side, so no two of them may share memory.
  local function check_overlaps(class, groups)
    local list = {}
    for _, group in ipairs(groups) do
      for _, p in ipairs(group.params) do
        if p.numel > 0 then
          list[#list + 1] = { memory = p.storage_id, first = p.storage_offset * p.itemsize, bytes = p.nbytes }
        end
      end
    end
    table.sort(list, function(x, y)
      if x.memory ~= y.memory then return x.memory < y.memory end
      return x.first < y.first
    end)
    for i = 2, #list do
      local before, this = list[i - 1], list[i]
      if before.memory == this.memory and this.first < before.first + before.bytes then
        misuse(class.name .. ": two of the parameters share memory: leave one of them out, or make it of a clone()")
      end
    end
  end

  -- A group: its options, with defaults, and `params`.
  local function new_group(class, given, defaults, seen)
    local group = {}
    for name, value in pairs(defaults) do group[name] = value end
    for name, value in pairs(given) do
      if name ~= "params" and defaults[name] == nil then
        misuse(class.name .. ": " .. tools.no_option(name, words.keys(defaults)))
      end
      group[name] = value
    end
    if type(group.params) ~= "table" or #group.params == 0 then
      misuse(class.name .. ": the list of parameters is empty: expected a list such as module:parameters()")
    end
    for i, p in ipairs(group.params) do
      check_parameter(class, i, p)
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
      if defaults[name] == nil then misuse(class.name .. ": " .. tools.no_option(name, words.keys(defaults))) end
      defaults[name] = value
    end
    if is_group(parameters[1]) then
      for i, given in ipairs(parameters) do groups[i] = new_group(class, given, defaults, seen) end
    else
      groups[1] = new_group(class, { params = parameters }, defaults, seen)
    end
    check_overlaps(class, groups)
    return setmetatable({ param_groups = groups, state = setmetatable({}, { __mode = "k" }) }, class.metatable)
  end

  local function new_state(o, group, p)
    local state = { step = 0 }
    local of = p:name()
    for _, name in ipairs(o.state_names(group)) do
      state[name] = mr.zeros_like(p:detach())
      if of and #of <= words.LONGEST_NAME then state[name]:name(of .. "." .. name) end -- for reports
    end
    return state
  end

  local function is_beside(value, p) return value and value.dtype == p.dtype and value.device == p.device end

  local function copy_of(state)
    local copy = {}
    for name, value in pairs(state) do copy[name] = value end
    return copy
  end

  -- The state of p, where p is now: module:to() may have moved it. The former state stays, as the step may fail.
  local function state_of(o, group, p)
    local state = o.state[p]
    if not state then return new_state(o, group, p) end
    local there = nil
    for _, name in ipairs(o.state_names(group)) do
      if not is_beside(state[name], p) then
        there = there or copy_of(state)
        there[name] = state[name] and state[name]:to(p.device, p.dtype) or mr.zeros_like(p:detach())
      end
    end
    return there or state
  end

  -- Lists of parameters with a gradient that can share one command: { {p, g, state}, ... } by step, dtype and device.
  local function batches(o, group)
    local by_key, list = {}, {}
    for i, p in ipairs(group.params) do
      tools.check(p)
      check_dtype(o, i, p)
      local g = p.grad
      if g then
        tools.check(g)
        local state = state_of(o, group, p)
        local step = o.steps_alike and math.min(state.step, 1) or state.step
        local key = ("%d %s %s"):format(step, p.dtype, tostring(p.device))
        if not by_key[key] then
          by_key[key] = { step = state.step }
          list[#list + 1] = by_key[key]
        end
        table.insert(by_key[key], { p, g:contiguous(), state })
      end
    end
    return list
  end

  -- Submits one command; `names` are those of the states.
  local function submit(o, batch, names, row, flags, numbers)
    local tensors = {}
    for _, one in ipairs(batch) do
      tensors[#tensors + 1] = one[1]
      tensors[#tensors + 1] = one[2]
      for _, name in ipairs(names) do tensors[#tensors + 1] = one[3][name] end
    end
    tools.step(row, flags, numbers, tensors)
    for _, one in ipairs(batch) do
      local p, state = one[1], one[3]
      state.step = state.step + 1
      o.state[p] = state
    end
  end

  local methods = {}

  --- o:step([closure: function]) -> loss: any
  --- Changes all parameters that have a gradient, in one command on the current stream. A closure is called first: it
  --- computes the gradients, and its result is returned.
  -- All groups are checked before the first command is submitted. The closure computes the gradients, and its loss is
  -- returned.
  function methods.step(o, closure)
    if closure ~= nil and type(closure) ~= "function" then
      misuse("step: expected a function that computes the loss, got " .. tools.type_of(closure))
    end
    local loss = closure and mr.enable_grad(closure)
    local all = {}
    for k, group in ipairs(o.param_groups) do
      o.check(group)
      all[k] = batches(o, group)
    end
    for k, group in ipairs(o.param_groups) do
      for _, batch in ipairs(all[k]) do submit(o, batch, o.state_names(group), o.command(group, batch)) end
    end
    return loss
  end

  -- Each parameter with its number, over all groups.
  local function each_parameter(o, visit)
    local number = 0
    for _, group in ipairs(o.param_groups) do
      for _, p in ipairs(group.params) do
        number = number + 1
        visit(p, number, group)
      end
    end
  end

  --- o:zero_grad([set_to_none: boolean=true])
  --- Drops the gradients of the parameters, or with false fills them with zeros.
  function methods.zero_grad(o, set_to_none)
    local list = {}
    each_parameter(o, function(p) list[#list + 1] = p end)
    common.zero_grad(list, set_to_none)
  end

  --- o:state_dict() -> state: table
  --- Returns the averages and step numbers as tensors, by the number of the parameter: mr.save("o.safetensors",
  --- o:state_dict()).
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

  -- The entry `name` of parameter `number`: a tensor of its shape, or nil.
  local function loaded(dict, number, name, shape)
    local key = number .. "." .. name
    local value = dict[key]
    if value == nil then return nil end
    if not tools.is_tensor(value) then
      misuse(("load_state_dict: `%s` is %s, expected a tensor"):format(key, tools.type_of(value)))
    end
    if table.concat(value.shape, "x") ~= table.concat(shape, "x") then
      misuse(("load_state_dict: `%s` has another shape than parameter %d"):format(key, number))
    end
    return value
  end

  local function loaded_step(dict, number)
    local value = loaded(dict, number, "step", {})
    local step = value and value:item()
    if step and (math.type(step) ~= "integer" or step < 0) then
      misuse(("load_state_dict: `%d.step` is %s, expected an integer from 0 on"):format(number, tostring(step)))
    end
    return step
  end

  --- o:load_state_dict(state: table)
  --- Continues with this state of an optimiser. All entries are checked first.
  function methods.load_state_dict(o, dict)
    if type(dict) ~= "table" then
      misuse("load_state_dict: expected a table of tensors, got " .. tools.type_of(dict))
    end
    local found, used, given = {}, 0, 0
    for _ in pairs(dict) do given = given + 1 end
    each_parameter(o, function(p, number, group)
      local step = loaded_step(dict, number)
      if not step then return end
      local state = { step = step }
      used = used + 1
      for _, name in ipairs(o.state_names(group)) do
        local value = loaded(dict, number, name, p.shape)
        if not value then misuse(("load_state_dict: `%d.%s` is missing"):format(number, name)) end
        state[name] = value:to(p.device, p.dtype):clone()
        used = used + 1
      end
      found[p] = state
    end)
    if used ~= given then
      misuse(("load_state_dict: %d of the %d entries belong to no parameter of this optimiser"):format(given - used,
        given))
    end
    for p, state in pairs(found) do o.state[p] = state end
  end

  local metatables = {}
  local function is_optimiser(o) return type(o) == "table" and metatables[getmetatable(o)] ~= nil end

  -- Wraps a method: calls it if an optimiser stands in front of the colon.
  local function checked(name, method)
    return function(o, ...)
      if not is_optimiser(o) then
        misuse(("%s: expected an optimiser in front of the colon, got %s: write o:%s()"):format(name, tools.type_of(o),
          name))
      end
      return method(o, ...)
    end
  end

  -- Instances have the methods of mr.optim.Optimizer, so that help finds them.
  local found = {}
  for name, method in pairs(methods) do
    methods[name], found[name] = checked(name, method), mr.optim.Optimizer[name]
  end
  optim.Optimizer = methods

  -- o.lr reads the rate of the first group, and sets those of all.
  local function new_class(name, class)
    class.name = name
    class.metatable = {
      __name = name,
      methods = found,
      help = "mr.optim.Optimizer",
      __index = function(o, key)
        if key == "lr" then return o.param_groups[1].lr end
        return class[key] or found[key]
      end,
      __newindex = function(o, key, value)
        if key ~= "lr" then misuse(("%s: `%s` cannot be set; `lr` can"):format(name, tostring(key))) end
        check_number(name, "lr", value, 0)
        for _, group in ipairs(o.param_groups) do group.lr = value end
      end,
      __tostring = function(o) return words.format("%s (%s, lr %g)", name, plural(#o.param_groups, "group"), o.lr) end,
    }
    metatables[class.metatable] = true
    optim[name] = function(parameters, options) return new(class, parameters, options) end
  end

  -- ---------------------------------------------------------------- SGD

  local MOMENTUM, NOTHING = { "momentum_buffer" }, {}
  local SGD = {
    defaults = { lr = 0.001, momentum = 0, dampening = 0, weight_decay = 0, nesterov = false },
    steps_alike = true, -- all after the first
    check = function(group)
      for _, name in ipairs { "lr", "momentum", "dampening", "weight_decay" } do
        check_number("SGD", name, group[name], 0)
      end
      if group.nesterov and (group.momentum == 0 or group.dampening ~= 0) then
        misuse("SGD: nesterov needs a momentum, and no dampening")
      end
    end,
  }

  function SGD.state_names(group) return group.momentum == 0 and NOTHING or MOMENTUM end

  function SGD.command(group, batch)
    local flags = (group.weight_decay ~= 0 and DECAYS or 0) | (group.nesterov and NESTEROV or 0)
    local numbers = { group.lr, group.weight_decay, group.momentum, 1 - group.dampening }
    if group.momentum == 0 then return "sgd_step", flags, numbers end
    return "momentum_step", flags | (batch.step == 0 and FIRST or 0), numbers
  end

  -- ---------------------------------------------------------------- Adam, AdamW

  local AVERAGES = { "exp_avg", "exp_avg_sq" }

  local function adam(name, decay, decoupled)
    local class = {
      defaults = { lr = 0.001, betas = { 0.9, 0.999 }, eps = 1e-8, weight_decay = decay },
      check = function(group)
        for _, option in ipairs { "lr", "eps", "weight_decay" } do check_number(name, option, group[option], 0) end
        if type(group.betas) ~= "table" then misuse(name .. ": betas are a table of two numbers") end
        for i = 1, 2 do check_number(name, "a beta", group.betas[i], 0, 1) end
      end,
    }

    function class.state_names() return AVERAGES end

    function class.command(group, batch)
      local b1, b2, step = group.betas[1], group.betas[2], batch.step + 1
      local flags = group.weight_decay == 0 and 0 or decoupled and DECAYS | DECOUPLED or DECAYS
      local factor = decoupled and 1 - group.lr * group.weight_decay or group.weight_decay
      return "adam_step", flags, { group.lr / (1 - b1 ^ step), factor, b1, 1 - b1, b2, 1 - b2,
        math.sqrt(1 - b2 ^ step), group.eps }
    end

    new_class(name, class)
  end

  -- ---------------------------------------------------------------- RMSprop

  local SQUARES, SQUARES_AND_MOMENTUM = { "square_avg" }, { "square_avg", "momentum_buffer" }
  local RMSprop = {
    defaults = { lr = 0.01, alpha = 0.99, eps = 1e-8, weight_decay = 0, momentum = 0 },
    check = function(group)
      for _, option in ipairs { "lr", "alpha", "eps", "weight_decay", "momentum" } do
        check_number("RMSprop", option, group[option], 0)
      end
    end,
    steps_alike = true,
  }

  function RMSprop.state_names(group) return group.momentum == 0 and SQUARES or SQUARES_AND_MOMENTUM end

  function RMSprop.command(group)
    local row = group.momentum == 0 and "rmsprop_step" or "rmsprop_momentum_step"
    return row, group.weight_decay == 0 and 0 or DECAYS, { group.lr, group.weight_decay, group.alpha, 1 - group.alpha,
      group.eps, group.momentum }
  end

  --# optim

  --- mr.optim.SGD(parameters: tensor[] [, {lr: number=0.001, momentum: number=0, dampening: number=0, weight_decay:
  ---   number=0, nesterov: boolean=false}]) -> optimiser: table
  --- Stochastic gradient descent. optimiser:step() changes all parameters that have a gradient, in one command on the
  --- current stream; optimiser:zero_grad() drops the gradients; optimiser.lr can be set. The parameters are a list of
  --- tensors, or of groups {params=, lr=, ...}.
  new_class("SGD", SGD)

  --- mr.optim.RMSprop(parameters: tensor[] [, {lr: number=0.01, alpha: number=0.99, eps: number=1e-8, weight_decay:
  ---   number=0, momentum: number=0}]) -> optimiser: table
  --- Divides each gradient by the root of the average of its squares; methods as those of SGD.
  new_class("RMSprop", RMSprop)

  --- mr.optim.Adam(parameters: tensor[] [, {lr: number=0.001, betas: number[]={0.9, 0.999}, eps: number=1e-8,
  ---   weight_decay: number=0}]) -> optimiser: table
  --- Adam; methods as those of SGD. optimiser:state_dict() and load_state_dict() are for its averages.
  adam("Adam", 0, false)

  --- mr.optim.AdamW(parameters: tensor[] [, {lr: number=0.001, betas: number[]={0.9, 0.999}, eps: number=1e-8,
  ---   weight_decay: number=0.01}]) -> optimiser: table
  --- Adam with a weight decay that is separate from the gradient.
  adam("AdamW", 0.01, true)
  optim.lr_scheduler = require "millrace.optim.schedulers" (tools, is_optimiser, check_number)
  return optim
end
