-- After the host has waited for the user the free is safe.
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a})
b:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = b}
b:synchronize()
x:free()
