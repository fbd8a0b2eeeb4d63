-- R15: a wait for an event holds up the later work of its stream. It does not hold up the earlier work, the host, or
-- the stream in which the event was recorded. Guaranteed: CUDA Runtime API, cudaStreamWaitEvent.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R15"

local a, b = mr.stream(), mr.stream()
local x = mr.zeros(1)
mr.synchronize()

local start = T.mark(a)
mr.spin{ms = 20, stream = a}
local end_a = T.mark(a)
mr.spin{ms = 1, stream = b}
local before = T.mark(b)
T.less(T.took(function() b:wait_event(end_a) end), 5, "the host does not wait")
mr.spin{ms = 5, stream = b}
local after = T.mark(b)
mr.spin{ms = 1, stream = a}
local last = T.mark(a)
mr.synchronize()
T.less(before - start, 10, "earlier work of b is not held up")
T.at_least(after - end_a, 4.9, "later work of b is")
T.less(last - end_a, 4, "a does not wait for b in turn")

T.always((0 + 3) * 2, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:add_(3) end)
  b:wait_event(a:record_event())
  b:run(function() x:mul_(2) end)
  mr.synchronize()
  return x:item()
end, "the order that the wait makes")

T.either({1, 2}, function()
  b:wait_event(a:record_event())
  b:run(function() x:fill_(1) end)
  a:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "later work of a and of b")
