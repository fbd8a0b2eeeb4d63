-- A wait inside the function for work from before its call would be a reason against a graph. Work of the same call is
-- waited for inside.
-- expect: kind=read-after-write reason=no-path tensor=x first=19 second=10 fix=mr.default_stream():wait_stream(side) place=before:21
-- expect: kind=read-after-write reason=no-path tensor=z first=13 second=15 fix=mr.default_stream():wait_stream(side) place=before:15
if require "hazard_pair" () then return end
local mr = require "millrace"

local side, x, y, z = mr.stream{name = "side"}, mr.zeros(16, {name = "x"}), mr.zeros(16), mr.zeros(16, {name = "z"})
local step = mr.graph.auto(function()
  y:add_(x)
  y:mul_(2)
  side:wait_stream(mr.default_stream())
  side:run(function() z:fill_(1) end)
  -- fix: mr.default_stream():wait_stream(side)
  y:add_(z)
end)
mr.synchronize()
for _ = 1, 4 do
  side:run(function() x:add_(1) end)
  -- fix: mr.default_stream():wait_stream(side)
  step()
  mr.synchronize()
end
assert(mr.graph.why(step) == nil, (mr.graph.why(step)))
