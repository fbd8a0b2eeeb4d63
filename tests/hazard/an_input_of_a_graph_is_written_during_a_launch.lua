-- A node of another lane than the first still reads the input. A script can wait for the stream of the launch.
-- expect: kind=write-after-read tensor=x first=12 second=16 fix=c:wait_stream(s) place=before:16
if require "hazard_pair" () then return end
local mr = require "millrace"

local s, b, c = mr.stream{name = "s"}, mr.stream{name = "b"}, mr.stream{name = "c"}
local x, y, z = mr.ones(16, {name = "x"}), mr.zeros(16), mr.zeros(16)
mr.synchronize()
mr.graph.begin(s)
b:wait_stream(s)
s:run(function() z:add_(1) end)
b:run(function() y:add_(x) end)
s:wait_stream(b)
mr.graph.finish(s):launch(s)
-- fix: c:wait_stream(s)
c:run(function() x:fill_(3) end)
