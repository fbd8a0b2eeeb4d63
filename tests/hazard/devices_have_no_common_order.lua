-- Streams of two devices are not ordered (R58).
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path tensor=host first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{device = 0, name = "a"}, mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
mr.op{name = "produce", writes = {host}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {host}, stream = b}
