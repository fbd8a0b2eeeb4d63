-- One line captures both operations: a wait in front of it does not come between them.
-- expect: kind=write-after-write reason=no-path tensor=x first=13 second=13 place=within:13
-- proposed fix: none
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, waits = mr.ones(16, {name = "x"}), false
-- fix: waits = true
mr.synchronize()
mr.graph.begin(a)
b:wait_stream(a)
a:run(function() x:fill_(1) end) if waits then b:wait_stream(a) end b:run(function() x:fill_(2) end)
a:wait_stream(b)
local g = mr.graph.finish(a)
g:launch(a)
