-- Tiles that meet in one element share it.
-- expect: kind=read-after-write reason=no-path tensor=m first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:narrow(1, 1, 5):narrow(2, 1, 5)}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {m:narrow(1, 5, 4):narrow(2, 5, 4)}, stream = b}
