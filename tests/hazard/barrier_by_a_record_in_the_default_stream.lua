-- A record in the default stream is a command of it: it comes after all blocking streams (R5, R16).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = b}
n:wait_event(mr.default_stream():record_event())
mr.op{name = "consume", reads = {x}, stream = n}
