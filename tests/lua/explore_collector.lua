-- Frees by Lua's collector in a function that is explored: all garbage goes before the host waits, the same in each
-- call. So memory that another stream still uses is found, and where it is used again, the outcomes are.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

local s, main = mr.stream{name = "s"}, mr.default_stream()

-- The sum of a tensor that nobody holds any more. `joins`: its own stream waits for the sum.
local function sum_of_dropped(n, joins)
  local a = mr.full(n, 1, {dtype = "f32"})
  s:wait_stream(main)
  local sum = s:run(function() return a:sum() end)
  if joins then main:wait_stream(s) end
  return sum
end

-- Freed before the wait at the end, after which nobody uses the memory again: another collector may free earlier.
local function dropped(joins)
  return function()
    local sum = sum_of_dropped(1000, joins)
    mr.synchronize()
    return sum:item()
  end
end

local r = mr.explore(dropped(false))
T.equal(#r.outcomes, 1)
T.equal(r.claim, "conditional")
local COLLECTOR = "This holds if Lua's collector frees tensors when it does so here: that decides which tensor "
  .. "gets the memory that is still in use."
T.equal(r.not_followed[1], COLLECTOR)
T.equal(r.hazards[1].kind, "use-after-free")
T.equal(tostring(r):match("^[^\n]+"),
  "1 schedule, 1 outcome: deterministic but for when Lua's collector frees memory")
T.check(not pcall(T.expect_deterministic, dropped(false)), "the collector may free earlier")

-- The free has no line, so the witness has no pair of lines, but all outcomes.
local w = r.hazards[1]:witness()
T.equal(#w.outcomes, 1)
T.check(tostring(w):find("not a pair that runs in one order or the other", 1, true), tostring(w))

-- Also where the script frees it itself: the collector frees another tensor first, whose memory is then taken instead.
-- Without this collection the last tensor gets the memory that is in use.
local function another_is_free()
  local other, x, sum = mr.full(1, 7), mr.full(1, 1), mr.zeros(1) -- luacheck: ignore 231
  mr.synchronize()
  other = nil -- luacheck: ignore 311
  s:run(function() sum:add_(x) end)
  x:free()
  main:synchronize()
  local last = mr.full(1, 5)
  mr.synchronize()
  return sum:item(), last:item()
end
r = mr.explore(another_is_free)
T.equal(r.not_followed[1], COLLECTOR)
T.equal(r.not_followed.collector, true)
if #r.outcomes == 1 then T.check(tostring(r):find("deterministic but for when", 1, true), tostring(r)) end
local values = {}
mr.machine.chooser "adversarial"
values[another_is_free()] = true
mr.machine.chooser "timed"
T.check(values[5] or #r.outcomes == 1, "a plain run comes to a value that the search does not list")
T.check(not pcall(T.expect_deterministic, another_is_free), "another collector comes to another value")

-- In the order of its own stream the free comes behind the use. But that wait may come too late for another collector.
r = mr.explore(dropped(true))
T.equal(#r.hazards, 0)
T.equal(r.deterministic, true)
T.equal(r.claim, "conditional")
T.expect_deterministic(dropped(true))

-- Who holds it until the host has waited has no such condition.
r = mr.explore(function()
  local a = mr.full(1000, 1, {dtype = "f32"})
  s:wait_stream(main)
  local sum = s:run(function() return a:sum() end)
  mr.synchronize()
  return sum:item(), #a
end)
T.equal(r.claim, "every-legal-schedule")

-- The memory is used again before the host has waited for `s`.
local function used_again()
  local sum = sum_of_dropped(1000)
  main:synchronize()
  local b = mr.full(1000, 2, {dtype = "f32"})
  mr.synchronize()
  return sum:item(), b:sum():item()
end
r = mr.explore(used_again)
local sums = {}
for _, o in ipairs(r.outcomes) do sums[o.values[1]] = o end
T.check(sums[1000] and sums[2000], tostring(r))
for value, o in pairs(sums) do T.equal((mr.replay(o.schedule, used_again)), value) end

-- Tensors that an earlier call has left in a variable are freed when a call is over, so that each call does the same.
local kept
r = mr.explore(function()
  kept = mr.full(100, 1, {dtype = "f32"})
  local pinned = mr.zeros(100, {dtype = "f32", pinned = true})
  s:wait_stream(main)
  s:run(function() pinned:copy_(kept, {non_blocking = true}) end)
  main:synchronize()
  local early = pinned[1]:item()
  mr.synchronize()
  return early, pinned[1]:item()
end)
T.equal(#r.outcomes, 2)
T.check(r.complete, r.incomplete)

-- When a finalizer runs is the collector's business.
r = mr.explore(function()
  local n = 0
  for _ = 1, 3 do
    setmetatable({}, { __gc = function() n = n + 1 end })
    sum_of_dropped(10, true)
  end
  mr.synchronize()
  return n
end)
T.check(table.concat(r.not_followed, "\n"):find("it calls setmetatable with __gc", 1, true), tostring(r))

-- Tensors from outside stay until a call is over, so their use by another stream is no reason to collect. The remains
-- of an earlier exploration that failed are no reason, either.
local weight = mr.ones(4, {requires_grad = true})
local fine = pcall(mr.explore, function() -- the next call adds to the gradient
  local y = s:run(function()
    local y = (weight * 2):sum()
    y:backward()
    return y
  end)
  s:synchronize()
  return y:item()
end)
T.check(not fine, "it is not repeatable")
mr.synchronize()
r = mr.explore(function()
  weight.grad = nil
  local y = (weight * 3):sum()
  y:backward()
  return y:item()
end)
T.equal(r.outcomes[1].value, 12)
