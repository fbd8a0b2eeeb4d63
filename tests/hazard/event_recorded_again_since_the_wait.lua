-- A wait keeps the record that it found; recording again does not move it (R12).
-- expect: kind=read-after-write reason=event-rerecorded first=11 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local e = a:record_event()
b:wait_event(e)
mr.op{name = "produce", writes = {x}, stream = a}
e:record(a)
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
