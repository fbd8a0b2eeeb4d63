-- A hazard between two coroutines is found where it is.
-- expect: kind=read-after-write first=9 second=13
if require "hazard_pair" () then return end
local mr = require "millrace"

local x = mr.zeros(64, {name = "x"})
local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
mr.synchronize()
local function producer() mr.op{name = "produce", writes = {x}, stream = a} end
local co = coroutine.wrap(producer)
co()
-- fix: b:wait_stream(a)
mr.op{name = "consume", reads = {x}, stream = b}
