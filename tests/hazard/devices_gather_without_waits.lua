-- Two devices write parts of pinned memory; the reader waits for one.
-- options: --device virtual:2
-- expect: kind=read-after-write reason=one-of-several first=12 second=15
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{device = 0, name = "a"}, mr.stream{device = 1, name = "b"}
mr.synchronize(0) mr.synchronize(1)
local host = mr.zeros(64, {device = "cpu", pinned = true, name = "host"})
local c = mr.stream{device = 0, name = "c"}
mr.op{name = "part", writes = {host:narrow(1, 1, 32)}, stream = a}
mr.op{name = "part", writes = {host:narrow(1, 33, 32)}, stream = b}
c:wait_stream(a)
-- fix: c:wait_stream(b)
mr.op{name = "gather", reads = {host}, stream = c}
