-- The default stream is a barrier for blocking streams (R3, R6): a blocking stream comes after the default stream.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local d = mr.default_stream()
local b = mr.stream{name = "b", nonblocking = false}
mr.op{name = "consume", reads = {x}, stream = d}
mr.op{name = "produce", writes = {x}, stream = b}
