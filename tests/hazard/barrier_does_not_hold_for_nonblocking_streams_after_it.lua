-- The barrier of the default stream leaves non-blocking streams out (R4), also between two of them.
-- expect: kind=read-after-write reason=nonblocking-stream first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local n = mr.stream{name = "n"}
local o = mr.stream{name = "o"}
mr.op{name = "produce", writes = {x}, stream = n}
mr.op{name = "between", stream = mr.default_stream()}
-- fix: o:wait_stream(n)
mr.op{name = "consume", reads = {x}, stream = o}
