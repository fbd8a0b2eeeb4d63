-- Every schedule of a loop that asks: the answer of a query depends on how far the device has got. Where the program
-- goes on in another way after another answer, the exploration calls it again.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

-- The host's work while it waits depends on the device, and the value does not.
local function polls()
  local s = mr.stream{name = "s"}
  local x = mr.zeros(1, {name = "x"})
  mr.synchronize()
  mr.with(s, function() x:fill_(5) end)
  local done = s:record_event()
  local asked = 1
  while not done:query() do asked = asked + 1 end
  return {x = x:item(), asked = asked}
end
print("asks until it is told yes:", mr.explore(polls))

-- A program that takes a no for a yes.
local function gives_up()
  local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}
  local x = mr.zeros(1, {name = "x"})
  mr.synchronize()
  mr.with(s, function() x:fill_(5) end)
  for _ = 1, 2 do
    if s:query() then break end
  end
  mr.with(t, function() x:add_(1) end) -- it has asked, but not waited
  mr.synchronize()
  return x:item()
end
print("asks twice and goes on:", mr.explore(gives_up))
