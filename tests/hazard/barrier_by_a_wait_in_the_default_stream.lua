-- A wait in the default stream is a command of it: later work of blocking streams waits too (R5).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
mr.default_stream():wait_stream(n)
mr.op{name = "consume", reads = {x}, stream = b}
