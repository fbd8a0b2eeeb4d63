-- virtual only: mr.explore
-- Functions that do not come to their end under some schedule: where the run was stopped, and under which schedule.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"

local function race()
  local a, b, x = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(1)
  mr.synchronize()
  a:run(function() x:fill_(1) end) -- line 11
  b:run(function() x:fill_(2) end)
  return x
end

-- The loop never ends where 1 is written last.
local r = mr.explore(function()
  local x, turns = race(), 0
  mr.synchronize()
  local value = x:item()
  while value ~= 2 do
    turns = turns + 1 -- line 22
  end
  return value
end, { time = 0.4 })
T.check(not r.complete and r.incomplete:find("it stopped after time = 0.4 s", 1, true), "the reason")
T.equal(#r.outcomes, 1, "the outcome of the first run")
local u = r.unended
T.check(u.where:find("explore_unended.lua:2[1-3]$"), "where it was: " .. tostring(u.where))
T.check(u.seconds > 10 * u.first and u.first > 0, "how long it took")
T.equal(#u.difference, 1, "its schedule")
local pair = "`fill_` (explore_unended.lua:12) before `fill_` (explore_unended.lua:11)"
T.equal(u.difference[1], pair, "its schedule")
T.check(tostring(r):find("\n  a run was stopped at [^\n]*explore_unended.lua:2[1-3] before its end: "
  .. "it had taken [%d.]+ s, and the first run took [%d.e-]+ s\n      `fill_`[^\n]*; the rest as submitted\n"),
  tostring(r))

-- Each look at the value may find another one, as in a loop that polls memory.
r = mr.explore(function()
  local x = race()
  while x:item() ~= 2 do end -- line 41
  return "two"
end, { time = 5, max = 500, workers = 1 })
T.check(not r.complete, "not complete")
T.equal(r.incomplete, "the host reads more than 400 values that differ between schedules, here at "
  .. "explore_unended.lua:41, and what comes after them was not tried", "the reason")
T.equal(#r.outcomes, 1, "outcomes that were found are kept")

-- The same in memory of the host. Its first run ends, too.
r = mr.explore(function()
  local s, h = mr.stream(), mr.zeros(1, { device = "cpu", pinned = true })
  local one = mr.ones(1)
  s:wait_stream(mr.current_stream())
  s:run(function() h:copy_(one, { non_blocking = true }) end)
  while h:item() == 0 do end
  return h:item()
end, { time = 60, workers = 1 })
T.check(not r.complete and r.incomplete:find("reads more than 400 values that differ between schedules", 1, true),
  "the reason: " .. tostring(r.incomplete))
T.equal(#r.outcomes, 1, "each schedule ends")
T.equal(r.outcomes[1].value, 1.0, "with the value that was waited for")

-- A run that the end of the time cuts is no such run if the first one took as long.
local calls = 0
r = mr.explore(function()
  calls = calls + 1
  local x = race()
  mr.synchronize()
  local value, sum = x:item(), 0
  for i = 1, 2e6 do sum = sum + i % 7 end
  return value
end, { time = 0.01 })
T.check(not r.complete and not r.unended, "it may just be slow")
