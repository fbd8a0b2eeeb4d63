-- Two captured streams write the same tensor. In a launch only the graph's edges order nodes, so the wait belongs to what is
-- captured.
-- expect: kind=write-after-write reason=no-path tensor=x first=12 second=14 fix=b:wait_stream(a) place=before:14
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.ones(16, {name = "x"})
mr.synchronize()
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:fill_(1) end)
-- fix: b:wait_stream(a)
b:run(function() x:fill_(2) end)
a:wait_stream(b)
local g = mr.graph.finish(a)
g:launch(a)
