-- A use that comes neither after the fill nor after the allocation is one hazard.
-- expect: kind=read-after-write first=8 second=10
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local x = mr.zeros(64, {stream = a, name = "x"})
-- fix: b:wait_stream(a)
mr.op{name = "use", reads = {x}, stream = b}
