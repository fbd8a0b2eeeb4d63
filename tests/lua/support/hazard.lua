-- What the tests of mr.hazard begin and end with, and how they ask for advice.
local mr = require "millrace"

local M = {}

-- Nothing pending, nothing known, nothing asked for. The checker goes off first: what a test leaves behind is garbage
-- by now, and a wait lets the collector free it while work is pending.
function M.fresh()
  mr.hazard.mode("off")
  for device = 0, mr.device_count() - 1 do mr.synchronize(device) end
  mr.hazard.advice(false)
  mr.hazard.clear()
  mr.hazard.ignore()
end

-- The kinds of the advice that `fn` is given, and the hazards found in it.
function M.advice_of(fn)
  mr.hazard.mode("collect")
  mr.hazard.advice()
  fn()
  local kinds = {}
  for i, r in ipairs(mr.hazard.advice()) do kinds[i] = r.kind end
  return kinds, mr.hazard.reports()
end

return M
