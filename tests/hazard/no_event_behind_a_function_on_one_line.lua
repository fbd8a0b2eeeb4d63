-- The line of the first access only defines a function: code added after it would run before the call.
-- expect: kind=read-after-write reason=no-path first=8 second=13 fix=b:wait_stream(a) place=before:13
if require "hazard_pair" () then return end
local mr = require "millrace"

local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
local x, z = mr.zeros(8), mr.zeros(8)
local function produce() a:run(function() x:add_(1) end) end
mr.synchronize()
produce()
a:run(function() z:add_(1) end)
-- fix: b:wait_stream(a)
b:run(function() x:mul_(2) end)
