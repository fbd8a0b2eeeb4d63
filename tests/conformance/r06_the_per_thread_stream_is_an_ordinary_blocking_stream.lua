-- R6: the per-thread default stream runs beside other streams, but is a blocking stream to the legacy one.
-- Guaranteed: CUDA Driver API, Stream synchronization behavior; CUDA Programming Guide, 2.3.8.
-- Seen on an H200: synchronising it does not wait for blocking streams.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R6"

local zero, thread = mr.default_stream(), mr.per_thread_stream()
local a = mr.stream{nonblocking = false}
local x = mr.zeros(1)
mr.synchronize()
T.check(thread == mr.per_thread_stream(), "there is one per-thread stream")
T.check(thread ~= zero, "it is not the legacy one")
T.check(not thread.nonblocking, "it is a blocking stream")

local start = T.mark(thread)
mr.spin{ms = 10, stream = thread}
mr.spin{ms = 10, stream = a}
local end_thread, end_a = T.mark(thread), T.mark(a)
mr.synchronize()
T.less(math.max(end_thread - start, end_a - start), 15, "it overlaps another stream")

mr.spin{ms = 10, stream = thread}
end_thread = T.mark(thread)
mr.spin{ms = 10, stream = zero}
local end_zero = T.mark(zero)
mr.synchronize()
T.at_least(end_zero - end_thread, 9.9, "the legacy stream waits for it")

T.always((0 + 3) * 2 + 1, function()
  x:zero_()
  mr.synchronize()
  thread:run(function() x:add_(3) end)
  zero:run(function() x:mul_(2) end)
  thread:run(function() x:add_(1) end)
  mr.synchronize()
  return x:item()
end, "per-thread, legacy, per-thread")

T.either({1, 2}, function()
  thread:run(function() x:fill_(1) end)
  a:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "the per-thread stream and another")

mr.spin{ms = 10, stream = a}
T.less(T.took(function() thread:synchronize() end), 5, "synchronising it leaves a out")
T.check(thread:query() and not a:query(), "so does a query")
a:synchronize()
