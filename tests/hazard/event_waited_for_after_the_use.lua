-- A wait delays the work behind it, not the work before it (R15).
-- expect: kind=read-after-write reason=waited-after-use first=9 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
b:wait_event(e)
