-- cudaMemcpyPeer comes after and before all work of both devices (R60).
-- options: --device virtual:2
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {device = 0, name = "x"})
local a, b = mr.stream{device = 0, name = "a"}, mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local y = mr.zeros(64, {device = 1})
mr.synchronize(1)
mr.op{name = "produce", writes = {x}, stream = a}
mr.memcpy(y, x)
mr.op{name = "use", reads = {y}, stream = b}
mr.op{name = "again", writes = {x}, stream = a}
