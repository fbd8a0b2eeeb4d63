-- A wait for an event of another device orders (R14).
-- options: --device virtual:2
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{device = 0, name = "a"}, mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
mr.op{name = "produce", writes = {host}, stream = a}
b:wait_event(a:record_event())
mr.op{name = "consume", reads = {host}, stream = b}
