-- A stream that has waited for the stream of allocation may use the memory (R28).
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.empty(64, {stream = a})
b:wait_stream(a)
mr.op{name = "use", writes = {x}, stream = b}
