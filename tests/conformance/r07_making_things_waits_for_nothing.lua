-- R7: allocating pinned memory, and making and closing streams and events, may stop streams from overlapping.
-- May: the CUDA C++ Programming Guide 12.x (implicit synchronization) says that some of these do, the Programming
-- Guide of today (2.3.8) names only the default stream. Seen on an H200: none of these waits.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R7"

local s1, s2 = mr.stream(), mr.stream()
mr.synchronize()

local start = T.mark(s1)
mr.spin{ms = 20, stream = s1}
local host = T.took(function()
  mr.zeros(1024, {pinned = true})
  mr.stream():close()
  mr.event():close()
end)
mr.spin{ms = 20, stream = s2}
local end1, end2 = T.mark(s1), T.mark(s2)
T.less(host, 10, "the host does not wait")
mr.synchronize()
T.less(math.max(end1 - start, end2 - start), 35, "the streams overlap")
