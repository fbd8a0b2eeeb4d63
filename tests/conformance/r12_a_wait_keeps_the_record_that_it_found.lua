-- R12: recording an event again replaces its record. Waits, queries and synchronises use the most recent one at
-- the time of their call: a wait that is already submitted keeps the record that it found.
-- Guaranteed: CUDA Runtime API, cudaEventRecord and cudaStreamWaitEvent.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R12"

local a, b, c = mr.stream(), mr.stream(), mr.stream()
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()

local e = mr.event()
local start = T.mark(a)
mr.spin{ms = 10, stream = a}
e:record(a)
b:wait_event(e)
mr.spin{ms = 40, stream = a}
e:record(a)
mr.spin{ms = 1, stream = b}
c:wait_event(e)
mr.spin{ms = 1, stream = c}
local end_b, end_c = T.mark(b), T.mark(c)
b:synchronize()
T.check(not e:query(), "a query asks for the second record")
T.at_least(T.took(function() e:synchronize() end), 25, "synchronize waits for the second record")
mr.synchronize()
T.at_least(end_b - start, 10.9, "b waits for the first record")
T.less(end_b - start, 30, "b does not wait for the second record")
T.at_least(end_c - start, 50.9, "c waits for the second record")

T.either({1, 2}, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  e:record(a)
  b:wait_event(e)
  a:run(function() x:fill_(2) end)
  e:record(a)
  b:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end, "a wait before the second record")

T.always(2, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  e:record(a)
  a:run(function() x:fill_(2) end)
  e:record(a)
  b:wait_event(e)
  b:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end, "a wait after the second record")
