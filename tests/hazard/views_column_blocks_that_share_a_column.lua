-- Columns 1 to 4 and 4 to 7 share column 4.
-- expect: kind=read-after-write reason=no-path tensor=m first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local m = mr.zeros(8, 8, {name = "m"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
mr.op{name = "produce", writes = {m:narrow(2, 1, 4)}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {m:narrow(2, 4, 4)}, stream = b}
