-- virtual only: mr.explore
-- The bounds of mr.explore in seconds and megabytes, and what needs no search.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"

local streams, x = {}, mr.zeros(1)
for i = 1, 8 do streams[i] = mr.stream{name = "s" .. i} end
mr.synchronize()

-- 8! orders of these, each with a sum of its own.
local function many()
  for i = 1, 8 do streams[i]:run(function() x:mul_(2):add_(i) end) end
  mr.synchronize()
  return x:item()
end

-- ---------------------------------------------------------------- time

local r = mr.explore(many, { time = 0.2 })
T.check(not r.complete and r.incomplete:find("it stopped after time = 0.2 s", 1, true), "the reason")
T.check(#r.outcomes > 1, "what was found by then")
T.check(#r.untried > 0 and r.untried.count >= #r.untried, "what was not tried")
local side = "`%w+_` %(explore_budget.lua:%d+, the %d%a%a time%) on s%d" -- all at one line, and in a loop
T.check(r.untried[1]:find("^" .. side .. " before " .. side .. "$"), "as a choice of order: " .. r.untried[1])
T.check(tostring(r):find("not tried: `", 1, true), "it is shown: " .. tostring(r))

-- The values of outcomes take time and memory. So only the outcomes that are shown have their values at once.
r = mr.explore(many, { time = 0.5, max = 40 })
local last = r.outcomes[#r.outcomes]
T.check(#r.outcomes > 8, "more outcomes than are shown: " .. #r.outcomes)
T.check(rawget(r.outcomes[8], "value"), "shown, so it has its value")
T.equal(rawget(last, "values"), nil, "made later")
T.check(math.type(last.value) == "float" and last.values[1] == last.value and last.values.n == 1, "when asked for")
local before, fields = r.outcomes[#r.outcomes - 1], {}
T.equal(rawget(before, "value"), nil, "made later, too")
for key in pairs(before) do fields[key] = true end
T.check(fields.value and fields.values and fields.count, "pairs shows the values")
T.equal(last.nothing, nil, "there is no such field")

local function long_way(count)
  local sum = 0
  for i = 1, count do sum = sum + i % 7 end
  return sum
end

-- The first call is not cut. This one races, so it has to be called again, which takes too long.
local calls = 0
local function long_run()
  calls = calls + 1
  streams[1]:run(function() x:fill_(1) end)
  streams[2]:run(function() x:fill_(2) end)
  mr.synchronize()
  local value = x:item()
  pcall(function() for _ = 1, calls == 1 and 1 or math.huge do long_way(1e6) end end)
  return value
end
r = mr.explore(long_run, { time = 0.05 })
T.equal(calls, 2, "the second call was cut, whatever pcall there is")
T.check(not r.complete and not r.deterministic and not r.interrupted, "so nothing is claimed")
T.equal(#r.outcomes, 1, "the first outcome")
T.equal(#r.hazards, 1, "and the hazard of the first call")
T.equal(mr.replay(r.outcomes[1].schedule, function()
  calls = 0
  return long_run()
end), r.outcomes[1].value, "the schedule of the first call can be replayed")

-- A run that waits is cut by the clock on the wall, at ten times the budget. Nobody has interrupted it.
calls = 0
r = mr.explore(function()
  calls = calls + 1
  streams[1]:run(function() x:fill_(1) end)
  streams[2]:run(function() x:fill_(2) end)
  mr.synchronize()
  local value, began = x:item(), os.clock()
  while calls == 1 and os.clock() - began < 0.15 do long_way(1000) end
  while calls > 1 do os.execute("sleep 0.05") end
  return value
end, { time = 0.25 })
T.check(calls == 2 and not r.complete and not r.interrupted, "cut by the clock: " .. tostring(r.incomplete))

-- ---------------------------------------------------------------- memory

r = mr.explore(many, { memory = 1 })
T.check(not r.complete and r.incomplete:find("it stopped at memory = 1 MB", 1, true), "no room: " .. r.incomplete)
T.check(#r.outcomes >= 1, "the first outcome comes in any case; the clock says when memory is looked at")

-- Memory that was used before, and is free again, is there for a search.
local function resident()
  local file <close> = io.open("/proc/self/statm")
  return file and tonumber(file:read("a"):match("^%d+ (%d+)")) * 4096 >> 20
end
do
  local large <close> = mr.zeros(64 << 20, { dtype = "f32", device = "cpu" })
  T.check(large.nbytes == 256 << 20, "256 MB")
end
local resident_before = resident()
local three = function()
  for i = 1, 3 do streams[i]:run(function() x:mul_(2):add_(i) end) end
  mr.synchronize()
  return x:item()
end
if resident_before then
  T.check(mr.explore(three, { memory = resident_before + 64 }).complete, "only what is in use counts")
end

-- Outcomes count, too: here 4 MB each, and more than 60 of them.
local function large_values()
  local t = {}
  for i = 1, 64 do t[i] = mr.zeros(1 << 14) end
  mr.synchronize()
  for i = 1, 64 do
    for k = 1, 2 do streams[k]:run(function() t[i]:fill_(k) end) end
  end
  mr.synchronize()
  return t
end
resident_before = resident()
if resident_before then
  r = mr.explore(large_values, { memory = resident_before + 120 })
  T.check(not r.complete and r.incomplete:find("it stopped at memory", 1, true), tostring(r.incomplete))
  T.check(#r.outcomes > 1 and #r.outcomes <= 30, #r.outcomes .. " outcomes of 4 MB")
  local is_kept_small = not os.getenv "ASAN_OPTIONS" -- AddressSanitizer keeps memory that was freed
  T.check(not is_kept_small or resident() < resident_before + 132, "within a tenth: " .. resident() - resident_before)
  T.check(#r.outcomes <= 8 or not rawget(r.outcomes[9], "values"), "tensors are made when they are asked for")
  T.equal(#r.outcomes[1].value, 64)
end
T.check(mr.explore(large_values, { memory = 4096 }).complete, "with room for all")

-- ---------------------------------------------------------------- what needs no search

local function chain(count)
  return function()
    local t = mr.zeros(4)
    for i = 1, count do
      local a, b = streams[i % 8 + 1], streams[(i + 1) % 8 + 1]
      if i == 1 then a:wait_stream(mr.current_stream()) end
      a:run(function()
        local part = mr.full(4, i)
        t:add_(part)
        part:free()
      end)
      b:wait_stream(a)
    end
    mr.synchronize()
    return t
  end
end

r = mr.explore(chain(300))
T.check(r.schedules == 1 and r.deterministic and r.runs == 1, "no hazard, and memory is used again: " .. tostring(r))
T.equal(r.outcomes[1].value[1]:item(), 300 * 301 / 2, "its value")
T.equal(mr.replay(r.outcomes[1].schedule, chain(300))[1]:item(), 300 * 301 / 2, "its schedule")
T.check(r.outcomes[1].steps:find("add_", 1, true), "its steps")
local whole = mr.explore(chain(4), { full = true })
T.check(whole.deterministic and whole.complete, "the search says the same")

-- A second call is made where the first one has done something by which they could differ. If one call takes more than
-- half of the time, the second one is left out, and that is a condition.
local ways = { 0 }
r = mr.explore(function() return long_way(5e6) end, { time = 1e-3 })
T.check(r.deterministic and r.runs == 1 and not r.not_followed, "called once: " .. tostring(r))
r = mr.explore(function()
  ways[1] = 1
  return long_way(5e6)
end, { time = 1e-3 })
T.check(r.deterministic and r.runs == ways[1], "called once: " .. tostring(r))
T.check(r.not_followed[1]:find("when it is called again", 1, true), "which is said: " .. tostring(r))
T.raises("invalid-argument", mr.explore, function()
  calls = calls + 1
  return calls
end)
local state = { list = {} }
local differ = {
  ["a table's entry"] = function() state.list[#state.list + 1] = 1; return #state.list end,
  ["a global variable"] = function() rawset(_G, "counter", (rawget(_G, "counter") or 0) + 1); return _G.counter end,
  ["a random number"] = function() return math.random(1 << 40) end,
}
for what, fn in pairs(differ) do
  T.raises("invalid-argument", mr.explore, fn)
  T.check(true, what .. " is seen")
end
T.equal(mr.explore(function() return os.time() * 0 end).runs, 2, "a time is asked for")
rawset(_G, "counter", nil)

-- A function that looks at the order is searched although there is no hazard.
r = mr.explore(function()
  local s = streams[1]
  s:run(function() x:fill_(1) end)
  local answer = s:query()
  mr.synchronize()
  return answer
end)
T.equal(#r.outcomes, 2, "a query")
r = mr.explore(function()
  local order = {}
  for i = 1, 2 do streams[i]:host_func(function() order[#order + 1] = i end) end
  mr.synchronize()
  return order
end)
T.equal(#r.outcomes, 2, "host functions")
r = mr.explore(function()
  mr.with(streams[1], function() mr.full(4, 7):free() end)
  local y
  mr.with(streams[2], function()
    y = mr.empty(4)
    y[{ { 1, 2 } }]:fill_(0)
  end)
  mr.synchronize()
  return y
end)
T.equal(#r.outcomes, 2, "a half that nothing has written")
T.equal(#r.hazards, 0, "which is no hazard")

-- A function may have checks of its own.
r = mr.explore(function()
  return #mr.hazard.check(function()
    streams[1]:run(function() x:fill_(1) end)
    streams[2]:run(function() x:fill_(2) end)
    mr.synchronize()
  end)
end)
T.equal(r.outcomes[1].value, 1, "a check inside")
T.equal(mr.hazard.mode(), "off", "and the checker is as it was")

-- Time in which the search has no processor does not count, up to ten times as much.
local function six_orders()
  os.execute("sleep 0.3")
  local s = { mr.stream(), mr.stream(), mr.stream() }
  local y = mr.ones(1)
  mr.synchronize()
  s[1]:run(function() y:add_(1) end)
  s[2]:run(function() y:mul_(3) end)
  s[3]:run(function() y:sub_(5) end)
  mr.synchronize()
  return y:item()
end
local slept = mr.explore(six_orders, { time = 1 })
T.check(slept.complete and slept.runs == 5, tostring(slept))
T.check(not mr.explore(six_orders, { time = 0.1 }).complete, "more than ten times as much does")

-- Large memory of one call of the function is given to the next one, and begins with zeros again.
local function large()
  local a, b = mr.stream(), mr.stream()
  local pinned, y = mr.empty(1 << 19, { pinned = true }), mr.ones(1)
  local first = pinned:sum():item()
  pinned:fill_(7)
  mr.synchronize()
  a:run(function() y:add_(1) end)
  b:run(function() y:mul_(3) end)
  mr.synchronize()
  return first, y:item()
end
local again = mr.explore(large)
T.check(again.complete and #again.outcomes == 2 and again.runs > 2, tostring(again))
for _, o in ipairs(again.outcomes) do T.equal(o.values[1], 0) end
