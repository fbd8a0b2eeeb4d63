-- Each rank's result has the data of all: what any of them did before an all-reduce comes before what any does behind.
-- options: --device virtual:3
-- expect: clean
if require "hazard_pair" () then return end
local mr = require "millrace"

local comms, streams, x = mr.nccl.comms{0, 1, 2}, {}, {}
local shared = mr.ones(3, 64, {device = "cpu", pinned = true})
for k = 1, 3 do streams[k], x[k] = mr.stream{device = k - 1}, mr.zeros(64, {device = k - 1}) end
for k = 1, 3 do mr.synchronize(k - 1) end
for k = 1, 3 do mr.memcpy_async(x[k], shared[k], {stream = streams[k]}) end
mr.nccl.group(function()
  for k = 1, 3 do comms[k]:all_reduce(x[k], {stream = streams[k]}) end
end)
for k = 1, 3 do mr.memcpy_async(shared[k % 3 + 1], x[k], {stream = streams[k]}) end
for k = 1, 3 do mr.synchronize(k - 1) end
