-- Every schedule of an event that is recorded too early: it stands for the work before it, not for what comes next.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local function program(early)
  local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
  local x = mr.zeros(4, {name = "x"})
  mr.synchronize()
  local ready
  if early then ready = producer:record_event() end
  mr.with(producer, function() x:fill_(2) end)
  if not early then ready = producer:record_event() end
  consumer:wait_event(ready)
  local sum = mr.with(consumer, function() return x:sum() end)
  mr.synchronize()
  return sum:item()
end

print("recorded before the fill:", mr.explore(function() return program(true) end))
print("recorded after it:", mr.explore(function() return program(false) end))

-- An operation need not be whole: cut into parts, a reader can see half of it.
print("recorded too early, in parts:", mr.explore(function()
  local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
  local x = mr.zeros(2, {name = "x"})
  mr.synchronize()
  mr.with(producer, function() x:fill_(2) end)
  local y = mr.with(consumer, function() return x:clone() end)
  mr.synchronize()
  return y
end, {grain = 2}))
