-- mr.explore: what host functions write in another order than that of the first run.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: its programs race on purpose
local mr = require "millrace"
local T = require "millrace.testing"

local function pinned(n) return mr.zeros(n, { device = "cpu", pinned = true }) end

local function two_functions(first, second)
  local a, b = mr.stream(), mr.stream()
  a:host_func(first)
  b:host_func(second)
  mr.synchronize()
end

-- The bytes are those of a run with this order.
T.expect_outcomes(function()
  local p, n = pinned(2), 0
  two_functions(function() n = n + 1 p[1] = n end, function() n = n + 1 p[2] = n end)
  return p[1]:item(), p[2]:item()
end, { { 1.0, 2.0 }, { 2.0, 1.0 } })

-- Tensors that are returned, and bytes that the device copied from those of a function.
local r = mr.explore(function()
  local p, n, d = pinned(2), 0, mr.zeros(2)
  two_functions(function() n = n + 1 p[1] = n end, function() n = n + 1 p[2] = n end)
  d:copy_(p, { non_blocking = true })
  return d
end)
T.equal(#r.outcomes, 2, "outcomes of bytes that a function wrote")
local texts = { tostring(r.outcomes[1].value[1]:item()), tostring(r.outcomes[2].value[1]:item()) }
table.sort(texts)
T.equal(table.concat(texts, " "), "1.0 2.0", "the first byte, in either order")

-- Which random numbers a function gets depends on the order, too.
r = mr.explore(function()
  local p, q = pinned(1), pinned(1)
  two_functions(function() p:uniform_() end, function() q:uniform_() end)
  return p, q
end)
T.equal(#r.outcomes, 2, "outcomes of random numbers in host functions")
T.equal(r.deterministic, false, "random numbers in host functions")
local one, other = r.outcomes[1].values, r.outcomes[2].values
T.equal(one[1]:item(), other[2]:item(), "the numbers are those of the other function")

-- The function's behaviour after its wait depends on which operation ran first. Each run's own end is an outcome, and
-- orders of its later operations are not tried.
local function by_first()
  local first
  two_functions(function() first = first or "a" end, function() first = first or "b" end)
  local x = mr.zeros(1)
  if first == "a" then x:add_(1) else x:mul_(2):add_(5) end
  return x:item()
end
r = mr.explore(by_first)
local ends = {}
for _, o in ipairs(r.outcomes) do ends[o.value] = true end
T.check(ends[1] and ends[5] and #r.outcomes == 2, tostring(r))
T.check(not r.complete and r.incomplete:find("depends on when its host functions run", 1, true), r.incomplete)
