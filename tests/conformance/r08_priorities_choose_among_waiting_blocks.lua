-- R8: lower numbers go first. A priority is a hint: it chooses among blocks that wait for a place, takes no
-- running block away, and orders nothing. Values out of range are clamped.
-- Guaranteed: CUDA Runtime API, cudaStreamCreateWithPriority and cudaDeviceGetStreamPriorityRange; CUDA
-- Programming Guide, 3.1.3.1. Seen on an H200: the range 0 to -5, and the order of starts below.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R8"

local least, greatest = mr.priority_range()
T.check(least >= greatest, "the greatest priority is the smaller number")
T.equal(mr.stream().priority, math.min(0, least), "the default")
T.equal(mr.stream{priority = -100}.priority, greatest, "too great is clamped")
T.equal(mr.stream{priority = 100}.priority, least, "too small is clamped")
if least == greatest then T.skip("this device has no priorities") end

local low, high = mr.stream{priority = least}, mr.stream{priority = greatest}
local same = mr.stream{priority = least}
local x = mr.zeros(1)
mr.synchronize()

-- A kernel that fills the device three times over, 10 ms each; two small ones come while its first third runs.
local start = T.mark(low)
mr.op{name = "three waves", blocks = 3 * mr.current_device().sm_count, ms = 30, stream = low}
local end_low = T.mark(low)
mr.spin{ms = 1, stream = same}
local end_same = T.mark(same)
mr.spin{ms = 1, stream = high}
local end_high = T.mark(high)
mr.synchronize()
T.at_least(end_high - start, 10.9, "running blocks are not taken away")
T.less(end_high - start, 19, "the high priority goes before the blocks that wait")
T.at_least(end_same - start, 29, "the same priority goes after them")
T.at_least(end_low - start, 29.9, "the large kernel runs to its end")

T.either({1, 2}, function()
  low:run(function() x:fill_(1) end)
  high:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "a priority orders nothing")
