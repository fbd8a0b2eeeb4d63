-- mr.optim.lr_scheduler: rates of an optimiser that depend on the number of epochs, as in
-- torch.optim.lr_scheduler.
--
-- A scheduler keeps the rates that the groups had when it was made. Each step sets the rates that belong to the
-- new epoch, so another change of `lr` lasts until the next step.
--# lr_scheduler of mr.optim.lr_scheduler: Rates that depend on the number of epochs.
--# scheduler of mr.optim.lr_scheduler.Scheduler: What all schedulers have.
local mr = require "millrace"

return function(tools, is_optimiser, check_number)
  local misuse = tools.misuse
  local schedulers, methods, metatable = {}, {}, { __name = "scheduler" }

  local function set_rates(s)
    local rates = {}
    for i, base in ipairs(s.base_lrs) do
      rates[i] = s.rate(base, s.last_epoch)
      check_number(s.name, "the rate", rates[i], 0)
    end
    for i, group in ipairs(s.optimiser.param_groups) do group.lr = rates[i] end
  end

  local function set_epoch(s, epoch)
    local before = s.last_epoch
    s.last_epoch = epoch
    local done, problem = pcall(set_rates, s)
    if done then return end
    s.last_epoch = before
    error(problem, 0)
  end

  local function new(name, o, rate)
    if not is_optimiser(o) then
      misuse(("%s: argument 1 is %s, expected an optimiser"):format(name, tools.type_of(o)))
    end
    local s = { name = name, optimiser = o, rate = rate, base_lrs = {} }
    for i, group in ipairs(o.param_groups) do s.base_lrs[i] = group.lr end
    set_epoch(setmetatable(s, metatable), 0)
    return s
  end

  -- The only option of a scheduler.
  local function option(name, options, key, default)
    if options ~= nil and type(options) ~= "table" then
      misuse(("%s: argument 3 is %s, expected a table of options: {%s=}"):format(name, tools.type_of(options), key))
    end
    for given in pairs(options or {}) do
      if given ~= key then misuse(name .. ": " .. tools.no_option(given, key)) end
    end
    local value = options and options[key]
    if value == nil then value = default end
    check_number(name, key, value, 0)
    return value
  end

  local function check_count(name, what, value)
    if math.type(value) ~= "integer" or value < 1 then
      misuse(("%s: %s is %s, expected an integer from 1 on"):format(name, what, tostring(value)))
    end
  end

  -- ---------------------------------------------------------------- methods

  --- scheduler:step()
  --- Ends an epoch: sets the rates of the optimiser for the next one.
  function methods.step(s) set_epoch(s, s.last_epoch + 1) end

  --- scheduler:get_last_lr() -> rates: number[]
  --- Returns the rates of the groups of the optimiser.
  function methods.get_last_lr(s)
    local rates = {}
    for i, group in ipairs(s.optimiser.param_groups) do rates[i] = group.lr end
    return rates
  end

  --- scheduler:state_dict() -> state: table
  --- Returns the epoch and the first rates, as tensors.
  function methods.state_dict(s)
    return { last_epoch = mr.tensor(s.last_epoch, { dtype = "i64", device = "cpu" }),
      base_lrs = mr.tensor(s.base_lrs, { dtype = "f64", device = "cpu" }) }
  end

  --- scheduler:load_state_dict(state: table)
  --- Continues in the epoch of this state, and sets the rates of the optimiser.
  function methods.load_state_dict(s, dict)
    if type(dict) ~= "table" then
      misuse("load_state_dict: expected a table of tensors, got " .. tools.type_of(dict))
    end
    for _, name in ipairs { "last_epoch", "base_lrs" } do
      if not tools.is_tensor(dict[name]) then misuse(("load_state_dict: `%s` is missing"):format(name)) end
    end
    local rates, epoch = dict.base_lrs:totable(), dict.last_epoch:item()
    if type(rates) ~= "table" or #rates ~= #s.base_lrs then
      misuse("load_state_dict: `base_lrs` does not have a rate for each group of the optimiser")
    end
    if math.type(epoch) ~= "integer" or epoch < 0 then
      misuse(("load_state_dict: `last_epoch` is %s, expected an integer from 0 on"):format(tostring(epoch)))
    end
    s.base_lrs = rates
    set_epoch(s, epoch)
  end

  local function checked(name, method)
    return function(s, ...)
      if getmetatable(s) ~= metatable then
        misuse(("%s: expected a scheduler in front of the colon, got %s: write s:%s()"):format(name, tools.type_of(s),
          name))
      end
      return method(s, ...)
    end
  end
  for name, method in pairs(methods) do
    methods[name] = checked(name, method)
    metatable.methods = metatable.methods or {}
    metatable.methods[name] = mr.optim.lr_scheduler.Scheduler[name]
  end
  metatable.__index, metatable.help = metatable.methods, "mr.optim.lr_scheduler.Scheduler"
  metatable.__tostring = function(s) return ("%s (epoch %d)"):format(s.name, s.last_epoch) end

  -- ---------------------------------------------------------------- the rates

  --# lr_scheduler

  --- mr.optim.lr_scheduler.StepLR(o: table, step_size: integer [, {gamma: number=0.1}]) -> scheduler: table
  --- Multiplies the rates of the optimiser by gamma every step_size epochs. scheduler:step() ends an epoch.
  function schedulers.StepLR(o, step_size, options)
    check_count("StepLR", "step_size", step_size)
    local gamma = option("StepLR", options, "gamma", 0.1)
    return new("StepLR", o, function(base, epoch) return base * gamma ^ (epoch // step_size) end)
  end

  --- mr.optim.lr_scheduler.CosineAnnealingLR(o: table, t_max: integer [, {eta_min: number=0}]) -> scheduler: table
  --- Lowers the rates to eta_min in t_max epochs, as half a wave of a cosine.
  function schedulers.CosineAnnealingLR(o, t_max, options)
    check_count("CosineAnnealingLR", "t_max", t_max)
    local least = option("CosineAnnealingLR", options, "eta_min", 0)
    return new("CosineAnnealingLR", o, function(base, epoch)
      return least + (base - least) * (1 + math.cos(math.pi * epoch / t_max)) / 2
    end)
  end

  --- mr.optim.lr_scheduler.LambdaLR(o: table, fn: function) -> scheduler: table
  --- Multiplies the first rates by fn(epoch). The first epoch is 0.
  function schedulers.LambdaLR(o, fn)
    if type(fn) ~= "function" then misuse("LambdaLR: expected a function of the epoch, got " .. tools.type_of(fn)) end
    return new("LambdaLR", o, function(base, epoch)
      local factor = fn(epoch)
      check_number("LambdaLR", "what the function returned", factor, 0)
      return base * factor
    end)
  end

  schedulers.Scheduler = methods
  return schedulers
end
