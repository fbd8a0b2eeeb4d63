-- A non-blocking stream overwrites what is being read of a blocking stream, with nothing between.
-- expect: kind=write-after-read reason=no-path tensor=x first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local b = mr.stream{name = "b", nonblocking = false}
local n = mr.stream{name = "n"}
mr.op{name = "consume", reads = {x}, stream = b}
-- fix: n:wait_event(b:record_event())
mr.op{name = "produce", writes = {x}, stream = n}
