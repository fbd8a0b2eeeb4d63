-- wait_stream after the use is too late as well (R15).
-- expect: kind=read-after-write reason=waited-after-use first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
b:wait_stream(a)
