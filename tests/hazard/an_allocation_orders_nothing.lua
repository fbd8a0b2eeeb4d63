-- To allocate in the default stream, and to free there, orders no work of blocking streams (R28).
-- expect: kind=write-after-write reason=no-path first=9 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
mr.synchronize()
local a, b = mr.stream{name = "a", nonblocking = false}, mr.stream{name = "b", nonblocking = false}
mr.op{name = "first", writes = {x}, stream = a}
local y = mr.empty(4)
y:free()
-- fix: b:wait_stream(a)
mr.op{name = "second", writes = {x}, stream = b}
