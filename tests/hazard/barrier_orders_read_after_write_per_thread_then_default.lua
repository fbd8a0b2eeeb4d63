-- The default stream is a barrier for blocking streams (R3, R6): the default stream comes after the per-thread stream.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local p = mr.per_thread_stream()
local d = mr.default_stream()
mr.op{name = "produce", writes = {x}, stream = p}
mr.op{name = "consume", reads = {x}, stream = d}
