-- With an event each way a double buffer is in order.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local full, free = mr.event(), mr.event()
for _ = 1, 3 do
  a:wait_event(free)
  mr.op{name = "fill", writes = {x}, stream = a}
  full:record(a)
  b:wait_event(full)
  mr.op{name = "use", reads = {x}, stream = b}
  free:record(b)
end
