-- cudaMemcpy runs in the default stream: it comes after all blocking streams.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pinned = mr.zeros(64, {device = "cpu", pinned = true, name = "pinned"})
mr.synchronize()
local b = mr.stream{nonblocking = false}
mr.op{name = "produce", writes = {d}, stream = b}
mr.memcpy(pinned, d)
local _ = pinned[1]:item()
