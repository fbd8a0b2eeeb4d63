-- A wait makes the waiter wait, not the one that is waited for (R15).
-- expect: kind=read-after-write reason=no-path first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
b:wait_stream(a)
mr.op{name = "produce", writes = {x}, stream = b}
-- fix: a:wait_stream(b)
mr.op{name = "consume", reads = {x}, stream = a}
