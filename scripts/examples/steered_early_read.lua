-- A schedule on hardware: mr.explore finds an order that gives a wrong value, and mr.stress makes the device take this
-- order in each run.
--
-- The copy on `consumer` has no wait for the one on `producer`. A GPU mostly copies in the order of submission, so the
-- mistake seldom shows by itself. mr.explore needs the virtual GPU. On a real one, the schedules that it found are
-- used.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"

local function program()
  local producer, consumer = mr.stream{name = "producer"}, mr.stream{name = "consumer"}
  local input = mr.full({4}, 7.0, {device = "cpu", pinned = true, name = "input"})
  local data, result = mr.zeros(4, {name = "data"}), mr.zeros(4, {name = "result"})
  mr.synchronize()
  mr.with(producer, function() data:copy_(input, {non_blocking = true}) end)
  mr.with(consumer, function() result:copy_(data, {non_blocking = true}) end)
  mr.synchronize()
  return result[1]:item()
end

local schedules = {[0.0] = "mr1 g1 @9 6 8 @12 11 10 @14 14 .18", [7.0] = "mr1 g1 @9 6 8 @12 10 11 @14 14 .18"}
if mr.backend == "virtual" then
  for _, outcome in ipairs(mr.explore(program).outcomes) do schedules[outcome.value] = outcome.schedule end
end
print("read too early:", mr.stress(program, {runs = 20, schedule = schedules[0.0]}))
print("in order:", mr.stress(program, {runs = 20, schedule = schedules[7.0]}))
