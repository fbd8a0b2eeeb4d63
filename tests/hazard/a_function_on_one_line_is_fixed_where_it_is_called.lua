-- Nor can anything stand in front of the second access when its line defines a function.
-- expect: kind=read-after-write reason=no-path first=10 second=8 fix=b:wait_stream(a) place=before:12
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x = mr.zeros(8)
local function consume() b:run(function() x:mul_(2) end) end
mr.synchronize()
a:run(function() x:add_(1) end)
-- fix: b:wait_stream(a)
consume()
