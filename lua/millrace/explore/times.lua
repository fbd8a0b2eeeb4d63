-- Times that a script prints. Those of timelines and queues are times of each run, and they depend on the schedule. So
-- texts of a script that reads them and that differ only in times count as the same, and the first of them is shown.
local times = {}

local UNITS = { "ns", "us", "µs", "ms", "s", "seconds", "milliseconds" }

-- The text with `#` in place of each number in front of a unit of time.
local function mask(text)
  for _, unit in ipairs(UNITS) do
    text = text:gsub("%f[%w.]%d[%d.]*[eE]?[+-]?%d*( ?)" .. unit .. "%f[^%w_]", "#%1" .. unit)
  end
  return text
end

-- Returns an object: `m.masked(text)` is compared, `m.shown(masked)` is the first text with this mask, and `m.differ()`
-- tells whether there was another one.
function times.new()
  local first, has_others = {}, false
  local m = {}
  function m.masked(text)
    local masked = mask(text)
    has_others = has_others or first[masked] ~= nil and first[masked] ~= text
    first[masked] = first[masked] or text
    return masked
  end
  function m.shown(masked) return first[masked] or masked end
  function m.differ() return has_others end
  return m
end

return times
