-- After mr.synchronize() nothing is pending (R10).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
mr.op{name = "read", reads = {x:narrow(1, 1, 1)}, stream = a}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = b}
mr.synchronize()
mr.op{name = "consume", reads = {x}, stream = c}
