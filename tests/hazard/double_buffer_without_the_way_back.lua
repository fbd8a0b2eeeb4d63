-- Compute waits for the copy; nothing makes the copy wait before it fills the buffer again.
-- expect: kind=write-after-read reason=one-way first=16 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local copy, compute = a, b
local full = mr.event{name = "full"}
for _ = 1, 2 do
  -- fix: copy:wait_stream(compute)
  mr.op{name = "fill", writes = {x}, stream = copy}
  full:record(copy)
  compute:wait_event(full)
  mr.op{name = "use", reads = {x}, stream = compute}
end
