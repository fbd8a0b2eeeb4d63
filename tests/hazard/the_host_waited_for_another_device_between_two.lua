-- options: --device virtual:2
-- The host waits between two streams of one device, for the other device.
-- expect: kind=read-after-write reason=other-device-synchronized first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize(0)
a:run(function() x:add_(1) end)
mr.synchronize(1)
-- fix: mr.synchronize(0)
b:run(function() x:add_(1) end)
