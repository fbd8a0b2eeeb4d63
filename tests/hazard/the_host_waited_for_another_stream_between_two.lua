-- The host waits between two streams, for a third one.
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=9 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
local x = mr.zeros(8)
mr.synchronize()
a:run(function() x:add_(1) end)
c:synchronize()
-- fix: a:synchronize()
b:run(function() x:add_(1) end)
