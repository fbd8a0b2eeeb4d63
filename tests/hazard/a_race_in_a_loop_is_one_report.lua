-- A pair of places is reported once, with a count.
-- expect: kind=read-after-write first=12 second=14 count=10
-- expect: kind=write-after-read first=14 second=12 count=9
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
for _ = 1, 10 do
  -- fix: a:wait_stream(b)
  mr.op{name = "produce", writes = {x}, stream = a}
  -- fix: b:wait_stream(a)
  mr.op{name = "consume", reads = {x}, stream = b}
end
