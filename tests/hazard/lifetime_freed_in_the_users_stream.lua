-- free{stream=} puts the free behind the use.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a})
b:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = b}
x:free{stream = b}
