-- Pinned memory stays while a pending copy names it.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a = mr.stream{name = "a"}
mr.synchronize()
do
  local host = mr.zeros(64, {device = "cpu", pinned = true})
  local x = mr.zeros(64, {stream = a})
  mr.memcpy_async(x, host, {stream = a})
end
collectgarbage() collectgarbage()
a:synchronize()
