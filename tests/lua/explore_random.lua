-- Random programs with copies, host functions and queries. Each value that a random chooser comes to is one of the
-- explored outcomes, and each outcome can be replayed.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_random")

local PROGRAMS, SEEDS = tonumber(os.getenv("MR_EXPLORE_LUA_PROGRAMS")) or 120, 25

-- A program is a list of numbers, so that it is the same in each call.
local function make(seed)
  math.randomseed(seed)
  local steps = {}
  for i = 1, math.random(3, 8) do
    steps[i] = { kind = math.random(17), stream = math.random(3), other = math.random(3), x = math.random(3),
      y = math.random(3) }
  end
  return steps
end

local function run(steps)
  local s = { mr.stream{name = "a"}, mr.stream{name = "b"}, mr.default_stream() }
  local t = {}
  for i = 1, 3 do t[i] = mr.full(2, i, {dtype = "f32"}) end
  local pinned, paged = mr.zeros(2, {pinned = true}), mr.zeros(2, {device = "cpu"})
  local events, seen, called, writes = {}, {}, "", false
  mr.synchronize()
  for i, step in ipairs(steps) do
    local stream, x, y = s[step.stream], t[step.x], t[step.y]
    writes = writes or step.kind == 8 or step.kind == 13 or step.kind == 17
    if step.kind <= 3 then stream:run(function() x:mul_(2); x:add_(i) end)
    elseif step.kind <= 5 then stream:run(function() x:copy_(y) end)
    elseif step.kind == 6 then stream:run(function() pinned:copy_(x, {non_blocking = true}) end)
    elseif step.kind == 7 then stream:run(function() x:copy_(pinned, {non_blocking = true}) end)
    elseif step.kind == 8 then stream:run(function() paged:copy_(x, {non_blocking = true}) end)
    elseif step.kind == 9 then
      -- While pending work may write pageable memory, such a copy waits for its stream: not all schedules are tried.
      if writes then mr.synchronize() end
      stream:run(function() x:copy_(paged, {non_blocking = true}) end)
    elseif step.kind == 10 then events[#events + 1] = stream:record_event()
    elseif step.kind == 11 then if events[1] then s[step.other]:wait_event(events[#events]) end
    elseif step.kind == 12 then seen[#seen + 1] = pinned[1]:item()
    elseif step.kind == 13 then stream:host_func(function() called = called .. i end)
    elseif step.kind == 14 then
      if stream:query() then seen[#seen + 1] = "done" end
    elseif step.kind == 15 then s[step.other]:wait_stream(stream)
    elseif step.kind == 16 then mr.barrier{s[step.x], s[step.x % 3 + 1]}
    elseif step.kind == 17 then stream:host_func(function() pinned:fill_(i) end)
    end
  end
  mr.synchronize()
  local out = { called, table.concat(seen, ",") }
  for i = 1, 3 do out[#out + 1] = table.concat(t[i]:totable(), ",") end
  out[#out + 1] = table.concat(pinned:totable(), ",")
  out[#out + 1] = table.concat(paged:totable(), ",")
  return table.concat(out, " ")
end

local several = 0
for number = 1, PROGRAMS do
  local steps = make(number)
  local function fn() return run(steps) end
  local r = mr.explore(fn, { max = 3000 })
  local known = {}
  for _, o in ipairs(r.outcomes) do known[o.value or o.error] = true end
  if #r.outcomes > 1 then several = several + 1 end
  for seed = 1, r.complete and SEEDS or 0 do
    local before = mr.machine.chooser(seed == 1 and "adversarial" or "random:" .. seed)
    local value = fn()
    mr.machine.chooser(before)
    if not known[value] then
      print(("program %d, seed %d: %s is none of"):format(number, seed, value))
      for text in pairs(known) do print("  " .. text) end
      for i, step in ipairs(steps) do print(i, step.kind, step.stream, step.other, step.x, step.y) end
      T.check(false, "a random schedule comes to something else")
    end
  end
  for i = 1, math.min(#r.outcomes, 3) do
    local o = r.outcomes[i]
    T.check(mr.replay(o.schedule, fn) == o.value, "program " .. number .. ": an outcome cannot be replayed")
  end
end
T.check(several > PROGRAMS / 10, "most programs have one outcome")
