-- The texts that an option or an argument can be, for completion.
local _, tools = ...

local values = {}

local DTYPES = { "bool", "u8", "i32", "i64", "f32", "f64", "f16", "bf16" }
local CHOOSERS = { "timed", "adversarial", "random:", "manual" }

local function devices()
  local list = { "cpu", "cuda" }
  for i = 0, tools.mr.device_count() - 1 do list[#list + 1] = "cuda:" .. i end
  return list
end

local function models() return { "h200", "h100", "a100", "rtx4090", "t4" } end

-- By the name of an option, and of a function for its first argument.
local OF = {
  dtype = DTYPES,
  device = devices,
  chooser = CHOOSERS,
  model = models,
  reduction = { "mean", "sum", "none" },
  ["mr.machine.chooser"] = CHOOSERS,
  ["mr.machine.model"] = models,
  ["mr.hazard.mode"] = { "off", "warn", "error", "collect" },
  ["mr.sync_debug"] = { "off", "warn", "error" },
}

-- nil: any text.
function values.of(name)
  local list = OF[name]
  if type(list) == "function" then return list() end
  return list
end

return values
