-- Waiting for an event that was never recorded succeeds silently (R13).
-- expect: kind=read-after-write reason=never-recorded first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local e = mr.event{name = "e"}
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: e:record(a)
b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
