-- The default stream of one device is no barrier for another (R3).
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
local c = mr.stream{device = 1, nonblocking = false, name = "c"}
mr.op{name = "produce", writes = {host}, stream = mr.default_stream(0)}
-- fix: c:wait_stream(mr.default_stream(0))
mr.op{name = "consume", reads = {host}, stream = c}
