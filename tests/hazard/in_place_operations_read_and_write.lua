-- An in-place operation reads and writes: both sides are the whole tensor.
-- expect: kind=read-after-write first=10 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.with(a, function()
  x:add_(1)
end)
-- fix: b:wait_stream(a)
mr.with(b, function()
  x:mul_(2)
end)
