-- The second record replaces the first: the wait covers only the second stream (R12).
-- expect: kind=read-after-write reason=recorded-on-wrong-stream first=10 second=15
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
local e = mr.event{name = "e"}
mr.op{name = "produce", writes = {x}, stream = a}
e:record(a)
e:record(c)
-- fix: b:wait_stream(a)
b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
