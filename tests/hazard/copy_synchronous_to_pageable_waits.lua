-- cudaMemcpy to pageable memory waits until it is done.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
mr.synchronize()
mr.memcpy(pageable, d)
local _ = pageable[1]:item()
