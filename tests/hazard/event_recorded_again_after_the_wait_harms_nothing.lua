-- A record after the wait does not undo it (R12).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
b:wait_event(e)
e:record(a)
mr.op{name = "consume", reads = {x}, stream = b}
