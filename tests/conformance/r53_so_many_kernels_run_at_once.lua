-- R53: a bounded number of kernels is resident at once (128 on compute capability 7.5 to 12.x); one more waits.
-- Guaranteed: CUDA Programming Guide, 5.1. Seen on an H200: 128 one-block kernels of 128 streams take the time of
-- one, 129 that of two.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R53"

local most = mr.current_device().max_resident_grids
local streams = {}
for i = 1, most + 1 do streams[i] = mr.stream() end
mr.synchronize()

local function took(count)
  return T.took(function()
    for i = 1, count do mr.spin{ms = 10, stream = streams[i]} end
    mr.synchronize()
  end)
end

T.less(took(most), 19, "as many as can be resident")
T.at_least(took(most + 1), 19.9, "and one more")
