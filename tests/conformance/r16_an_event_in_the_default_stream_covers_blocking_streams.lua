-- R16: an event recorded in the default stream is complete when all earlier work of the blocking streams is.
-- Guaranteed: follows from R3 and R5; CUDA Driver API, Stream synchronization behavior.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R16"

local zero, thread = mr.default_stream(), mr.per_thread_stream()
local a, n = mr.stream{nonblocking = false}, mr.stream{nonblocking = true}
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()

mr.spin{ms = 10, stream = a}
mr.spin{ms = 20, stream = thread}
mr.spin{ms = 60, stream = n}
local e = mr.event():record(zero)
T.check(not e:query(), "the event is not complete")
T.at_least(T.took(function() e:synchronize() end), 19, "it waits for the slowest blocking stream")
T.check(a:query() and thread:query(), "the blocking streams are done")
T.check(not n:query(), "it did not wait for the non-blocking one")
n:synchronize()

-- Who waits for it is behind all of them, also a non-blocking stream.
T.always(3 + 4, function()
  x:zero_()
  y:zero_()
  mr.synchronize()
  a:run(function() x:fill_(3) end)
  thread:run(function() y:fill_(4) end)
  n:wait_event(e:record(zero))
  n:run(function() x:add_(y) end)
  mr.synchronize()
  return x:item()
end, "an event stands for all blocking streams")
