-- cudaMemcpy to pinned memory waits until it is done.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
mr.synchronize()
mr.memcpy(pinned, d)
local _ = pinned[1]:item()
