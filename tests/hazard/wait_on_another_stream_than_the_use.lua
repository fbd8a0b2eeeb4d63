-- The wait is issued on one stream and the data used on another (R15).
-- expect: kind=read-after-write reason=wait-on-wrong-stream first=9 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
local e = a:record_event()
c:wait_event(e)
-- fix: b:wait_event(e)
mr.op{name = "consume", reads = {x}, stream = b}
