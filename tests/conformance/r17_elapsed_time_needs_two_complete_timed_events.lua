-- R17: the time between two events, in milliseconds; both timed, recorded and complete, of one device.
-- options: --device virtual:2
-- Guaranteed: CUDA Runtime API, cudaEventElapsedTime; CUDA C++ Programming Guide 12.x, 6.2.9.3. The errors were
-- seen on an H200.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R17"

local s = mr.stream()
mr.synchronize()

local first, second = mr.event{timing = true}, mr.event{timing = true}
local err = T.raises("invalid-handle", function() return second - first end)
T.check(err.message:find("recorded"), "never recorded: the message says so")
first:record(s)
mr.spin{ms = 10, stream = s}
second:record(s)
T.raises("not-ready", function() return second - first end)
s:synchronize()
T.near(second - first, 10, 0.1, "the time of what lies between")
T.equal(first:elapsed_time(second), second - first, "two ways to write it")
T.equal(first - second, -(second - first), "the other way round")

local untimed = s:record_event()
s:synchronize()
err = T.raises("invalid-handle", function() return untimed - first end)
T.check(err.message:find("timing"), "not timed: the message says so")
T.raises("invalid-handle", function() return first - untimed end)

-- Work of other streams may fall between two events of one stream.
local other = mr.stream()
local third = T.mark(s)
mr.spin{ms = 10, stream = other}
s:wait_stream(other)
local fourth = T.mark(s)
mr.synchronize()
T.at_least(fourth - third, 9.9, "what a stream waits for takes its time too")

-- Recording again takes a new time.
first:record(s)
s:synchronize()
T.at_least(first - third, 9.9, "the most recent record counts")

if mr.device_count() > 1 then
  local away = T.mark(mr.stream{device = 1})
  mr.synchronize(1)
  T.raises("invalid-handle", function() return away - first end)
end
