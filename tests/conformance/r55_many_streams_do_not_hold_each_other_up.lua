-- R55: streams share a bounded number of hardware queues (CUDA_DEVICE_MAX_CONNECTIONS), which may hold up work that
-- nothing orders. It never makes an order to rely on. Guaranteed: CUDA Programming Guide, 5.2. Seen on an H200: with
-- one kernel a stream none held up another. With two, 64 streams took 90 ms instead of 20 with the default of 8 queues,
-- and 30 ms with 32. The virtual GPU has no such queues.
local mr = require "millrace"
local T = require "millrace.testing"
T.rule "R55"

local streams = {}
for i = 1, 64 do streams[i] = mr.stream() end
local x = mr.zeros(1)
mr.synchronize()

-- Two after the other in each stream: with shared queues some of the second ones would block other first ones.
local ms = T.took(function()
  for _, s in ipairs(streams) do
    mr.spin{ms = 10, stream = s}
    mr.spin{ms = 10, stream = s}
  end
  mr.synchronize()
end)
if mr.backend == "virtual" then
  T.less(ms, 29, "64 streams take the time of one")
else
  T.less(ms, 64 * 20 / 2, "queues are shared, and still more than one")
end
T.at_least(ms, 19.9, "each stream in its order")

T.either({1, 2}, function()
  streams[1]:run(function() x:fill_(1) end)
  streams[64]:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "the first stream and the last")
