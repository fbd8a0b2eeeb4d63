-- The checker judges a call that a graph is launched for as it is written; a replay has the launch.
-- expect: kind=read-after-write tensor=x first=8 second=8
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(4, {name = "x"})
mr.synchronize()
local f = mr.graph.auto(function() x:add_(1) end)
b:run(f)
b:run(f)
-- fix: a:wait_stream(b)
a:run(f)
mr.synchronize()
