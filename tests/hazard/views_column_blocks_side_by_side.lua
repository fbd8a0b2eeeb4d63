-- Columns 1 to 4 and 5 to 8 share nothing.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:narrow(2, 1, 4)}, stream = a}
mr.op{name = "consume", reads = {m:narrow(2, 5, 4)}, stream = b}
