-- Work that a blocking stream has waited for is ordered before other blocking streams by the default stream (R3).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local b = mr.stream{name = "b", nonblocking = false}
local c = mr.stream{name = "c", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = n}
b:wait_stream(n)
mr.op{name = "between", stream = mr.default_stream()}
mr.op{name = "consume", reads = {x}, stream = c}
