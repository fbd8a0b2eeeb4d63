-- The default streams of two devices are not ordered (R58).
-- options: --device virtual:2
-- expect: kind=read-after-write reason=no-path first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
mr.op{name = "produce", writes = {host}, stream = mr.default_stream(0)}
-- fix: mr.default_stream(1):wait_stream(mr.default_stream(0))
mr.op{name = "consume", reads = {host}, stream = mr.default_stream(1)}
