-- The wait came before the record: it found nothing to wait for (R13).
-- expect: kind=read-after-write reason=never-recorded first=11 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local e = mr.event{name = "e"}
b:wait_event(e)
mr.op{name = "produce", writes = {x}, stream = a}
e:record(a)
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
