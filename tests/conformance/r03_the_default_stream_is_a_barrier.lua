-- R3: work in the legacy default stream waits for all earlier work of the blocking streams of its device,
-- and their later work waits for it.
-- Guaranteed: CUDA Driver API, Stream synchronization behavior; CUDA Programming Guide, 2.3.8.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R3"

local zero = mr.default_stream()
local a, b = mr.stream{nonblocking = false}, mr.stream{nonblocking = false}
local x = mr.zeros(1)
mr.synchronize()

-- Nothing but the default stream stands between a and b.
mr.spin{ms = 10, stream = a}
local end_a = T.mark(a)
mr.spin{ms = 10, stream = zero}
local end_zero = T.mark(zero)
mr.spin{ms = 10, stream = b}
local end_b = T.mark(b)
mr.synchronize()
T.at_least(end_zero - end_a, 9.9, "the default stream waits for a")
T.at_least(end_b - end_zero, 9.9, "b waits for the default stream")

-- Without events, whose records would be barriers too.
T.always((0 + 3) * 2 + 1, function()
  x:zero_()
  mr.synchronize()
  a:run(function() x:add_(3) end)
  zero:run(function() x:mul_(2) end)
  b:run(function() x:add_(1) end)
  mr.synchronize()
  return x:item()
end, "a, then the default stream, then b")

-- Two blocking streams with nothing in the default stream between them are as free as any.
T.either({1, 2}, function()
  a:run(function() x:fill_(1) end)
  b:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "two blocking streams")
