-- R52: with CUDA_LAUNCH_BLOCKING each launch is waited for where it is called.
-- Guaranteed: CUDA Programming Guide, 5.2.3.1. Here it is mr.launch_blocking(true), and covers copies too.
-- not checked: launch blocking hides a race here
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R52"

local s = mr.stream()
local x = mr.zeros(1)
local pinned = mr.zeros(1, {pinned = true})
mr.synchronize()

T.equal(mr.launch_blocking(), false, "off by default")
T.less(T.took(function() mr.spin{ms = 10, stream = s} end), 5, "off: the launch returns at once")
s:synchronize()

T.equal(mr.launch_blocking(true), false, "it returns what was set before")
T.at_least(T.took(function() mr.spin{ms = 10, stream = s} end), 9.9, "on: the launch returns when it is done")
T.check(s:query(), "it is done")

-- Races hide: that is what it is for, and why nothing may rely on it.
local t = mr.stream()
T.always(2, function()
  pinned[1] = 1
  mr.op{writes = {x}, ms = 1, stream = s}
  s:run(function() x:fill_(2) end)
  mr.memcpy_async(pinned, x, {stream = t})
  return pinned:item()
end, "streams one after the other")

if mr.machine then
  T.raises("assert", function() mr.machine.fault("assert", s) end)
  mr.reset()
  s = mr.stream()
end
T.equal(mr.launch_blocking(false), true, "off again")
T.less(T.took(function() mr.spin{ms = 10, stream = s} end), 5, "off again: it returns at once")
s:synchronize()
