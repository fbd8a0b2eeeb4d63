-- virtual only: mr.explore
-- The text of mr.explore's result: it tells outcomes by their differences, and schedules by the steps that are not as
-- submitted.
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: functions that race
local mr = require "millrace"
local T = require "millrace.testing"

local function has(text, part, why)
  T.check(tostring(text):find(part, 1, true), (why or "shown") .. ": " .. part .. "\nin " .. tostring(text))
end

local function lacks(text, part)
  T.check(not tostring(text):find(part, 1, true), "not shown: " .. part .. "\nin " .. tostring(text))
end

-- Explores a race of an addition and a product; `result` makes the outcome of the tensor.
local function race(result, shape)
  return mr.explore(function()
    local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
    local x = mr.ones(shape or { 2, 20 })
    mr.synchronize()
    a:run(function() x:add_(1) end)
    b:run(function() x[2]:mul_(3) end)
    mr.synchronize()
    return result(x)
  end)
end

-- ---------------------------------------------------------------- outcomes by what differs

local r = race(function(x) return x end)
has(r, ": value[2, 1] = 6.0 (20 of 40 elements differ)", "a tensor by its first element")
has(r, ": value[2, 1] = 4.0 (20 of 40 elements differ)")
has(race(function(x) return nil, x:sum():item() end), ": nil, 160.0", "a value behind nil")
r = race(function(x) return { x[{ { 1, 2 }, 1 }], ("a"):rep(50) } end)
has(r, "[1][2] = 6.0 (1 of 2 elements differs)", "one element alone")
r = race(function(x) return x[2] end)
has(r, ": value[1] = 6.0 (all 20 elements differ)", "all elements")
r = race(function(x) return { loss = x:sum():item(), steps = ("a"):rep(50) } end)
has(r, ": loss = 160.0\n", "a table by the field that differs")
lacks(r, "aaa")
r = race(function(x) return { name = ("a"):rep(50), part = { x[1], x[{ 2, { 3, 3 } }] } } end)
has(r, ": part[2][1] = 6.0\n", "a tensor of one element, inside")
r = race(function(x) return ("a"):rep(50), x:sum():item() end)
has(r, ": value 2 = 160.0\n", "the second of two values")
r = race(function(x) return { x:sum():item() } end)
has(r, ": {160.0}\n", "a short value is shown whole")
r = race(function(x) return { sum = 1000 + x:sum():item() / 1e3, text = ("a"):rep(50) } end)
has(r, "\n  sum differs from the 6th digit\n", "numbers that are close")
r = race(function(x) return x:sum():item() end)
lacks(r, "digit")
r = race(function(x) return x:sum():item() > 150 and { a = ("a"):rep(50) } or { b = 1, c = ("b"):rep(50) } end)
has(r, "{a = ", "values that are not alike are shown whole")
r = race(function(x) if x:sum():item() > 150 then error("too large") end return ("a"):rep(50) end)
has(r, ": error: ", "an error beside a value")
has(r, "aaa", "and the value")

-- ---------------------------------------------------------------- what is not as submitted

