-- R1: the operations of one stream run in the order of submission; each sees what those before it wrote.
-- Guaranteed: CUDA Programming Guide, 2.3.2 and 2.3.5.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R1"

local s = mr.stream()
local x = mr.zeros(1)
mr.synchronize()

-- The device is all but empty, and yet the second operation begins only when the first has ended.
local start = T.mark(s)
mr.spin{ms = 10, stream = s}
local middle = T.mark(s)
mr.spin{ms = 10, stream = s}
local finish = T.mark(s)
s:synchronize()
T.at_least(middle - start, 9.9, "the first takes its time")
T.at_least(finish - middle, 9.9, "the second begins after the first")

T.always((0 + 3) * 2, function()
  x:zero_()
  mr.synchronize()
  s:run(function() x:add_(3); x:mul_(2) end)
  s:synchronize()
  return x:item()
end, "the second sees what the first wrote")

-- Also between kinds of work: a copy, a kernel, a copy.
local source, result = mr.zeros(1, {pinned = true}), mr.zeros(1, {pinned = true})
T.always(5 * 2, function()
  source[1] = 5
  mr.memcpy_async(x, source, {stream = s})
  s:run(function() x:mul_(2) end)
  mr.memcpy_async(result, x, {stream = s})
  s:synchronize()
  return result:item()
end, "copies and kernels of one stream")
