-- A tensor that the collector takes while another stream uses it is freed too early.
-- expect: kind=use-after-free reason=collected-while-pending first=11 second=collected
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
do
  local x = mr.zeros(64, {stream = a, name = "x"})
  b:wait_stream(a)
  mr.op{name = "use", reads = {x}, stream = b}
  -- fix: x:record_stream(b)
end
collectgarbage() collectgarbage()
mr.op{name = "more", stream = a}
