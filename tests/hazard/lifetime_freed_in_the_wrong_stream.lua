-- The free is in the order of a stream that has made no wait.
-- expect: kind=use-after-free reason=freed-without-record-stream first=9 second=11
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a, name = "x"})
mr.op{name = "use", reads = {x}, stream = a}
-- fix: b:wait_stream(a)
x:free{stream = b}
