-- The default stream reads what was written of a non-blocking stream, with nothing between.
-- expect: kind=read-after-write reason=no-path tensor=x first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local d = mr.default_stream()
mr.op{name = "produce", writes = {x}, stream = n}
-- fix: d:wait_stream(n)
mr.op{name = "consume", reads = {x}, stream = d}
