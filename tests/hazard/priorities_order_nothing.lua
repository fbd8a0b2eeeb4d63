-- A high priority is no order (R8).
-- expect: kind=read-after-write reason=no-path first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{priority = -5, name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
