-- Synchronizing one device does not wait for another (R10).
-- options: --device virtual:2
-- expect: kind=read-after-write reason=other-device-synchronized first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local b = mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
mr.op{name = "produce", writes = {host}, stream = b}
mr.synchronize(0)
-- fix: mr.synchronize(1)
local _ = host[1]:item()
