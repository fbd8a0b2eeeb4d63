-- The same for what only reads.
-- expect: kind=write-after-read reason=waited-before-work first=10 second=12 fix=b:wait_stream(a)
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = a}
-- fix: b:wait_stream(a)
mr.op{name = "produce", writes = {x}, stream = b}
