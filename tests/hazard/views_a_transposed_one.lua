-- A transposed view has the same bytes.
-- expect: kind=read-after-write reason=no-path tensor=m first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:t()}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {m:select(1, 1)}, stream = b}
