-- R2: operations of different streams have no order unless something makes one. They may run at once.
-- Guaranteed (that nothing is): CUDA Programming Guide, 2.3.2, 3.1.3.3 and 5.1. Overlap is not promised;
-- it was seen on an H200.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R2"

local s1, s2 = mr.stream(), mr.stream()
local x, y = mr.zeros(1), mr.zeros(1)
mr.synchronize()

local start = T.mark(s1)
mr.spin{ms = 10, stream = s1}
mr.spin{ms = 10, stream = s2}
local end1, end2 = T.mark(s1), T.mark(s2)
mr.synchronize()
T.less(math.max(end1 - start, end2 - start), 15, "two small operations overlap")

T.either({1, 2}, function()
  s1:run(function() x:fill_(1) end)
  s2:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "the last of two writers")

T.either({0, 1}, function()
  x:zero_()
  mr.synchronize()
  s1:run(function() x:fill_(1) end)
  s2:run(function() y:copy_(x) end)
  mr.synchronize()
  return y:item()
end, "a reader beside a writer")
