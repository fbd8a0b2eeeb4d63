-- Events that the script does not see (wait_stream, s:wait, mr.barrier) are closed when the last wait that holds them
-- is over, which depends on the schedule. Neither the schedules nor their number may depend on it, and a function may
-- drop its own objects at any moment.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_hidden")

-- The outcomes as a sorted list of texts; checks that each can be replayed.
local function outcomes(fn, schedules)
  local r, found = mr.explore(fn), {}
  T.check(r.complete, tostring(r.incomplete))
  if schedules then T.equal(r.schedules, schedules, "schedules") end
  for i, o in ipairs(r.outcomes) do
    local values = table.pack(mr.replay(o.schedule, fn))
    for k = 1, values.n do T.equal(values[k], o.values[k], "replayed") end
    for k = 1, values.n do values[k] = ("%g"):format(values[k]) end
    found[i] = table.concat(values, " ")
  end
  table.sort(found)
  return table.concat(found, ", ")
end

local x, y = mr.ones(1), mr.zeros(1)
local p = mr.zeros(1, {pinned = true})
mr.synchronize()

-- The wait is over at the call that the other stream's work is carried out in: before or after each of the copies.
for _, join in ipairs {
  function(a) a:wait_stream(mr.default_stream()) end,
  function(a) a:wait(mr.default_stream()) end,
  function(a) a:wait_event(mr.default_stream():record_event()) end,
  function(a)
    local e <close> = mr.default_stream():record_event()
    a:wait_event(e)
  end,
  function(a)
    a:wait_event(mr.default_stream():record_event())
    collectgarbage()
  end,
} do
  T.equal(outcomes(function()
    local a = mr.stream()
    mr.with(a, function() x:add_(5) end)
    join(a)
    mr.memcpy(x, y)
    mr.memcpy(p, x)
    mr.synchronize()
    return x:item(), p[1]:item()
  end, 3), "0 0, 5 0, 5 5", "a copy before, between or behind")
end

T.equal(outcomes(function()
  local a, b, u, v = mr.stream(), mr.stream(), mr.zeros(1), mr.zeros(1)
  mr.synchronize()
  mr.with(a, function() v:add_(1) end)
  b:wait_stream(a)
  mr.with(a, function() u:add_(2) end)
  return mr.with(b, function() return u:item() end)
end, 2), "0, 2", "work behind what is waited for")

T.equal(outcomes(function()
  local a, b, c, u = mr.stream(), mr.stream(), mr.stream(), mr.zeros(1)
  mr.synchronize()
  mr.with(a, function() u:add_(1) end)
  mr.with(c, function() u:mul_(3) end)
  mr.barrier{a, b}
  local seen = mr.with(b, function() return u:item() end)
  mr.synchronize()
  return seen, u:item()
end, 3), "1 1, 1 3, 3 3", "a barrier, and a stream that has no part in it")

-- Memory of the host, streams and events that go in the middle of the function, and in a host function.
T.equal(outcomes(function()
  local a, b, u, q = mr.stream(), mr.stream(), mr.zeros(1), mr.ones(1, {pinned = true})
  mr.synchronize()
  a:run(function() u:copy_(q, {non_blocking = true}) end)
  b:run(function() u:add_(1) end)
  a, q = nil, nil -- luacheck: ignore 311
  collectgarbage()
  local again = mr.full({1}, 5, {pinned = true})
  again:add_(1)
  mr.synchronize()
  return u:item(), again:item()
end, 2), "1 6, 2 6", "a source that is dropped while the copy is pending")

local kept
local function dropped_inside()
  local a, b, u = mr.stream(), mr.stream(), mr.zeros(1)
  local inner = mr.ones(1, {pinned = true})
  mr.synchronize()
  a:host_func(function() inner:add_(1) kept, inner = inner[1]:item(), nil collectgarbage() end)
  b:host_func(function()
    mr.full({1}, 7, {pinned = true}):add_(1)
    collectgarbage()
  end)
  b:run(function() u:add_(1) end)
  a:run(function() u:mul_(2) end)
  mr.synchronize()
  return u:item(), kept
end
T.equal(outcomes(dropped_inside, 4), "1 2, 2 2", "dropped by host functions")

-- Memory that is met first in a host function has no number that depends on when that runs.
T.equal(outcomes(function()
  local a, b, u = mr.stream(), mr.stream(), mr.zeros(1, {pinned = true})
  local v, w = mr.zeros(1, {pinned = true}), mr.zeros(1, {pinned = true})
  mr.synchronize()
  a:host_func(function() v:add_(1) end)
  b:host_func(function() w:add_(1) end)
  if a:query() then u:add_(2) end
  b:synchronize()
  u:mul_(3)
  mr.synchronize()
  return u:item(), v:item() + w:item()
end), "0 2, 6 2", "first met in a host function")

-- The tensor that a host function makes is not there before it has run: the function asks for something else then.
local r = mr.explore(function()
  local a, b, made = mr.stream(), mr.stream(), nil
  a:host_func(function() made = mr.full({1}, 4, {pinned = true}) end)
  b:host_func(function() end)
  b:synchronize()
  if made then made:add_(1) end
  a:synchronize()
  return made:item()
end)
T.check(not r.complete and r.incomplete:find("depends on when its host functions run", 1, true), r.incomplete)
