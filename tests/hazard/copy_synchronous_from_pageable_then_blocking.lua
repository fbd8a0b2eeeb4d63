-- A blocking stream is ordered after a staged copy by the barrier (R3, R20).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local d = mr.zeros(64, {name = "d"})
local pageable = mr.zeros(64, {device = "cpu", name = "pageable"})
mr.synchronize()
local b = mr.stream{nonblocking = false}
mr.memcpy(d, pageable)
mr.op{name = "use", reads = {d}, stream = b}
