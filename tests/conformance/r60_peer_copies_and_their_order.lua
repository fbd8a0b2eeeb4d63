-- R60: an async copy between devices is ordered by its stream alone. The synchronous form returns to the host at
-- once, but comes after all pending work of both devices and of the current one, and before all later work of these.
-- options: --device virtual:3
-- Guaranteed: CUDA Runtime API, cudaMemcpyPeer and cudaMemcpyPeerAsync; CUDA C++ Programming Guide 12.x, 6.2.9.4.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R60"
if mr.device_count() < 2 then T.skip("needs two devices") end

local d0, d1 = mr.device(0), mr.device(1)
local s0, s1 = mr.stream{device = d0}, mr.stream{device = d1}
local x0, x1 = mr.zeros(1, {device = d0}), mr.zeros(1, {device = d1})
local function synchronize()
  mr.synchronize(d0)
  mr.synchronize(d1)
end
synchronize()

-- Async.
mr.spin{ms = 20, stream = s1}
local start = T.mark(s0)
mr.memcpy_async(x0, x1, {stream = s0})
local finish = T.mark(s0)
synchronize()
T.less(finish - start, 10, "the async form does not wait for device 1")

T.either({0, 1}, function()
  x1:zero_()
  synchronize()
  s1:run(function() x1:fill_(1) end)
  mr.memcpy_async(x0, x1, {stream = s0})
  synchronize()
  return x0:item()
end, "a writer on device 1 beside the async form")

-- Synchronous: a barrier for both devices, non-blocking streams too, and not for the host.
mr.spin{ms = 10, stream = s0}
mr.spin{ms = 20, stream = s1}
T.less(T.took(mr.memcpy, x0, x1), 5, "the host does not wait")
mr.spin{ms = 1, stream = s0}
T.at_least(T.took(function() s0:synchronize() end), 19, "later work of device 0 waits for device 1")
synchronize()

T.always(3, function()
  x1:zero_()
  synchronize()
  s1:run(function() x1:fill_(3) end)
  mr.memcpy(x0, x1)
  s1:run(function() x1:fill_(4) end)
  s0:run(function() x0:add_(0) end)
  synchronize()
  return x0:item()
end, "before and after the synchronous form")

-- The device that is current counts, too, although the copy does not touch it.
if mr.device_count() > 2 then
  local d2 = mr.device(2)
  local s2 = mr.stream{device = d2}
  local y2 = mr.zeros(1, {device = d2})
  mr.synchronize(d2)
  mr.spin{ms = 20, stream = s2}
  mr.with(d2, function() mr.memcpy(x0, x1) end)
  T.at_least(T.took(function() mr.synchronize(d1) end), 18, "the copy waits for the current device")
  mr.spin{ms = 20, stream = s2}
  local before = T.took(function()
    mr.memcpy(x0, x1)
    mr.synchronize(d1)
  end)
  T.less(before, 10, "and for no other")
  s2:synchronize()

  -- Two that have a device in common run in turn.
  mr.spin{ms = 20, stream = s0}
  mr.memcpy(x1, x0)
  local took = T.took(function()
    mr.with(d2, function() mr.memcpy(x1, y2) end)
    mr.synchronize(d2)
  end)
  T.at_least(took, 18, "a copy from device 2 comes after an earlier one that device 1 takes part in, too")
end
