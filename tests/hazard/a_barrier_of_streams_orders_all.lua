-- mr.barrier makes each stream wait for all.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
mr.barrier{a, b, c}
mr.op{name = "consume", reads = {x}, stream = b}
mr.op{name = "consume", reads = {x}, stream = c}
