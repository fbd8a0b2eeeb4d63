-- A random fill is a write like any other.
-- expect: kind=write-after-write first=10 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.with(a, function()
  x:normal_()
end)
-- fix: b:wait_stream(a)
mr.with(b, function()
  x:uniform_()
end)
