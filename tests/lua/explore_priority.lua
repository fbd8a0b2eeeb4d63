-- Schedules that a search does not reach in its time: some are drawn by priorities, and the result says what they would
-- have found.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_priority")

-- The search turns the latest pairs first, and there are far too many of them: it does not come to the first one.
local function long(count, late)
  return function()
    local s = {}
    for i = 1, 4 do s[i] = mr.stream() end
    local first, x = mr.zeros(1), mr.zeros(1)
    mr.synchronize()
    s[1]:run(function() first:add_(1) end)
    s[2]:run(function() first:mul_(3) end)
    for i = 1, count do s[i % 4 + 1]:run(function() x:add_(1) end) end
    mr.synchronize()
    return late and late(first) or first
  end
end

local r = mr.explore(long(40), { time = 1 })
T.check(not r.complete and not r.deterministic, "not all: " .. tostring(r))
T.check(r.by_priority > 0, "so many were drawn: " .. tostring(r.by_priority))
T.equal(#r.outcomes, 2, "the early pair was turned, too: " .. tostring(r))
T.check(r.chance > 0 and r.chance <= 1, "the chance: " .. r.chance)
T.check(tostring(r):find("at random, by priorities", 1, true), "it is said: " .. tostring(r))
if r.chance >= 0.01 then
  T.check(tostring(r):find(("depth 2 would have been found with >= %d %%"):format(math.floor(100 * r.chance)), 1, true),
    "in words: " .. tostring(r))
end
for _, o in ipairs(r.outcomes) do
  T.equal(mr.replay(o.schedule, long(40)):item(), o.value:item(), "each can be replayed")
end

-- Where the host goes another way: what was drawn is carried on in the new program.
r = mr.explore(long(40, function(first)
  if first:item() == 1 then return "only then" end
  return "else"
end), { time = 1 })
T.equal(#r.outcomes, 2, "behind a value: " .. tostring(r))

-- A search that comes to its end, or has a bound of its own, draws nothing.
T.check(not mr.explore(long(3), { time = 30 }).by_priority, "complete")
T.check(not mr.explore(long(40), { max = 10 }).by_priority, "max")
T.check(not mr.explore(long(40), { time = 0.2, preempt = 3 }).by_priority, "preempt")
