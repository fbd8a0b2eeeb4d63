-- The default stream is a barrier for blocking streams (R3, R6): the default stream comes after a blocking stream.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local d = mr.default_stream()
mr.op{name = "consume", reads = {x}, stream = b}
mr.op{name = "produce", writes = {x}, stream = d}
