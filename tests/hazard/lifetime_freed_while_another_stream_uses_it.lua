-- The free is in the order of the stream of allocation, which has not waited for the user (R28).
-- expect: kind=use-after-free reason=freed-without-record-stream first=10 second=12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a, name = "x"})
b:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = b}
-- fix: x:record_stream(b)
x:free()
