-- options: --device virtual:2
-- The waits inside a copy between devices are not the script's: no reason cites them.
-- expect: kind=read-after-write reason=no-path first=12 second=14
if require "hazard_pair" () then return end
local mr = require "millrace"

local s0, s1 = mr.stream{device = 0, name = "s0"}, mr.stream{device = 1, name = "s1"}
local x = mr.ones(100, {device = 0})
local y = mr.zeros(100, {device = 1})
mr.synchronize(0)
mr.synchronize(1)
s0:run(function() x:fill_(5) end)
-- fix: mr.default_stream(0):wait_stream(s0)
s1:run(function() y:copy_(x) end)
