-- Two operands from two streams; the wait is for one of them.
-- expect: kind=read-after-write reason=one-of-several tensor=y first=12 second=15
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
local y = mr.zeros(64, {name = "y"})
mr.synchronize()
mr.op{name = "produce", writes = {x}, stream = a}
mr.op{name = "produce", writes = {y}, stream = c}
b:wait_stream(a)
-- fix: b:wait_stream(c)
mr.op{name = "add", reads = {x, y}, stream = b}
