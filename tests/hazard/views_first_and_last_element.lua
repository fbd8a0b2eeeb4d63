-- The first and the last element share nothing.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:view(64):narrow(1, 1, 1)}, stream = a}
mr.op{name = "consume", reads = {m:view(64):narrow(1, 64, 1)}, stream = b}
