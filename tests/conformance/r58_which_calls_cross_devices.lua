-- R58: waiting for, asking and synchronising with events and streams of another device is allowed; recording an
-- event there and timing across devices is not. The default streams of two devices have nothing to do with each
-- other.
-- options: --device virtual:2
-- Guaranteed: CUDA C++ Programming Guide 12.x, 6.2.9.3. Seen on an H200: a kernel for another device's stream runs
-- on that stream's device (older documents say that it fails).
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R58"
if mr.device_count() < 2 then T.skip("needs two devices") end

local d0, d1 = mr.device(0), mr.device(1)
local s0, s1 = mr.stream{device = d0}, mr.stream{device = d1}
mr.synchronize(d0)
mr.synchronize(d1)
mr.set_device(d0)

-- Work goes where its stream is.
mr.spin{ms = 10, stream = s1}
T.less(T.took(mr.synchronize, d0), 5, "device 0 has nothing to do")
T.check(not s1:query(), "device 1 has; it can be asked from device 0")
T.at_least(T.took(function() s1:synchronize() end), 9, "and waited for")

-- A copy may be in a stream of any device.
local x, y = mr.ones(4, {device = d0}), mr.zeros(4, {device = d0})
mr.synchronize(d0)
mr.memcpy_async(y, x, {stream = s1})
s1:synchronize()
T.equal(y:sum():item(), 4.0, "copied in a stream of device 1")

-- Events.
local e0, e1 = T.mark(s0), T.mark(s1)
T.raises("invalid-handle", function() e0:record(s1) end)
mr.spin{ms = 10, stream = s1}
e1:record(s1)
s0:wait_event(e1)
mr.spin{ms = 10, stream = s0}
T.at_least(T.took(function() s0:synchronize() end), 19.9, "device 0 waits for device 1")
T.check(e1:query(), "the event can be asked from device 0")
T.raises("invalid-handle", function() return e1 - e0 end)

-- Default streams.
local ms = T.took(function()
  mr.spin{ms = 10, stream = mr.default_stream(d0)}
  mr.spin{ms = 10, stream = mr.default_stream(d1)}
  mr.synchronize(d0)
  mr.synchronize(d1)
end)
T.less(ms, 15, "the default streams of two devices overlap")

local blocking = mr.stream{device = d1, nonblocking = false}
mr.spin{ms = 10, stream = mr.default_stream(d0)}
mr.spin{ms = 1, stream = blocking}
T.less(T.took(function() blocking:synchronize() end), 5, "the barrier of one device is not the other's")
mr.synchronize(d0)
