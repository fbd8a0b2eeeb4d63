-- The host waited in between: that wait was not for this write.
-- expect: kind=read-after-write reason=no-path first=11 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
b:wait_stream(a)
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
