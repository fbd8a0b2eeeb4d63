-- R51: an error of a call belongs to that call: later calls do not report it again, and "not ready" is no error.
-- Guaranteed for cudaGetLastError, which returns it and forgets it: CUDA Runtime API; CUDA Programming Guide,
-- 2.1.7.1. Seen on an H200: NotReady does not set the last error. Here errors are raised, so there is no last one.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R51"

local s = mr.stream()
local x = mr.zeros(1)
mr.synchronize()

T.raises("invalid-device", function() mr.set_device(mr.device_count()) end)
mr.synchronize()
s:run(function() x:fill_(1) end)
s:synchronize()
T.equal(x:item(), 1, "the calls after a wrong one")

local first, second = T.mark(s), mr.event{timing = true}
mr.spin{ms = 10, stream = s}
second:record(s)
T.check(not s:query() and not second:query(), "not ready is an answer")
T.raises("not-ready", function() return second - first end)
s:run(function() x:add_(1) end)
s:synchronize()
T.equal(x:item(), 2, "the calls after an answer of not ready")
