-- R14: an event is recorded on streams of one device only; waiting, querying and synchronising cross devices.
-- options: --device virtual:2
-- Guaranteed: CUDA Driver API, cuEventRecord; CUDA Runtime API, cudaStreamWaitEvent; CUDA C++ Programming Guide
-- 12.x, 6.2.9.3.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R14"
if mr.device_count() < 2 then T.skip("needs two devices") end

local s0, s1 = mr.stream{device = 0}, mr.stream{device = 1}
local x0, x1 = mr.zeros(1, {device = 0}), mr.zeros(1, {device = 1})
local result = mr.zeros(1, {pinned = true})
mr.synchronize(0)
mr.synchronize(1)

local e = mr.event()
T.equal(e.device, nil, "an event belongs to no device")
mr.spin{ms = 10, stream = s0}
e:record(s0)
T.equal(e.device, mr.device(0), "until its first record")
T.raises("invalid-handle", function() e:record(s1) end)
T.equal(mr.event():record(s1).device, mr.device(1), "whatever device is current")

mr.set_device(1)
T.check(not e:query(), "it can be asked from another device, and the failed record changed nothing")
s1:wait_event(e)
mr.spin{ms = 1, stream = s1}
T.at_least(T.took(function() s1:synchronize() end), 9.9, "a stream of device 1 waits for device 0")
T.less(T.took(function() e:synchronize() end), 5, "the event is complete then")

T.always(7, function()
  result[1] = 0
  s0:run(function() x0:fill_(3); x0:add_(4) end)
  s1:wait_event(e:record(s0))
  s1:run(function() x1:copy_(x0) end)
  mr.memcpy_async(result, x1, {stream = s1})
  s1:synchronize()
  return result:item()
end, "values across devices")
