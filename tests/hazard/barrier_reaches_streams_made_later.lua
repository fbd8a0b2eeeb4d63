-- A blocking stream that is made after the work of the default stream waits for it all the same (R3).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = mr.default_stream()}
local b = mr.stream{name = "b", nonblocking = false}
mr.op{name = "consume", reads = {x}, stream = b}
