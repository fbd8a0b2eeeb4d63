-- A temporary of one stream may be collected at any time: the free is in that order.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a = mr.stream{name = "a"}
mr.synchronize()
mr.with(a, function()
  local t = mr.ones(64)
  for _ = 1, 10 do t = t * 2 end
end)
collectgarbage() collectgarbage()
mr.op{name = "more", stream = a}
