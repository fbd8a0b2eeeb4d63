-- The record that covers the write is replaced by that of another stream, on the line of the wait.
-- expect: kind=read-after-write reason=recorded-on-wrong-stream first=10 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
local e = mr.event{name = "e"}
mr.op{name = "produce", writes = {x}, stream = a}
e:record(a)
e:record(c) b:wait_event(e)
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
