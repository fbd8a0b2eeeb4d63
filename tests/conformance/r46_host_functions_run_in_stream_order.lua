-- R46: a host function runs after all earlier work of its stream and before all later work. It may not use the
-- device, and is not called once the device has failed.
-- Guaranteed: CUDA Runtime API, cudaLaunchHostFunc. Here it runs on the script's own thread, while that waits or asks.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R46"

local s, other = mr.stream(), mr.stream()
local x = mr.zeros(1)
local before, after = mr.zeros(1, {pinned = true}), mr.zeros(1, {pinned = true})
mr.synchronize()

-- It sees what came before it, and what comes after sees what it did.
T.always(1 + 10, function()
  before[1], after[1] = 0, 0
  s:run(function() x:fill_(1) end)
  mr.memcpy_async(before, x, {stream = s})
  s:host_func(function() after[1] = before:item() + 10 end)
  mr.memcpy_async(x, after, {stream = s})
  s:synchronize()
  return x:item()
end, "a host function in its place")

-- It runs when its turn has come, not before; the host's own calls do not run it.
local called = false
mr.spin{ms = 10, stream = s}
s:host_func(function() called = true end)
mr.spin{ms = 10, stream = s}
local after_it = s:record_event()
mr.spin{ms = 1, stream = other}
other:synchronize()
T.check(not called, "its turn has not come")
local ms = T.took(function() after_it:synchronize() end)
T.check(called, "it has been called by then")
T.at_least(ms, 17, "and what comes after it has run after it")

called = false
s:host_func(function() called = true end)
repeat until s:query()
T.check(called, "asking is enough")

-- Time that passes while the host submits other work, or uses its own memory, is not enough.
called = false
s:host_func(function() called = true end)
for _ = 1, 200 do other:record_event() end
before[1] = before:item()
T.check(not called, "nobody has waited or asked")
other:synchronize()
s:synchronize()
T.check(called, "now somebody has")

local order = {}
for i = 1, 3 do s:host_func(function() order[#order + 1] = i end) end
s:synchronize()
T.equal(table.concat(order, " "), "1 2 3", "in order, each once")

-- What it may not do, and what becomes of its errors.
for name, use in pairs{
  launch = function() x:fill_(2) end,
  synchronize = function() s:synchronize() end,
  query = function() other:query() end,
  allocate = function() mr.empty(1) end,
} do
  local err
  s:host_func(function() err = select(2, pcall(use)) end)
  s:synchronize()
  T.equal(err and err.code, "not-permitted", name .. " in a host function")
end
s:host_func(function() error("of its own") end)
local err = T.raises("host-function", function() s:synchronize() end)
T.check(err.message:find("of its own"), "the one who waits gets the error")
s:synchronize() -- once

if mr.machine then
  called = false
  mr.machine.fault("illegal-address", s)
  s:host_func(function() called = true end)
  T.raises("illegal-address", function() s:synchronize() end)
  mr.reset()
  mr.synchronize()
  T.check(not called, "not after a failure")
end
