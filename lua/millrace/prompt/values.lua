-- The texts that an option or an argument can be, for completion.
local _, tools = ...

local values = {}

local CHOOSERS = { "timed", "adversarial", "random:", "manual" }
local DTYPES = { "bool", "u8", "i32", "i64", "f32", "f64", "f16", "bf16" }
local MODES_OF_CAPTURE = { "global", "thread", "relaxed" }
local MODES_OF_SIZES = { "nearest", "linear", "bilinear" }

local function devices()
  local list = { "cpu", "cuda" }
  for i = 0, tools.mr.device_count() - 1 do list[#list + 1] = "cuda:" .. i end
  return list
end

local function devices_and_dtypes()
  local list = devices()
  return table.move(DTYPES, 1, #DTYPES, #list + 1, list)
end

local function models() return { "h200", "h100", "a100", "rtx4090", "t4" } end

-- Kinds of hazards, and of advice.
local function kinds()
  local list = {}
  for _, word in ipairs((select(3, tools.mr.docs()))) do
    if word.kind == "kind" or word.kind == "advice" then list[#list + 1] = word.name end
  end
  return list
end

-- The own names of the streams or tensors that variables hold. A closed stream or a freed tensor has none.
local function names_of(kind)
  return function()
    local commands, list = tools.require("commands"), {}
    for _, variable in ipairs(commands.names_of(kind)) do
      local object = commands.value_of(variable)
      local done, name = pcall(function() return kind == "tensor" and object:name() or object.name end)
      if done and type(name) == "string" then list[#list + 1] = name end
    end
    return list
  end
end

-- By the name of an option or an argument, after the name of a function where it has another meaning elsewhere.
local OF = {
  chooser = CHOOSERS,
  device = devices,
  dtype = DTYPES,
  model = models,
  padding = { "same", "valid" },
  reduction = { "mean", "sum", "none" },
  op = { "sum", "prod", "min", "max", "avg" },
  ["mr.machine.chooser.name"] = CHOOSERS,
  ["mr.machine.model.name"] = models,
  ["mr.machine.fault.code"] = { "illegal-address", "launch-timeout", "assert", "misaligned-address",
    "launch-failure" },
  ["mr.hazard.mode.mode"] = { "off", "warn", "error", "collect" },
  ["mr.hazard.ignore.kind"] = kinds,
  ["mr.hazard.ignore.tensor"] = names_of "tensor",
  ["mr.sync_debug.mode"] = { "off", "warn", "error" },
  ["mr.graph.capture.mode"] = MODES_OF_CAPTURE,
  ["mr.graph.begin.mode"] = MODES_OF_CAPTURE,
  ["update.mode"] = MODES_OF_CAPTURE,
  ["interpolate.mode"] = MODES_OF_SIZES,
  ["mr.nn.Upsample.mode"] = MODES_OF_SIZES,
  ["pad.mode"] = { "constant", "reflect", "replicate", "circular" },
  ["mr.meshgrid.indexing"] = { "ij", "xy" },
  ["to.where"] = devices_and_dtypes,
  ["overlap.a"] = names_of "stream",
  ["overlap.b"] = names_of "stream",
  ["idle.s"] = names_of "stream",
}

-- The values that an option or an argument of that function can have; the name of the function may be nil. nil: any
-- text.
function values.of(fn, parameter)
  if not parameter then return nil end
  local list = fn and OF[("%s.%s"):format(fn, parameter)] or OF[parameter]
  if type(list) == "function" then return list() end
  return list
end

-- name = note of the options of a function whose usage line does not list them; nil: it does.
function values.options(fn)
  if fn ~= "mr.machine.settings" then return nil end
  local options = {}
  for name, value in pairs(tools.mr.machine.settings()) do options[name] = "now " .. tostring(value) end
  return options
end

return values
