-- A non-blocking stream overwrites what is being written of the default stream, with nothing between.
-- expect: kind=write-after-write reason=no-path tensor=x first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local d = mr.default_stream()
local n = mr.stream{name = "n"}
mr.op{name = "produce", writes = {x}, stream = d}
-- fix: n:wait_stream(d)
mr.op{name = "produce", writes = {x}, stream = n}
