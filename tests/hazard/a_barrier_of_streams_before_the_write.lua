-- A barrier orders what came before it. The streams behind the first one wait for the others through that.
-- expect: kind=read-after-write reason=waited-before-work first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.barrier{a, b, c}
mr.op{name = "produce", writes = {x}, stream = b}
-- fix: c:wait_stream(b)
mr.op{name = "consume", reads = {x}, stream = c}
