-- R33: record_stream holds for every free. It says nothing of the tensor's own stream, so that is waited for.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(64, {stream = a, name = "x"})
local event = a:record_event()
b:wait_event(event)
mr.op{name = "use", reads = {x}, stream = b}
x:record_stream(b)
event:synchronize()
x:free{sync = true}
