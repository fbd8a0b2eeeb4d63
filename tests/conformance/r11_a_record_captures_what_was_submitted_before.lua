-- R11: a record captures what the stream has been given at the time of the call, and nothing of what follows.
-- Guaranteed: CUDA Runtime API, cudaEventRecord.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R11"

local a, b = mr.stream(), mr.stream()
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()

local e = mr.event()
mr.spin{ms = 10, stream = a}
e:record(a)
mr.spin{ms = 40, stream = a}
T.check(not e:query(), "the event is not complete before the work that it covers")
local waited = T.took(function() e:synchronize() end)
T.at_least(waited, 9, "the event covers what came before it")
T.less(waited, 30, "the event does not cover what came after it")
T.check(e:query() and not a:query(), "the event is complete, the stream is not")
a:synchronize()

-- b may see the first value or, as nothing prevents it, the second; never neither.
T.either({1, 2}, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:fill_(1) end)
  e:record(a)
  a:run(function() x:fill_(2) end)
  b:wait_event(e)
  b:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end, "what an event's waiter sees")
