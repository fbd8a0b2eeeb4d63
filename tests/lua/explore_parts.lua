-- Operations that race and may mix in parts: whoever says "one outcome" then says under which condition. The choosers
-- of the virtual GPU cut large operations, so they meet what a search by whole operations cannot.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

local s, t = mr.stream{name = "s"}, mr.stream{name = "t"}

local function race(n, on_s, on_t)
  return function()
    local x, y = mr.zeros(n), mr.zeros(n)
    mr.synchronize()
    s:run(on_s, x, y)
    local result = t:run(on_t, x, y)
    mr.synchronize()
    return (result or x):sum():item()
  end
end

local function fill_one(x) x:fill_(1) end
local function fill_two(x) x:fill_(2) end
local function add(x) x:add_(1) end
local function read(x) return x:sum() end
local function deviation(x) return x:std() end
local function copy(x, y) y:copy_(x) end
local function other(_, y) y:fill_(2) end

-- function, outcomes, whether parts are a condition
local CASES = {
  -- one access of one element is whole
  { "fill and fill of one element", race(1, fill_one, fill_two), 2, false },
  { "fill and read of one element", race(1, fill_one, read), 2, false },
  -- an update reads, and writes later
  { "update and update of one element", race(1, add, add), 1, true },
  { "update and fill of one element", race(1, add, fill_two), 2, true },
  { "update and read of one element", race(1, add, read), 2, false },
  { "fill and fill of many", race(1024, fill_one, fill_two), 2, true },
  { "fill and a read of many that gives 0 either way", race(1024, fill_one, deviation), 1, true },
  { "different tensors", race(1024, fill_one, other), 1, false },
  { "a copy that reads what is filled", race(1024, copy, fill_two), 1, true },
}

for _, case in ipairs(CASES) do
  local name, fn, outcomes, mixes = table.unpack(case)
  local r = mr.explore(fn)
  T.equal(#r.outcomes, outcomes, name)
  T.equal(r.not_followed and r.not_followed.parts or false, mixes, name)
  T.equal(r.claim, mixes and "conditional" or "every-legal-schedule", name)
  T.equal(r.deterministic, outcomes == 1, name)
  local fine = pcall(T.expect_deterministic, fn)
  T.equal(fine, outcomes == 1 and not mixes, name)
end

-- The headline, and what a number of parts leaves of the condition.
local torn = race(1024, fill_one, deviation)
T.equal(tostring(mr.explore(torn)):match("^[^\n]+"),
  "2 schedules, 1 outcome: deterministic but for parts of operations that race")
T.check(tostring(mr.explore(torn, { grain = 2 })):find("mix no more than 2 parts each.", 1, true), "with a grain")
T.equal(#mr.explore(torn, { grain = 2 }).outcomes, 2)
T.equal(mr.explore(function() race(64, fill_one, fill_two)() end).claim, "every-legal-schedule", "it returns nothing")

-- Random programs on tensors that choosers cut: what one of them comes to is an outcome, or parts are a condition.
local COUNT = os.getenv("MILLRACE_LONG") and 400 or 40
local OPS = {
  function(x, _, k) x:fill_(k) end,
  function(x, _, k) x:add_(k) end,
  function(x, y) y:copy_(x) end,
  function(x, y) x:add_(y) end,
  function(_, y, k) y:mul_(k) end,
}

local function random_program(seed)
  math.randomseed(seed)
  local steps = {}
  for i = 1, math.random(2, 5) do
    steps[i] = { op = OPS[math.random(#OPS)], stream = math.random(2), wait = math.random(3) > 1, k = math.random(3) }
  end
  return function()
    local x, y = mr.ones(1024), mr.ones(1024)
    mr.synchronize()
    for _, step in ipairs(steps) do
      local here, there = s, t
      if step.stream == 2 then here, there = t, s end
      if step.wait then here:wait_stream(there) end
      here:run(step.op, x, y, step.k)
    end
    mr.synchronize()
    return ("%s %s"):format(x:sum():item(), y:sum():item())
  end
end

local exact, torn_values = 0, 0
for seed = 1, COUNT do
  local fn = random_program(seed)
  local r = mr.explore(fn)
  local known = {}
  for _, o in ipairs(r.outcomes) do known[o.value] = true end
  local mixes = r.not_followed and r.not_followed.parts
  for chooser = 1, 6 do
    mr.machine.chooser("random:" .. chooser)
    local value = fn()
    mr.machine.chooser("timed")
    T.check(known[value] or mixes, ("program %d: a chooser comes to %s"):format(seed, value))
    if not known[value] then torn_values = torn_values + 1 end
  end
  if not mixes then exact = exact + 1 end
end
T.at_least(exact, COUNT // 10, "programs without the condition")
T.at_least(torn_values, 1, "values that only parts come to")
