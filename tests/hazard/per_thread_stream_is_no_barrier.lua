-- The per-thread default stream orders nothing between other streams (R6).
-- expect: kind=read-after-write reason=no-path first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local c = mr.stream{name = "c", nonblocking = false}
mr.op{name = "produce", writes = {x}, stream = b}
mr.op{name = "between", stream = mr.per_thread_stream()}
-- fix: c:wait_stream(b)
mr.op{name = "consume", reads = {x}, stream = c}
