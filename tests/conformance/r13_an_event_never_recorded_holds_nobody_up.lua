-- R13: an event that was never recorded stands for no work: it is complete, and waiting for it does nothing, not
-- even if it is recorded afterwards. It has no time.
-- Guaranteed: CUDA Runtime API, cudaEventRecord and cudaEventElapsedTime; CUDA Programming Guide, 3.1.3.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R13"

local a, b = mr.stream(), mr.stream()
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()

local e = mr.event{timing = true}
T.check(not e.recorded, "it says so")
T.check(e:query(), "it is complete")
T.less(T.took(function() e:synchronize() end), 5, "synchronize returns at once")
local start = T.mark(a)
T.raises("invalid-handle", function() return e - start end)
T.raises("invalid-handle", function() return start - e end)

-- The wait comes before the record: the classic way to lose an order.
mr.spin{ms = 10, stream = a}
b:wait_event(e)
e:record(a)
mr.spin{ms = 1, stream = b}
local end_b = T.mark(b)
mr.synchronize()
T.less(end_b - start, 8, "b was not held up")

T.either({0, 1}, function()
  x:zero_()
  mr.synchronize()
  local late = mr.event()
  b:wait_event(late)
  a:run(function() x:fill_(1) end)
  late:record(a)
  b:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end, "a wait before the first record")
