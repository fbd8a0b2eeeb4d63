-- A wait for each producer is enough.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "left", writes = {x:narrow(1, 1, 32)}, stream = a}
mr.op{name = "right", writes = {x:narrow(1, 33, 32)}, stream = c}
b:wait_stream(a)
b:wait_stream(c)
mr.op{name = "consume", reads = {x}, stream = b}
