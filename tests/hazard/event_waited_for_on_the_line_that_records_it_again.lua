-- The wait is for the record of before, on another stream; the one that would cover it comes right behind.
-- expect: kind=read-after-write reason=event-rerecorded first=11 second=14 fix=b:wait_event(e)
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
local e = mr.event{name = "e"}
e:record(c)
mr.op{name = "produce", writes = {x}, stream = a}
b:wait_event(e) e:record(a)
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
