-- R54: no order of blocks is promised. They run to their end; those of later kernels start when the earlier ones
-- leave room: in the tail of a large kernel a small one runs beside it.
-- Guaranteed (that nothing is): CUDA Programming Guide, 1.2 and 3.1.3.1. Seen on an H200: no start before the large
-- kernel's last blocks have started.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R54"

local sms = mr.current_device().sm_count
if sms < 2 then T.skip("needs two multiprocessors") end
local s1, s2 = mr.stream(), mr.stream()
mr.synchronize()

-- A wave and a half: 10 ms on all multiprocessors, then 10 ms on half of them.
local start = T.mark(s1)
mr.op{name = "large", blocks = sms + sms // 2, ms = 20, stream = s1}
local end1 = T.mark(s1)
mr.spin{ms = 1, stream = s2}
local end2 = T.mark(s2)
mr.synchronize()
T.at_least(end1 - start, 19.9, "the large one takes two waves")
T.at_least(end2 - start, 10.9, "the small one waits for room: running blocks stay")
T.less(end2 - start, 19, "it does not wait for the large one's end")

-- Half a device each: both at once.
start = T.mark(s1)
mr.op{name = "half", blocks = sms // 2, ms = 10, stream = s1}
mr.op{name = "half", blocks = sms // 2, ms = 10, stream = s2}
end1, end2 = T.mark(s1), T.mark(s2)
mr.synchronize()
T.less(math.max(end1 - start, end2 - start), 15, "two that fit")
