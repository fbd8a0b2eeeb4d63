-- Faults of the device in a function that mr.explore or mr.stress runs are outcomes. Afterwards everything outside is
-- there, kernels, tensors and events too.
-- virtual only: schedules are explored on the virtual GPU
-- not replayed: schedules are explored, by a chooser that no name tells
-- not checked: schedules are explored
local mr = require "millrace"
local T = require "millrace.testing"

T.rule("explore_faults")

local far = mr.kernel [[extern "C" __global__ void far(float *x, int *at) { x[*at] = 7; }]]
local keep, before = mr.ones(3), mr.event()
before:record()
mr.synchronize()

local FAULT = 1000000

local function unharmed(what)
  T.equal(keep:sum():item(), 3.0, what .. ": a tensor of outside")
  T.check(before:query(), what .. ": an event of outside")
  local x = mr.zeros(4)
  far[{ 1, 1 }](x, mr.full({ 1 }, 2, { dtype = "i32" }))
  T.equal(x:sum():item(), 7.0, what .. ": a kernel of outside")
end

local function always()
  keep:add_(1)
  far[{ 1, 1 }](mr.zeros(4), mr.full({ 1 }, FAULT, { dtype = "i32" }))
  before:record()
  mr.synchronize()
end

local fault = FAULT

local function racing()
  local a, b = mr.stream{ name = "a" }, mr.stream{ name = "b" }
  local x, at = mr.zeros(4), mr.zeros({ 1 }, { dtype = "i32" })
  mr.synchronize()
  keep:add_(1)
  a:run(function() at:fill_(fault) end)
  b:run(function() far[{ 1, 1 }](x, at) end)
  mr.synchronize()
  return x:sum():item()
end

-- Nothing in it waits for the fault.
local function silent()
  far[{ 1, 1 }](mr.zeros(4), mr.full({ 1 }, FAULT, { dtype = "i32" }))
end

for name, fn in pairs { always = always, silent = silent } do
  local r = mr.explore(fn)
  T.equal(#r.outcomes, 1, name .. ": one outcome")
  T.check(tostring(r.outcomes[1].error):find("illegal%-address"), name .. ": it is the fault")
  unharmed(name .. ", explored")
  T.check(r.outcomes[1].trace, name .. ": it has a timeline")
  unharmed(name .. ", traced")
  local s = mr.stress(fn, { runs = 4 })
  T.equal(#s.outcomes, 1, name .. ": one outcome under delays")
  T.check(tostring(s.outcomes[1].error):find("illegal%-address"), name .. ": it is the fault, under delays")
  unharmed(name .. ", with delays")
end

local r = mr.explore(racing)
T.equal(#r.outcomes, 2, "a fault under one of two orders")
local values = {}
for _, o in ipairs(r.outcomes) do values[o.error and "fault" or o.value] = true end
T.check(values.fault and values[7.0], "the fault, and the value")
unharmed("racing")

-- Remains of a run with a fault are freed.
local function reserved()
  for _ = 1, 3 do collectgarbage() end
  mr.synchronize()
  return mr.memory.stats().live
end
local live = reserved()
mr.stress(function()
  local left = mr.zeros(100000)
  far[{ 1, 1 }](left, mr.full({ 1 }, FAULT * 10, { dtype = "i32" }))
  mr.synchronize()
end, { runs = 20 })
T.equal(reserved(), live, "memory of runs with a fault")

-- After a failure that the function has caught, it goes on with memory of the host. Its result is the outcome.
local AFTER = {
  read = function(p) return p[1]:item() end,
  write = function(p) p:add_(1) return 1 end,
  new = function() return mr.ones(4, {device = "cpu"}):sum():item() end,
}
for name, after in pairs(AFTER) do
  local found = mr.explore(function()
    local p = mr.zeros(4, {pinned = true})
    mr.machine.fault("assert", mr.stream())
    pcall(mr.synchronize)
    return after(p)
  end)
  T.equal(#found.outcomes, 1, name .. " after a failure")
  T.equal(found.outcomes[1].value, ({ read = 0, write = 1, new = 4 })[name], name .. " after a failure")
end

-- Two failures: which one comes first is the outcome. A wait finds the loss of the device before it.
local two = mr.explore(function()
  mr.machine.fault("assert", mr.stream())
  mr.machine.fault("illegal-address", mr.stream())
  mr.synchronize()
end)
T.equal(#two.outcomes, 2, "two failures")
T.check(two.complete, tostring(two.incomplete))
T.equal(mr.explore(function()
  mr.machine.fault("assert", mr.stream())
  return mr.zeros(4):sum():item()
end).complete, true, "a failure before a copy to the host")

-- Each run tells the use of memory from outside on a stream from outside.
local module = mr.module [[__device__ float sum[4];
  extern "C" __global__ void count(float v) { sum[threadIdx.x] += v; }]]
local outside, sum = mr.stream(), module:global("sum")
sum:zero_()
mr.synchronize()
local counted = mr.explore(function()
  module:get("count")[{ 1, 4, stream = outside }](2)
  outside:synchronize()
  return sum:sum():item()
end)
T.check(counted.deterministic and counted.outcomes[1].value == 8, tostring(counted))

-- Who catches the failure goes on, and what it comes to is the outcome: also what raced before.
local function caught()
  local a, b = mr.stream{name = "a"}, mr.stream{name = "b"}
  local seven, eight = mr.full({1}, 7, {dtype = "f32"}), mr.full({1}, 8, {dtype = "f32"})
  local pinned = mr.zeros(1, {dtype = "f32", pinned = true})
  mr.synchronize()
  a:run(function() pinned:copy_(seven, {non_blocking = true}) end)
  b:run(function() pinned:copy_(eight, {non_blocking = true}) end)
  a:synchronize()
  b:synchronize()
  far[{ 1, 1 }](mr.zeros(4), mr.full({ 1 }, FAULT, { dtype = "i32" }))
  local fine = pcall(mr.synchronize)
  return fine, pinned[1]:item()
end
local both = {}
r = mr.explore(caught)
for _, o in ipairs(r.outcomes) do
  T.equal(o.values and o.values[1], false, "the failure is caught")
  both[o.values[2]] = true
end
T.check(both[7] and both[8] and r.complete, tostring(r))
T.equal(r.claim, "none", "how far other work was when the device failed")
unharmed("caught")

-- The same where it ends with an error of its own.
r = mr.explore(function()
  far[{ 1, 1 }](mr.zeros(4), mr.full({ 1 }, FAULT, { dtype = "i32" }))
  pcall(mr.synchronize)
  error("given up", 0)
end)
T.equal(r.outcomes[1].error, "given up")
T.equal(r.claim, "none", "an error after a failure that was caught")

-- A schedule that ends with a fault is one of that program only: where the function goes on, it is not followed.
for _, o in ipairs(mr.explore(racing).outcomes) do
  if o.error then
    fault = 2
    local fine, err = pcall(mr.replay, o.schedule, racing)
    T.check(not fine and tostring(err):find("does not follow the schedule", 1, true), "it goes on")
    fault = FAULT
    fine, err = pcall(mr.replay, o.schedule, racing)
    T.check(not fine and tostring(err):find("illegal%-address"), "the fault again")
  end
end
