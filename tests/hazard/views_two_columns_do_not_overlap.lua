-- Two columns lie between each other and share nothing.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:select(2, 1)}, stream = a}
mr.op{name = "consume", reads = {m:select(2, 2)}, stream = b}
