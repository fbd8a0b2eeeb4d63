-- virtual only: mr.explore
-- Host memory that nothing has written reads as zero in a function that is called again and again, whatever the C
-- library has there. So an early read of it is one outcome, the same in each run and in each process.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that read too early
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_fresh")

-- What the C library hands out next for so many bytes is not zero.
local function litter(options)
  local used = {}
  for i = 1, 8 do used[i] = mr.full({ 64 }, 7, options) end
  for i = 1, 8 do used[i]:free() end
end

local function is_zero(t)
  for _, value in ipairs(t:totable()) do if value ~= 0 then return false end end
  return true
end

for what, options in pairs{ pinned = { pinned = true }, pageable = { device = "cpu" } } do
  local function fresh() return mr.empty(64, options) end
  litter(options)
  local r = mr.explore(fresh, { full = true })
  T.equal(#r.outcomes, 1, what .. " memory: one outcome")
  T.check(is_zero(r.outcomes[1].value), what .. " memory is zero: " .. tostring(r))
  litter(options)
  T.check(is_zero(mr.replay(r.outcomes[1].schedule, fresh)), what .. " memory is zero in a replay")
  litter(options)
  r = mr.stress(fresh, { runs = 3 })
  T.equal(#r.outcomes, 1, what .. " memory: the same in each run")
  T.check(is_zero(r.outcomes[1].value), what .. " memory is zero under delays: " .. tostring(r))
end

-- The common mistake: the copy is read before it is done.
litter{ pinned = true }
local x = mr.ones(64)
mr.synchronize()
local r = mr.explore(function() return x:cpu{ non_blocking = true }[1]:item() end)
local values = {}
for i, o in ipairs(r.outcomes) do values[i] = o.value end
table.sort(values)
T.equal(table.concat(values, " "), "0.0 1.0", "read before the copy, and after it")

-- Device memory that another call has written reads as zero in the next one, little of it or much.
for _, n in ipairs{ 8, 8000, 9000, 200000 } do
  local function used(count)
    local t = mr.full({ count }, 7)
    mr.synchronize()
    return t
  end
  mr.explore(function() return used(n) end)
  mr.explore(function() return used(8) end)
  local o = mr.explore(function() return mr.empty(n) end).outcomes[1]
  T.equal(o.value:sum():item(), 0.0, n .. " elements of the device")
end

-- The result says on what it rests, also where no command has read such memory.
local CONDITION = "This holds if memory that nothing has written reads as in this run."
local function rests_on(fn)
  local result = mr.explore(fn)
  return result.not_followed and result.not_followed[1] == CONDITION and result.claim == "conditional"
end
T.check(rests_on(function() return mr.empty(2) end), "returned")
T.check(rests_on(function() return { inside = mr.empty(2, { device = "cpu" }) } end), "returned in a table")
T.check(rests_on(function() return mr.zeros(2):copy_(mr.empty(2)) end), "copied")
T.check(rests_on(function() local t = mr.empty(2) t[1]:fill_(1) return t end), "in part")
T.check(not rests_on(function() return mr.empty(2):fill_(1) end), "written")
T.check(not rests_on(function() local t = mr.empty(2) t[1]:fill_(1) return t[1] end), "the part that is written")
