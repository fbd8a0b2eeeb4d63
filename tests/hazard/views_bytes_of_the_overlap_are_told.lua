-- The report says which bytes both touch.
-- expect: kind=read-after-write bytes=96..127 first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:narrow(1, 1, 4)}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {m:narrow(1, 4, 4)}, stream = b}
