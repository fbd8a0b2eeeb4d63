-- The host may read bytes that a stream reads.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = "cpu", pinned = true, name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
mr.op{name = "consume", reads = {x}, stream = n}
local _ = x[1]:item()
