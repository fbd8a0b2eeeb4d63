-- Two tensors share nothing, whatever their shapes.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local k = mr.zeros(8, 8)
mr.synchronize()
mr.op{name = "produce", writes = {m}, stream = a}
mr.op{name = "consume", reads = {k}, stream = b}
