-- The host waits after each call, and still nothing is guaranteed without it (R52).
-- expect: kind=read-after-write reason=no-path first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.launch_blocking(true)
mr.op{name = "produce", writes = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
mr.launch_blocking(false)