r = race(function(x) return x:sum():item() end)
local first, second = r.outcomes[1], r.outcomes[2]
T.equal(#first.difference, 0, "the order of submission")
T.equal(#second.difference, 1, "one pair")
T.check(second.difference[1]:find("^`mul_` %(explore_told.lua:24%) before `add_` %(explore_told.lua:23%)$"),
  second.difference[1])
has(r, "      in the order of submission\n")
has(r, "; the rest as submitted\n")
has(r, "\n  1 hazard:\n    read-after-write on ", "the hazard")
has(r, "\n    fix: before line 24 add   b:wait_stream(a)", "and its fix")
lacks(r, "kind=")

-- Two schedules come to one value. The one with the fewest pairs against the order of submission is told, though the
-- other changes the stream less often.
r = mr.explore(function()
  local a, b = mr.stream(), mr.stream()
  local x, y = mr.ones(1), mr.ones(1)
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  b:run(function() x:fill_(1) y:fill_(2) end)
  a:run(function() y:fill_(2) end)
  mr.synchronize()
  return x:item() + y:item()
end)
T.equal(#r.outcomes, 1, "one value")
T.equal(#r.outcomes[1].difference, 0, "of the order of submission: " .. tostring(r))
T.equal(mr.replay(r.outcomes[1].schedule, function()
  local a, b = mr.stream(), mr.stream()
  local x, y = mr.ones(1), mr.ones(1)
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  b:run(function() x:fill_(1) y:fill_(2) end)
  a:run(function() y:fill_(2) end)
  mr.synchronize()
  return x:item() + y:item()
end), 3.0, "which can be replayed")

-- The same pair of a loop is one line, and a pair that is alone says which of its times it is. Streams are named where
-- the lines are the same.
r = mr.explore(function()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local x = mr.ones(1)
  mr.synchronize()
  for i, s in ipairs{ a, b, a } do s:run(function() x:mul_(2):add_(i) end) end
  mr.synchronize()
  return x:item()
end)
local all = {}
for _, o in ipairs(r.outcomes) do table.move(o.difference, 1, #o.difference, #all + 1, all) end
all = table.concat(all, "\n")
T.check(all:find("`mul_` %(explore_told.lua:%d+, the 2nd time%) on b before `add_` %(explore_told.lua:%d+, the 1st"),
  all)
T.check(all:find(
  "`add_` %(explore_told.lua:%d+, the 3rd time%) on a before `mul_` %(explore_told.lua:%d+, the 2nd"), all)

-- A host that reads, and work that was submitted before.
r = mr.explore(function()
  local a, p = mr.stream{name = "a"}, mr.zeros(1, { device = "cpu", pinned = true })
  local x = mr.ones(1)
  mr.synchronize()
  a:run(function() p:copy_(x, { non_blocking = true }) end)
  local value = p[1]:item()
  mr.synchronize()
  return value
end)
T.equal(#r.outcomes, 2, "the read of the host races: " .. tostring(r))
local told = #r.outcomes[1].difference > 0 and r.outcomes[1] or r.outcomes[2]
T.check(told.difference[1]:find("`read` %(explore_told.lua:%d+%) before `copy_?` %(explore_told.lua:%d+%)"),
  table.concat(told.difference, "; "))
T.equal(told.value, 0.0, "it reads what was there before")

-- A query that says no.
r = mr.explore(function()
  local a, x = mr.stream(), mr.ones(1)
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  return a:query()
end)
T.equal(#r.outcomes, 2, "yes and no")
for _, o in ipairs(r.outcomes) do
  T.equal(o.difference[1] ~= nil and o.difference[1]:find("`query` %(.*%) says no") ~= nil, o.value == false,
    "the query: " .. tostring(o.difference[1]))
end

-- A copy of pageable memory: the host has read it, and the device writes later (R20).
local d, h = mr.zeros(1), mr.ones(1, { device = "cpu" })
r = mr.explore(function()
  local n = mr.stream{ name = "n" }
  d:zero_()
  mr.synchronize()
  mr.memcpy(d, h)
  local y = n:run(function() return d * 1 end)
  n:synchronize()
  return y:item()
end)
T.equal(#r.outcomes, 2, "the copy races: " .. tostring(r))
for _, o in ipairs(r.outcomes) do
  T.equal(o.difference[1] ~= nil and o.difference[1]:find("^`mul` %(.*%) before `memcpy` %(.*%)$") ~= nil, o.value == 0,
    "the copy: " .. tostring(o.difference[1]))
end

-- ---------------------------------------------------------------- the timeline of an outcome

-- What passes while the explorer lets the device move belongs to a call that waits. A query was made after it.
do
  local function calls_of(ask)
    local outcomes, calls = mr.explore(function()
      local s = mr.stream{name = "s"}
      mr.spin{ms = 2, stream = s}
      return ask(s)
    end).outcomes, {}
    for _, outcome in ipairs(outcomes) do
      for _, span in ipairs(outcome.trace.spans) do
        if span.kind == "stream-query" or span.kind == "stream-synchronize" then calls[#calls + 1] = span end
      end
    end
    return calls
  end
  local s = mr.stream{}
  local yes = calls_of(s.query) -- a query that says no is no span
  T.equal(#yes, 1)
  T.check(yes[1].called > 1.9 and yes[1].returned - yes[1].called < 0.01, "a query never waits")
  T.equal(yes[1].waited, nil)
  local wait = calls_of(s.synchronize)[1]
  T.check(wait.waited > 1.9 and wait.waited <= wait.returned - wait.called, "a synchronize waits in its call")
end

-- ---------------------------------------------------------------- hazards of later calls

-- Another branch of the function has hazards of its own.
do
  local function branching()
    local a, b, x, y = mr.stream{name = "a"}, mr.stream{name = "b"}, mr.zeros(1), mr.zeros(1)
    mr.synchronize()
    a:run(function() x:add_(1) end)
    b:run(function() x:mul_(3) end)
    mr.synchronize()
    if x:item() == 1 then
      a:run(function() y:add_(1) end)
      b:run(function() y:mul_(3) end)
      mr.synchronize()
    end
    return x, y
  end
  local result = mr.explore(branching)
  T.equal(#result.hazards, 2, "both are told")
  T.equal(result.hazard_count, 2)
  T.check(result.hazards[1].tensor == "x" and result.hazards[2].tensor == "y", "in the order in which they are met")
  local pair = result.hazards[2]:witness()
  T.check(pair.in_order and pair.reversed, "the witness finds the pair of the other branch: " .. tostring(pair))
  T.equal(pair.in_order.values[2][1]:item(), 3)
  T.equal(pair.reversed.values[2][1]:item(), 1)
end

-- A schedule that was not tried may have any outcome.
r = mr.explore(function()
  local s = mr.stream()
  s:run(function() mr.ones(1) end)
  while not s:query() do end
end)
T.check(not r.complete and r.claim == "none", "nothing is claimed of schedules that were not tried")

-- A table that contains itself is no value.
do
  local fine, err = pcall(mr.explore, function()
    local t = {}
    t.t = t
    return t
  end)
  T.check(not fine and tostring(err):find("or a table that contains itself", 1, true), tostring(err))
end
