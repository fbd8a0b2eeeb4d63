-- record_stream names one user; the other is not waited for (R33).
-- expect: kind=use-after-free reason=freed-without-record-stream first=12 second=15 first_stream=c
if require "hazard_pair" () then return end
local mr = require "millrace"

local c = mr.stream{name = "c"}
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a, name = "x"})
mr.barrier{a, b, c}
mr.op{name = "use", reads = {x}, stream = b}
mr.op{name = "use", reads = {x}, stream = c}
x:record_stream(b)
-- fix: x:record_stream(c)
x:free()
