-- Two rows of a matrix share nothing.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:select(1, 1)}, stream = a}
mr.op{name = "consume", reads = {m:select(1, 2)}, stream = b}
