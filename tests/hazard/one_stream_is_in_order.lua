-- Work of one stream runs in the order of submission (R1).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = n}
mr.op{name = "consume", reads = {x}, stream = n}
mr.op{name = "produce", writes = {x}, stream = n}
