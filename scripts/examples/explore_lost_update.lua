-- Every schedule: a counter that two streams change, and the same with the wait that is missing.
--
-- mr.explore runs the function under each order that CUDA's rules allow and that can make a difference. The result of
-- the function is the outcome.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local function program(wait)
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.zeros(1, {name = "x"})
  mr.synchronize()
  mr.with(a, function() x:add_(1) end)
  if wait then b:wait_stream(a) end
  mr.with(b, function() x:mul_(3) end)
  mr.synchronize()
  return x:item()
end

local racy = mr.explore(function() return program(false) end)
print("without the wait:", racy)
print("its hazard, in both orders:")
print(racy.hazards[1]:witness())

local fixed = mr.explore(function() return program(true) end)
print("with the wait:", fixed)
