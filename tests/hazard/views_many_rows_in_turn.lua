-- Many disjoint rows, each in its own order, and one of them without.
-- expect: kind=read-after-write reason=waited-before-work first=10 second=13 count=1
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
for i = 1, 8 do
  mr.op{name = "produce", writes = {m:select(1, i)}, stream = a}
  if i ~= 5 then b:wait_stream(a) end
  -- fix: b:wait_stream(a)
  mr.op{name = "consume", reads = {m:select(1, i)}, stream = b}
end
