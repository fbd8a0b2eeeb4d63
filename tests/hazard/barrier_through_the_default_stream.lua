-- Two blocking streams have no event in common, and the default stream between them (R3).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local c = mr.stream{name = "c", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = b}
mr.op{name = "between", stream = mr.default_stream()}
mr.op{name = "consume", reads = {x}, stream = c}
