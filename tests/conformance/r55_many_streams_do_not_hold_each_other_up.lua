-- R55: streams share a bounded number of hardware queues (CUDA_DEVICE_MAX_CONNECTIONS), which may hold up work that
-- nothing orders. It never makes an order to rely on.
-- Guaranteed: CUDA Programming Guide, 5.2. Seen on an H200 with the default setting: no stream held up another; the
-- virtual GPU has no such queues.
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
T.less(ms, 29, "64 streams take the time of one")

T.either({1, 2}, function()
  streams[1]:run(function() x:fill_(1) end)
  streams[64]:run(function() x:fill_(2) end)
  mr.synchronize()
  return x:item()
end, "the first stream and the last")
