-- The event is recorded on the current stream, and the data are made on another one.
-- expect: kind=read-after-write reason=recorded-on-wrong-stream first=10 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
mr.synchronize()
local ready = mr.event{name = "ready"}
a:run(function() x:fill_(3) end)
ready:record()
b:wait_event(ready)
-- fix: b:wait_stream(a)
b:run(function() return x:sum() end)
