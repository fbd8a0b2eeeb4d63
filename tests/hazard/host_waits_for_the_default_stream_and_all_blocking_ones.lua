-- Synchronizing the default stream waits for all blocking streams (P1 of R5).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = b}
mr.default_stream():synchronize()
local _ = x[1]:item()
