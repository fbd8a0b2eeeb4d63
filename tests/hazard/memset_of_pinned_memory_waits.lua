-- cudaMemset of pinned memory waits (R24).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
mr.synchronize()
mr.memset(pinned, 1)
local _ = pinned[1]:item()
