-- Where a run of the function goes another way behind a value that the host has read, and nothing in the rest depends
-- on the order, its own run counts. The search with `full` carries that out on a player, too: the same outcomes, as
-- often; but it also tries memory by which no value can differ.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_leaf")

local PROGRAMS = tonumber(os.getenv("MR_EXPLORE_LEAF_PROGRAMS")) or os.getenv("MILLRACE_LONG") and 4000 or 80

local KINDS = 14

-- A program is a list of numbers, so that it is the same in each call.
local function make(seed)
  math.randomseed(seed)
  local steps = { frees = false }
  for i = 1, math.random(4, 9) do
    steps[i] = { kind = math.random(KINDS), stream = math.random(3), x = math.random(3), y = math.random(3) }
    local kind = steps[i].kind
    steps.frees = steps.frees or kind == 4 or kind == 9 or kind == 14 -- the collector frees results that are dropped
  end
  return steps
end

local function run(steps)
  local s = { mr.stream{name = "a"}, mr.stream{name = "b"}, mr.default_stream() }
  local t, seen = {}, {}
  for i = 1, 3 do t[i] = mr.full(2, i, {dtype = "f32"}) end
  local pinned = mr.zeros(2, {pinned = true})
  mr.synchronize()
  for i, step in ipairs(steps) do
    local stream, x, y = s[step.stream], t[step.x], t[step.y]
    if step.kind <= 2 then stream:run(function() x:mul_(2); x:add_(i) end)
    elseif step.kind == 3 then stream:run(function() x:copy_(y) end)
    elseif step.kind == 4 then stream:run(function() x:div_(y:sub(y)) end) -- NaN, or infinite
    elseif step.kind == 5 then mr.synchronize()
    elseif step.kind == 6 then s[step.x]:wait_stream(stream)
    elseif step.kind == 7 then stream:synchronize()
    elseif step.kind == 8 then seen[#seen + 1] = x[1]:item()
    elseif step.kind == 9 then seen[#seen + 1] = stream:run(function() return x:sum():item() end)
    elseif step.kind == 10 then -- what comes depends on two values
      if x[1]:item() + y[2]:item() > 6 then stream:run(function() x:add_(100) end) end
    elseif step.kind == 11 then stream:run(function() pinned:copy_(x, {non_blocking = true}) end)
    elseif step.kind == 12 then seen[#seen + 1] = pinned[1]:item() -- nothing waits for the copy
    elseif step.kind == 13 then
      if x[1]:item() ~= x[1]:item() then error("NaN") end
    elseif step.kind == 14 then stream:run(function() mr.empty(2):copy_(x):free() end)
    end
  end
  mr.synchronize()
  for i = 1, 3 do seen[#seen + 1] = t[i][1]:item() end
  seen[#seen + 1] = pinned[1]:item()
  return table.concat(seen, " ")
end

local function outcomes_of(r)
  local counts = {}
  for _, o in ipairs(r.outcomes) do counts[tostring(o.value or o.error)] = o.count end
  return counts
end

local branched = 0
for number = 1, PROGRAMS do
  local steps = make(number)
  local function fn() return run(steps) end
  local r, full = mr.explore(fn, { max = 2000, time = 60 }), mr.explore(fn, { max = 2000, time = 60, full = true })
  if r.complete and full.complete then
    local counts, all = outcomes_of(r), outcomes_of(full)
    for value, count in pairs(all) do
      local same = not r.deterministic and not steps.frees
      if same then T.equal(counts[value], count, ("program %d: %s"):format(number, value)) end
      T.check(counts[value], ("program %d: %s"):format(number, value))
    end
    for value in pairs(counts) do T.check(all[value], ("program %d: only %s"):format(number, value)) end
    if #r.outcomes > 1 then
      branched = branched + 1
      local o = r.outcomes[#r.outcomes]
      local fine, value = pcall(mr.replay, o.schedule, fn)
      T.equal(fine and value or "error", o.value or "error", ("program %d: replayed"):format(number))
      T.check(#o.difference > 0 or #r.outcomes[1].difference > 0, ("program %d: how they differ"):format(number))
    end
  end
end
T.check(branched > PROGRAMS / 10, "programs that branch: " .. branched)

-- Two races that meet only in the host: each combination is an outcome of its own.
local function meets(a, b)
  local x, y = mr.zeros(1), mr.zeros(1)
  mr.synchronize()
  for _, t in ipairs{ x, y } do
    a:run(function() t:add_(1) end)
    b:run(function() t:mul_(3) end)
  end
  mr.synchronize()
  if x:item() + y:item() == 4 and x:item() > y:item() then return "only one way" end
  return "any other"
end
local r = mr.explore(function() return meets(mr.stream(), mr.stream()) end)
T.check(r.complete and r.schedules == 4 and #r.outcomes == 2, "met in the host: " .. tostring(r))
T.equal(r.outcomes[2].value, "only one way", "the rare one")
T.equal(r.runs, 5, "one run of the function for each schedule, and one for the comparison")

-- A race inside of a check that the function makes itself counts like any other, although its report is that check's.
local function checked_inside()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  mr.hazard.check(function()
    a:run(function() x:add_(1) end)
    b:run(function() x:mul_(3) end)
    mr.synchronize()
  end)
  return x:item()
end
r = mr.explore(checked_inside)
T.check(r.complete and r.schedules == 2 and #r.outcomes == 2, "inside of a check: " .. tostring(r))

-- Earlier reports of the checker, and reports that it is told to ignore, do not matter.
local function races()
  local a, b, x = mr.stream(), mr.stream(), mr.zeros(1, {name = "raced"})
  mr.synchronize()
  a:run(function() x:add_(1); x:mul_(2) end)
  b:run(function() x:mul_(3); x:add_(5) end)
  mr.synchronize()
  return x:item()
end
local schedules = mr.explore(races).schedules
T.check(schedules > 1, "races: " .. schedules)
local mode = mr.hazard.mode("collect")
races()
T.equal(mr.explore(races).schedules, schedules, "reported before")
mr.hazard.ignore{tensor = "raced"}
T.equal(mr.explore(races).schedules, schedules, "ignored")
mr.hazard.ignore()
mr.hazard.mode(mode)
mr.hazard.clear()
T.equal(mr.explore(races).schedules, schedules, "forgotten")
