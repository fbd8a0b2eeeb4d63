-- A copy of pageable memory that waits (R23) comes before what follows it, and not after what another stream has to do.
-- expect: kind=read-after-write first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, pageable = mr.zeros(4, {name = "x"}), mr.zeros(4, {device = "cpu", name = "pageable"})
mr.synchronize()
a:host_func(function()
  pageable:fill_(9)
end)
-- fix: b:wait_stream(a)
mr.with(b, function() x:copy_(pageable) end)
mr.synchronize()
