-- Closing a stream undoes nothing (R9).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
a:close()
b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
