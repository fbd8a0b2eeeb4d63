-- The event was recorded before the write that matters (R11).
-- expect: kind=read-after-write reason=recorded-before-write first=11 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local e = mr.event{name = "e"}
e:record(a)
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: e:record(a)
b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
