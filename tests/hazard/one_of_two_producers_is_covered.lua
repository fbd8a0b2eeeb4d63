-- Two streams write halves; the reader waits for one of them.
-- expect: kind=read-after-write reason=one-of-several first=10 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b, c = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.stream{name = "c"}
mr.synchronize()
mr.op{name = "left", writes = {x:narrow(1, 1, 32)}, stream = a}
mr.op{name = "right", writes = {x:narrow(1, 33, 32)}, stream = c}
b:wait_stream(a)
-- fix: b:wait_stream(c)
mr.op{name = "consume", reads = {x}, stream = b}
