-- The host waits between two streams, for an event from before the write.
-- expect: kind=read-after-write reason=recorded-before-write first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize()
local e = a:record_event()
a:run(function() x:add_(1) end)
e:synchronize()
-- fix: a:synchronize()
b:run(function() x:add_(1) end)
