-- Every second row, from 1 and from 2, share nothing.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m[{ {1, 8, 2} }]}, stream = a}
mr.op{name = "consume", reads = {m[{ {2, 8, 2} }]}, stream = b}
