-- A non-blocking stream reads what was written of the per-thread stream, with nothing between.
-- expect: kind=read-after-write reason=no-path tensor=x first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local p = mr.per_thread_stream()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = p}
-- fix: n:wait_stream(p)
mr.op{name = "consume", reads = {x}, stream = n}
