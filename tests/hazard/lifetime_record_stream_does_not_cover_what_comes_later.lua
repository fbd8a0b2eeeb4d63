-- Work that is submitted after the free is not covered; before it is, whenever record_stream was
-- called (R33).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a})
b:wait_stream(a)
x:record_stream(b)
mr.op{name = "use", reads = {x}, stream = b}
x:free()
